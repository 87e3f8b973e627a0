// Bytes as a model: the check ends, says something of whatever it refuses, and its report can be printed.

#include "check/checker.h"
#include "check/render.h"
#include "fuzz/support/found.h"
#include "fuzz/support/model_hooks.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace treadle;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  CheckOptions options;
  options.max_diagnostics = 100;
  options.full = true;
  const Report report = check_model(wire::MappedFile::borrow(bytes), options);
  fuzz::expect(report.ok() == (report.errors == 0), "a report that is sound and has errors");
  fuzz::expect(!report.diagnostics.empty() || report.errors + report.warnings == 0, "problems that are not listed");
  RenderOptions render;
  render.source = bytes;  // as if it were text
  fuzz::expect(is_utf8(render_json(report, render)), "JSON that is not UTF-8");
  fuzz::expect(render_text(report, render).empty() == report.diagnostics.empty(), "a report without text");
  return 0;
}
