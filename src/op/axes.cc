#include "op/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "op/op_def.h"

namespace treadle {

namespace {

// The product of sizes [first, last).
Dim product(const Shape& shape, size_t first, size_t last) {
  Dim result = 1;
  for (size_t i = first; i < last; ++i) result = result * shape[i];
  return result;
}

bool lacks_rank(const ir::Value* v) {
  return v && v->type.is_tensor() && !v->type.has_shape;
}

Status need_ranks(const ir::Node& node) {
  if (std::any_of(node.inputs.begin(), node.inputs.end(), lacks_rank)) {
    return looks_along("the rank of its input is not known");
  }
  if (std::any_of(node.outputs.begin(), node.outputs.end(), lacks_rank)) {
    return looks_along("the rank of its result is not known");
  }
  return {};
}

bool captures_axis(const ir::Node& node, const AxisMap& axes) {
  for (const auto& body : node.regions) {
    for (const ir::Value* v : ir::captures(*body)) {
      if (axes.contains(v)) return true;
    }
  }
  return false;
}

}  // namespace

Status looks_along(std::string why) {
  return {Code::kInvalidArgument, std::move(why)};
}

Status carry_axis(const ir::Node& node, AxisMap& axes) {
  AxisContext context(node, axes);
  bool any = captures_axis(node, axes);
  for (size_t i = 0; i < context.inputs(); ++i) any |= context.runs_along(i);
  if (!any) return {};
  if (!node.op->axes)
    return looks_along(node.op->no_axes ? node.op->no_axes : "nothing is known of how it treats axes");
  TREADLE_TRY(need_ranks(node));
  return node.op->axes(context);
}

Status carry_axis(const ir::Region& region, AxisMap& axes) {
  for (const auto& node : region.nodes) {
    Status status = carry_axis(*node, axes);
    if (!status.ok()) return std::move(status).in(node->op->name + " '" + std::string(node->name) + "'");
  }
  return {};
}

int64_t same_axis(const Shape& in, int64_t axis, const Shape& out) {
  const auto at = static_cast<size_t>(axis);
  const Dim before = product(in, 0, at), behind = product(in, at + 1, in.size());
  for (size_t i = 0; i < out.size(); ++i) {
    // Both shapes have the same number of elements, so if the products agree on one side of the axis, they agree on the
    // other.
    const bool agrees = same(product(out, 0, i), before) || same(product(out, i + 1, out.size()), behind);
    if (same(out[i], in[at]) && agrees) return static_cast<int64_t>(i);
  }
  return kNoAxis;
}

std::optional<std::vector<int64_t>> constant_ints(const ir::Node& node, size_t input) {
  if (input >= node.inputs.size() || !node.inputs[input] || !node.inputs[input]->is_constant()) return std::nullopt;
  const Tensor& t = node.inputs[input]->constant;
  if (t.type() != ElementType::kInt64 && t.type() != ElementType::kInt32) return std::nullopt;
  std::vector<int64_t> values;
  for (int64_t i = 0; i < t.element_count(); ++i) values.push_back(t.int64_at(i));
  return values;
}

std::optional<std::vector<int64_t>> constant_axes(const ir::Node& node, size_t input, const char* attribute) {
  if (node.attributes.has(attribute)) {
    const auto list = node.attributes.get_ints(attribute);
    return std::vector<int64_t>(list.begin(), list.end());
  }
  if (input >= node.inputs.size() || !node.inputs[input]) return std::vector<int64_t>();
  return constant_ints(node, input);
}

// ---------------------------------------------------------------------------------------------------------------------

int NodeAxes::version() const {
  return node_.version->since;
}

bool NodeAxes::is_single(size_t i) const {
  return !present(i) || rank(i) == 0 || (rank(i) == 1 && node_.inputs[i]->type.shape[0].is_known(1));
}

AxisContext::AxisContext(const ir::Node& node, AxisMap& axes) : NodeAxes(node), axes_(axes) {
  for (const ir::Value* v : node.inputs) {
    const auto it = v ? axes.find(v) : axes.end();
    in_.push_back(it == axes.end() ? kNoAxis : it->second);
  }
}

bool AxisContext::only_runs_along(size_t input) const {
  for (size_t i = 0; i < in_.size(); ++i) {
    if ((i == input) != (in_[i] != kNoAxis)) return false;
  }
  return true;
}

int64_t AxisContext::axis(int64_t rank, int64_t otherwise, const char* name) const {
  return from_front(attributes().get_int(name, otherwise), rank);
}

Status AxisContext::give(size_t output, int64_t axis) {
  if (output < node_.outputs.size() && node_.outputs[output]) axes_[node_.outputs[output]] = axis;
  return {};
}

Status AxisContext::give_all(int64_t axis) {
  for (size_t i = 0; i < node_.outputs.size(); ++i) TREADLE_TRY(give(i, axis));
  return {};
}

// ---------------------------------------------------------------------------------------------------------------------

WidenContext::WidenContext(const ir::Node& node, const std::function<bool(const ir::Value*)>& varies)
    : NodeAxes(node), attributes_(node.attributes), operands_(node.inputs.size()) {
  for (size_t i = 0; i < node.inputs.size(); ++i) operands_[i].varies = node.inputs[i] && varies(node.inputs[i]);
}

int64_t WidenContext::axis_attribute(const char* name) const {
  const AttributeDef* def = node_.version->attribute(name);
  return attributes_.get_int(name, def && def->has_default() ? def->default_value.as_int() : 0);
}

void WidenContext::set_input(size_t i, Tensor contents) {
  if (i >= operands_.size()) operands_.resize(i + 1);
  operands_[i] = {.constant = std::move(contents)};
}

void WidenContext::align(size_t i, int64_t rank) {
  if (varies(i)) operands_[i].inserted = std::max<int64_t>(rank - this->rank(i), 0);
}

std::vector<int64_t> behind_new_axis(std::span<const int64_t> axes) {
  std::vector<int64_t> shifted(axes.begin(), axes.end());
  for (int64_t& axis : shifted) axis += axis < 0 ? 0 : 1;
  return shifted;
}

// ---------------------------------------------------------------------------------------------------------------------

namespace {

// A node as it would be after a change, with values of its own, on which inference and axis rules can be tried.
class Trial {
 public:
  explicit Trial(const ir::Node& node) { static_cast<ir::NodeInfo&>(node_) = node; }

