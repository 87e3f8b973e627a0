#include "session/inner_values.h"

#include <fmt/format.h>

#include <algorithm>

namespace treadle::session {

namespace {

constexpr int64_t kFewElements = 64;  // trip counts, and the sizes of a shape

class Collector {
 public:
  explicit Collector(std::vector<InnerValue>& found) : found_(found) {}

  void walk(const ir::Region& region) {
    place_.push_back(-1);
    if (region.parent_node) add_all(region.inputs);
    for (const auto& node : region.nodes) {
      ++place_.back();
      for (const auto& body : node->regions) {
        around_.push_back({node->name, node->op->name, body->attribute});
        walk(*body);
        around_.pop_back();
      }
      add_all(node->outputs);
    }
    place_.pop_back();
  }

 private:
  template <class Values>
  void add_all(const Values& values) {
    for (ir::Value* v : values) {
      if (v) found_.push_back({v, name_of(*v), around_, place_});
    }
  }

  std::vector<InnerValue>& found_;
  std::vector<Enclosing> around_;
  std::vector<int64_t> place_;
};

bool is_whole(ElementType type) {
  return type == ElementType::kInt64 || type == ElementType::kInt32 || type == ElementType::kBool;
}

}  // namespace

std::string name_of(const ir::Value& value) {
  const ir::Region* const region = value.owner;
  if (!region || !region->parent_node) return std::string(value.name);
  const std::string body = fmt::format("{}:{}/", std::string_view(region->parent_node->name), region->attribute);
  // In functions names of values begin with the path already.
  return value.name.view().starts_with(body) ? std::string(value.name) : body + std::string(value.name);
}

std::vector<InnerValue> inner_values(const ir::Graph& graph) {
  std::vector<InnerValue> found;
  Collector(found).walk(graph.top());
  return found;
}

Status infer_for(ir::Graph& graph, std::span<const Feed> feeds, Inference& inference) {
  const std::vector<ir::Value*>& inputs = graph.top().inputs;
  for (const Feed& feed : feeds) {
    const auto input =
        std::find_if(inputs.begin(), inputs.end(), [&](const ir::Value* v) { return v->name == feed.name; });
    if (input == inputs.end()) return error(Code::kInvalidArgument, "the model has no input '{}'", feed.name);
    if (!feed.value->is_tensor() || !(*input)->type.is_tensor()) continue;
    const Tensor& tensor = feed.value->tensor();
    if (tensor.type() != (*input)->type.element) continue;  // the run says that it does not fit
    (*input)->type = Type::tensor(tensor.type(), to_shape(tensor.dims()));
    if (is_whole(tensor.type()) && tensor.element_count() <= kFewElements) inference.set_constant(*input, tensor);
  }
  return inference.infer(graph.top());
}

}  // namespace treadle::session
