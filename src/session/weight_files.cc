#include "session/weight_files.h"

namespace treadle::session {

namespace {

bool has(const wire::MappedFile& file, const void* address) {
  const auto* at = static_cast<const char*>(address);
  return at >= file.bytes().data() && at < file.bytes().data() + file.bytes().size();
}

}  // namespace

WeightFiles::WeightFiles(const ir::Graph& graph) {
  for (const Tensor& tensor : graph.input_defaults) add(tensor);
  for (const ir::Value* value : graph.top().outputs) {
    if (value) add(value->constant);
  }
  ir::for_each_node(graph.top(), [&](const ir::Node& node) {
    for (const ir::Value* value : node.inputs) {
      if (value) add(value->constant);
    }
    for (const auto& body : node.regions) {
      for (const ir::Value* value : body->outputs) {
        if (value) add(value->constant);
      }
    }
    for (const ir::Attribute& attribute : node.attributes.all()) {
      if (attribute.kind == ir::AttributeKind::kTensor) add(attribute.as_tensor());
      if (attribute.kind != ir::AttributeKind::kTensors) continue;
      for (const Tensor& tensor : attribute.as_tensors()) add(tensor);
    }
  });
}

void WeightFiles::add(const Tensor& tensor) {
  if (!tensor.defined() || tensor.byte_size() == 0) return;
  for (const auto& file : files_) {
    if (has(*file, tensor.raw())) return;
  }
  if (auto file = wire::MappedFile::around(tensor.raw())) files_.push_back(std::move(file));
}

Status WeightFiles::checked(Status status) const {
  for (const auto& file : files_) TREADLE_TRY(file->unchanged());
  return status;
}

Status WeightFiles::checked_memory(Status status) const {
  for (const auto& file : files_) TREADLE_TRY(file->complete());
  return status;
}

}  // namespace treadle::session