  void set_attributes(ir::Attributes attributes) { node_.attributes = std::move(attributes); }

  void add_input(const ir::Value* like) { node_.inputs.push_back(like ? add(like->type, like->constant) : nullptr); }
  void add_input(Type type, Tensor constant = {}) { node_.inputs.push_back(add(std::move(type), std::move(constant))); }
  void add_stacked_input(Type type) {
    add_input(std::move(type));
    axes_[node_.inputs.back()] = 0;
  }

  // Whether the results have the `wanted` types (unknown types are not compared), and have the axis in front.
  Status gives(const std::vector<Type>& wanted) {
    std::vector<const Type*> types;
    std::vector<const Tensor*> contents;
    for (const ir::Value* v : node_.inputs) {
      types.push_back(v ? &v->type : nullptr);
      contents.push_back(v && v->is_constant() ? &v->constant : nullptr);
    }
    node_.input_count = static_cast<uint32_t>(types.size());
    std::vector<Type> made(wanted.size());
    InferContext context{node_, types, contents, {}, made, {}, {}};
    TREADLE_TRY(node_.op->infer(context));
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i].is_known() && !fits(made[i], wanted[i])) {
        return looks_along(fmt::format("it would make {} instead of {}", made[i].to_string(), wanted[i].to_string()));
      }
      node_.outputs.push_back(wanted[i].is_known() ? add(wanted[i]) : nullptr);
    }
    TREADLE_TRY(carry_axis(node_, axes_));
    for (const ir::Value* v : node_.outputs) {
      const auto it = v ? axes_.find(v) : axes_.end();
      if (v && (it == axes_.end() || it->second != 0)) return looks_along("its results have the axis elsewhere");
    }
    return {};
  }

 private:
  static bool fits(const Type& type, const Type& wanted) {
    return type.is_tensor() && type.has_shape && type.element == wanted.element && same(type.shape, wanted.shape);
  }

  ir::Value* add(Type type, Tensor constant = {}) {
    values_.push_back(std::make_unique<ir::Value>());
    values_.back()->type = std::move(type);
    values_.back()->constant = std::move(constant);
    return values_.back().get();
  }

  ir::Node node_;
  std::vector<std::unique_ptr<ir::Value>> values_;
  AxisMap axes_;
};

Type with_axis(const Dim& extent, int64_t inserted, const Type& type) {
  Shape shape{extent};
  for (int64_t i = 0; i < inserted; ++i) shape.push_back(1);
  for (const Dim& d : type.shape) shape.push_back(d);
  return Type::tensor(type.element, std::move(shape));
}

Type with_entries(const Dim& extent, Type type) {
  type.shape[0] = extent * type.shape[0];
  return type;
}

template <class Fn>
std::vector<Type> types_of_results(const ir::Node& node, Fn&& stacked) {
  std::vector<Type> types;
  for (const ir::Value* v : node.outputs) types.push_back(v ? stacked(v->type) : Type());
  return types;
}

