// Bytes as a model: they are imported, or refused with a Status, and what is imported holds together.

#include "fuzz/support/found.h"
#include "fuzz/support/model_hooks.h"
#include "model/import.h"
#include "model/text_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace treadle;
  model::ImportOptions options;
  options.max_inlined_nodes = 1000;
  auto file = model::binary_model(wire::MappedFile::borrow({reinterpret_cast<const char*>(data), size}));
  if (!file.ok()) return 0;
  auto graph = model::import_model(*file, options);
  fuzz::expect_sound(graph.ok() ? ir::verify(**graph) : graph.error().clone());
  return 0;
}
