#include "open/reading.h"

#include "model/import.h"

namespace treadle::open {

namespace {

void set_sizes(ir::Region& region, const SymbolSizes& sizes) {
  for (ir::Value* input : region.inputs) input->type.shape = with_sizes(input->type.shape, sizes);
}

}  // namespace

Reading::Reading() : inference_({.monitor = this}) {}

Result<std::unique_ptr<Reading>> Reading::of(const wire::ModelProto& model,
                                             const std::shared_ptr<wire::MappedFile>& file, const std::string& folder,
                                             const SymbolSizes& sizes) {
  std::unique_ptr<Reading> reading(new Reading);
  model::ImportOptions options;
  std::vector<Status> broken;
  options.broken = &broken;
  options.folder = folder;
  TREADLE_ASSIGN(reading->graph_, model::import_model(model, file, options));
  ir::Graph& graph = *reading->graph_;
  set_sizes(graph.top(), sizes);
  ir::for_each_node(graph.top(), [&](ir::Node& node) {
    for (auto& body : node.regions) set_sizes(*body, sizes);
  });
  for (size_t i = 0; i < graph.top().inputs.size(); ++i) {
    if (!graph.input_defaults[i].defined()) continue;
    reading->inference_.set_constant(graph.top().inputs[i], graph.input_defaults[i]);
  }
  TREADLE_TRY(reading->inference_.infer(graph.top()));
  return reading;
}

std::optional<std::vector<int64_t>> Reading::integers(const ir::Value* value) const {
  const Tensor* tensor = constant(value);
  if (!tensor || !is_integer(tensor->type()) || tensor->rank() > 1) return std::nullopt;
  const auto values = tensor->to_int64s();
  return std::vector<int64_t>(values.begin(), values.end());
}

const Status* Reading::failure(const ir::Node& node) const {
  const auto found = failures_.find(&node);
  return found == failures_.end() ? nullptr : &found->second;
}

bool Reading::allows(const ir::Node& node) {
  failures_.erase(&node);  // an earlier round of its loop
  return true;
}

void Reading::failed(const ir::Node& node, Status status, bool) {
  failures_.insert_or_assign(&node, std::move(status));
}

}  // namespace treadle::open
