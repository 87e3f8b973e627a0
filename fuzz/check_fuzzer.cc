// Bytes as a model: the check ends, says something of whatever it refuses, and its report can be printed.
// Small models make good seeds.

#include <cstdint>
#include <cstdlib>

#include "check/checker.h"
#include "check/render.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace treadle;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  CheckOptions options;
  options.max_diagnostics = 100;
  options.full = true;
  const Report report = check_model(wire::MappedFile::borrow(bytes), options);
  if (report.ok() != (report.errors == 0) || (report.diagnostics.empty() && report.errors + report.warnings > 0)) {
    std::abort();
  }
  RenderOptions render;
  render.source = bytes;  // as if it were text
  if (!is_utf8(render_json(report, render))) std::abort();
  if (render_text(report, render).empty() != report.diagnostics.empty()) std::abort();
  return 0;
}
