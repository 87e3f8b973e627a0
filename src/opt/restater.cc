#include "opt/restater.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "opt/match.h"

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
  rewrite_nodes(graph_.top(), [this](ir::Region& region, size_t at) { return visit(region, at); });
  if (!replaced_.empty()) ir::replace_uses(graph_, replaced_);
}

size_t Restater::visit(ir::Region& region, size_t at) {
  const ir::Node& node = *region.nodes[at];
  if (node.outputs.empty() || !node.outputs[0]) return at;
  Builder build(graph_, region, at);
  build_ = &build;
  whole_ = &node;
  made_.clear();
  ir::Value* result = restate(node, loop_around(region) != nullptr);
  if (!result) return at;
  replaced_[node.outputs[0]] = result;
  note(remarks_, Change::kRestated, region, node, fmt::format("{}", fmt::join(made_, ", ")));
  take_out(region, build.at());
  return build.at() - 1;
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
  made_.emplace_back(op);
  return build_->call(op, inputs, std::move(type), fmt::format("{}:part{}", whole_->name, parts_++), attributes);
}

ir::Value* Restater::constant(std::span<const int64_t> numbers) {
  return graph_.new_constant(fmt::format("{}:numbers{}", whole_->name, parts_++), Tensor::of_int64(numbers));
}

ir::Value* Restater::reshape(ir::Value* v, const Dims& dims) {
  if (sizes_of(v) == dims) return v;
  const Type type = Type::tensor(v->type.element, to_shape(dims));
  return call("Reshape", {v, constant(dims)}, type, {ir::Attribute::of("allowzero", int64_t{0})});
}

ir::Value* Restater::reduce(std::string_view op, ir::Value* v, std::span<const int64_t> axes, bool keep) {
  Shape shape;
  for (size_t d = 0; d < v->type.shape.size(); ++d) {
    const bool away = std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end();
    if (!away || keep) shape.push_back(away ? Dim(1) : v->type.shape[d]);
  }
  return call(op, {v, constant(axes)}, Type::tensor(v->type.element, std::move(shape)),
              {ir::Attribute::of("keepdims", int64_t{keep})});
}

}  // namespace treadle::opt
