#include "opt/restater.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/stop.h"
#include "op/op_def.h"
#include "op/registry.h"

namespace treadle::opt {

std::optional<Dims> sizes_of(const ir::Value* v) {
  if (!v || !v->type.is_concrete()) return {};
  Dims sizes;
  for (const Dim& d : v->type.shape) {
    if (d.value() == 0) return {};
    sizes.push_back(d.value());
  }
  return sizes;
}

void Restater::run() {
  walk(graph_.top(), false);
  if (!replaced_.empty()) ir::replace_uses(graph_, replaced_);
}

void Restater::walk(ir::Region& region, bool in_loop) {
  for (size_t at = 0; at < region.nodes.size(); ++at) {
    if (stop_requested()) return;
    ir::Node& node = *region.nodes[at];
    const bool loops = node.op->control == Control::kLoop || node.op->control == Control::kScan;
    for (auto& body : node.regions) walk(*body, in_loop || loops);
    if (node.outputs.empty() || !node.outputs[0]) continue;
    region_ = &region;
    at_ = at;
    whole_ = &node;
    made_.clear();
    ir::Value* result = restate(node, in_loop);
    if (!result) continue;
    replaced_[node.outputs[0]] = result;
    note(journal_, Change::kRestated, region, node, fmt::format("{}", fmt::join(made_, ", ")));
    region.nodes.erase(region.nodes.begin() + static_cast<std::ptrdiff_t>(at_));
    at = at_ - 1;
  }
}

ir::Value* Restater::input(size_t i) const {
  if (i >= whole_->inputs.size()) return nullptr;
  const auto it = replaced_.find(whole_->inputs[i]);
  return it == replaced_.end() ? whole_->inputs[i] : it->second;
}

Type Restater::tensor(const Dims& dims) const {
  return Type::tensor(element(), to_shape(dims));
}

ir::Value* Restater::call(std::string_view op, std::initializer_list<ir::Value*> inputs, Type type,
                          std::initializer_list<ir::Attribute> attributes) {
  const OpDef& def = require_op(op);
  const std::string part = fmt::format(":part{}", parts_++);
  ir::Node* node = graph_.new_node(region_, &def, &def.newest(), std::string(whole_->name) + part, at_++);
  made_.push_back(def.name);
  for (ir::Value* v : inputs) graph_.add_input(node, v);
  for (const ir::Attribute& attribute : attributes) node->attributes.set(attribute);
  return graph_.add_output(node, std::string(whole_->outputs[0]->name) + part, std::move(type));
}

ir::Value* Restater::constant(std::span<const int64_t> numbers) {
  return graph_.new_constant(fmt::format("{}:numbers{}", whole_->name, parts_++), Tensor::of_int64(numbers));
}

ir::Value* Restater::reshape(ir::Value* v, const Dims& dims) {
  if (sizes_of(v) == dims) return v;
  return call("Reshape", {v, constant(dims)}, tensor(dims), {ir::Attribute::of("allowzero", int64_t{0})});
}

ir::Value* Restater::reduce(std::string_view op, ir::Value* v, std::span<const int64_t> axes, bool keep) {
  Shape shape;
  for (size_t d = 0; d < v->type.shape.size(); ++d) {
    const bool away = std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end();
    if (!away || keep) shape.push_back(away ? Dim(1) : v->type.shape[d]);
  }
  return call(op, {v, constant(axes)}, Type::tensor(element(), std::move(shape)),
              {ir::Attribute::of("keepdims", int64_t{keep})});
}

}  // namespace treadle::opt