Result<Stacked> widened(const ir::Node& node, const std::function<bool(const ir::Value*)>& varies, const Dim& extent) {
  WidenContext context(node, varies);
  TREADLE_TRY(node.op->widen(context));
  Trial trial(node);
  trial.set_attributes(context.attributes());
  for (size_t i = 0; i < context.operands().size(); ++i) {
    const WidenContext::Operand& operand = context.operands()[i];
    if (operand.repeated && !extent.is_known()) return looks_along("an operand has no axis");
    if (operand.constant.defined()) {
      trial.add_input(Type::tensor(operand.constant.type(), to_shape(operand.constant.dims())), operand.constant);
    } else if (operand.varies || operand.repeated) {
      trial.add_stacked_input(with_axis(extent, operand.inserted, node.inputs[i]->type));
    } else {
      trial.add_input(i < node.inputs.size() ? node.inputs[i] : nullptr);
    }
  }
  TREADLE_TRY(trial.gives(types_of_results(node, [&](const Type& t) { return with_axis(extent, 0, t); })));
  return Stacked{Stacked::Way::kWidened, context.attributes(), context.operands()};
}

Result<Stacked> merged(const ir::Node& node, const std::function<bool(const ir::Value*)>& varies, const Dim& extent) {
  Trial trial(node);
  const auto is_scalar = [](const ir::Value* v) { return v && v->type.shape.empty(); };
  if (std::any_of(node.outputs.begin(), node.outputs.end(), is_scalar)) return looks_along("its result has no axis");
  for (const ir::Value* v : node.inputs) {
    if (!v || !varies(v)) {
      trial.add_input(v);
    } else if (is_scalar(v)) {
      return looks_along("an operand has no axis");
    } else {
      trial.add_stacked_input(with_entries(extent, v->type));
    }
  }
  TREADLE_TRY(trial.gives(types_of_results(node, [&](const Type& t) { return with_entries(extent, t); })));
  return Stacked{Stacked::Way::kMerged, {}, {}};
}

}  // namespace

Result<Stacked> stack_node(const ir::Node& node, const std::function<bool(const ir::Value*)>& varies,
                           const Dim& extent) {
  const OpDef& op = *node.op;
  if (!op.axes) return looks_along(op.no_axes ? op.no_axes : "nothing is known of how it treats axes");
  if (op.alias_input >= 0) {
    const bool one =
        std::count_if(node.inputs.begin(), node.inputs.end(), [&](auto* v) { return v && varies(v); }) == 1;
    if (one && varies(node.inputs[static_cast<size_t>(op.alias_input)])) return Stacked{};
    return looks_along("its sizes vary");
  }
  const Dim count = extent.is_unknown() ? Dim::symbol("extent of the new axis") : extent;
  if (op.widen) {
    Result<Stacked> way = widened(node, varies, count);
    if (way.ok()) return way;
  }
  return merged(node, varies, count);
}

namespace {

Type with_rows(const Dim& rows, Type type) {
  type.shape[0] = rows;
  return type;
}

// Whether some rows of the result need just these rows of the operands in `chosen`.
bool gives_rows(const ir::Node& node, const std::vector<bool>& chosen) {
  static const Dim kSome = Dim::symbol("some of the rows");
  Trial trial(node);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (chosen[i]) {
      trial.add_stacked_input(with_rows(kSome, node.inputs[i]->type));
    } else {
      trial.add_input(node.inputs[i]);
    }
  }
  return trial.gives({with_rows(kSome, node.outputs[0]->type)}).ok();
}

}  // namespace

std::optional<std::vector<bool>> operands_of_rows(const ir::Node& node) {
  constexpr size_t kMostCandidates = 6;
  if (node.outputs.size() != 1 || !node.outputs[0] || !node.op->axes) return std::nullopt;
  const Type& result = node.outputs[0]->type;
  if (!result.is_concrete() || result.shape.empty()) return std::nullopt;
  std::vector<size_t> candidates;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ir::Value* v = node.inputs[i];
    if (v && v->type.rank() > 0 && same(v->type.shape[0], result.shape[0])) candidates.push_back(i);
  }
  if (candidates.size() > kMostCandidates) return std::nullopt;
  for (uint32_t choice = (1u << candidates.size()) - 1; choice > 0; --choice) {
    std::vector<bool> chosen(node.inputs.size());
    for (size_t k = 0; k < candidates.size(); ++k) chosen[candidates[k]] = (choice >> k & 1) != 0;
    if (gives_rows(node, chosen)) return chosen;
  }
  return std::nullopt;
}

}  // namespace treadle
