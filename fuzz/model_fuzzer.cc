// Bytes as a model: they are imported, or refused with a Status, and what is imported holds together.
// Small models make good seeds.

#include <cstdint>
#include <cstdlib>

#include "model/import.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace treadle;
  model::ImportOptions options;
  options.max_inlined_nodes = 1000;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto graph = model::import_model(wire::MappedFile::borrow(bytes), options);
  if (graph.ok() ? !ir::verify(**graph).ok() : graph.error().code() == Code::kInternal) std::abort();
  return 0;
}
