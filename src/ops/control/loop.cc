#include "ops/control/loop.h"

#include <algorithm>

#include "op/axis_rules.h"
#include "op/op_def.h"
#include "ops/control/bodies.h"

namespace treadle {

namespace {

// Whether a condition stays true, followed back through the nodes from which models make it.
class StaysTrue {
 public:
  explicit StaysTrue(const LoopView& loop) : loop_(loop) {}

  bool holds(const ir::Value* v, int depth = 0) {
    constexpr int kMostDepth = 100, kMostSteps = 10'000;
    if (!v || depth > kMostDepth || ++steps_ > kMostSteps) return false;
    if (v->is_constant()) return is_true(v->constant);
    // Iterations do not change outer values, and the Loop begins only if its cond is true.
    if (v == loop_.condition()) return true;
    if (!v->producer) return begins_iteration(*v);
    const ir::Node& node = *v->producer;
    if (!node.op->domain.empty()) return false;
    const auto input_holds = [&](size_t i) { return holds(node.inputs[i], depth + 1); };
    const std::string_view op = node.op->name;
    // A condition has one element, which these operators keep.
    if (op == "Identity" || op == "Reshape" || op == "Squeeze" || op == "Unsqueeze") return input_holds(0);
    if (op == "And") return input_holds(0) && input_holds(1);
    if (op == "Or") return input_holds(0) || input_holds(1);
    if (node.op->control != Control::kIf) return false;
    const IfView::Result result = IfView(node).result(v->output_index);
    return holds(result.yes, depth + 1) && holds(result.no, depth + 1);
  }

 private:
  static bool is_true(const Tensor& value) {
    return value.type() == ElementType::kBool && value.element_count() == 1 && *value.data<bool>();
  }

  // The condition with which an iteration of this Loop, or of one around it, begins. It is true in every iteration.
  static bool begins_iteration(const ir::Value& v) {
    const ir::Node* loop = v.owner ? v.owner->parent_node : nullptr;
    return loop && loop->op->control == Control::kLoop && &v == LoopView(*loop).condition_before();
  }

  const LoopView& loop_;
  int steps_ = 0;
};

}  // namespace

bool condition_stays_true(const LoopView& loop) {
  return StaysTrue(loop).holds(loop.condition_after());
}

Status loop_axes(AxisContext& c) {
  if (is_scan(c.node()) && c.version() < 9) return looks_along("it is of an old version");
  const LoopView loop(c.node());
  AxisMap& axes = c.axes();
  if (axes.contains(loop.trip_count()) || axes.contains(loop.condition())) {
    return looks_along("its iterations depend on it");
  }
  for (size_t i = 0; i < loop.states(); ++i) axes::hand_over(axes, loop.state(i).initial, loop.state(i).before);
  for (size_t i = 0; i < loop.scan_inputs(); ++i) {
    const LoopView::ScanInput in = loop.scan_input(i);
    const auto it = axes.find(in.whole);
    if (it == axes.end()) continue;
    const int64_t axis = it->second, along = in.axis < 0 ? in.axis + in.whole->type.rank() : in.axis;
    if (axis == along) return looks_along("it runs over it");
    axes[in.element] = axis - (axis > along ? 1 : 0);
  }
  TREADLE_TRY(carry_axis(loop.body(), axes));
  if (axes.contains(loop.condition_after())) return looks_along("its condition runs along it");
  for (size_t i = 0; i < loop.states(); ++i) {
    const LoopView::State state = loop.state(i);
    TREADLE_TRY(axes::agree(axes, state.before, state.after));
    axes::hand_over(axes, state.after, state.final);
  }
  for (size_t i = 0; i < loop.scan_outputs(); ++i) {
    const LoopView::ScanOutput out = loop.scan_output(i);
    if (!out.wanted()) continue;
    axes::hand_over_stacked(axes, out.row, out.whole, out.axis < 0 ? out.axis + out.whole->type.rank() : out.axis);
  }
  return {};
}

namespace {

// The number of iterations, as far as it is known.
Dim trip_count(const InferContext& ctx, const ir::Region* body) {
  bool stays_true = true;
  if (ctx.has_input(1)) {
    const Tensor* cond = ctx.value(1);
    if (cond && cond->element_count() == 1 && !cond->int64_at(0)) return 0;
    stays_true = cond && cond->element_count() == 1 && body && condition_stays_true(LoopView(*body->parent_node));
  }
  const auto limit = ctx.has_input(0) ? ctx.dims_value(0) : std::nullopt;
  if (!limit || limit->size() != 1) return {};
  const Dim& count = (*limit)[0];
  if (count.is_known() && count.value() <= 0) return 0;
  if (!stays_true) return {};
  const auto least = count.lower_bound();
  return least && *least >= 0 ? count : max(count, 0);
}

// Types in the first iteration: counter, condition, states. Counter and condition are scalars, for any shapes of M and
// cond.
Result<std::vector<Type>> first_iteration(const InferContext& ctx) {
  std::vector<Type> types{Type::tensor(ElementType::kInt64, Shape{}), Type::tensor(ElementType::kBool, Shape{})};
  const size_t first = before_states(Control::kLoop, ctx.version()).inputs;
  for (size_t i = first; i < ctx.inputs.size(); ++i) {
    if (!ctx.inputs[i]) return error(Code::kInvalidModel, "state {} has no initial value, expected one", i - first);
    types.push_back(ctx.input(i));
  }
  return types;
}

Result<Type> state_after(const Type& initial, Type carried, const Dim& iterations, size_t i) {
  if (!initial.is_known() || iterations.is_known(0)) return initial;
  // An optional that the body fills leaves the loop as its contents.
  if (initial.kind == Type::Kind::kOptional && same_structure(*initial.child, carried)) return carried;
  auto both = unite(initial, carried);
  if (!both.ok()) {
    return error(Code::kInvalidModel, "state {} enters the body as {} and leaves it as {}, expected types that agree",
                 i, initial.to_string(), carried.to_string());
  }
  if (const auto least = iterations.lower_bound(); least && *least > 0) return carried;
  return both;
}

Result<Type> scan_output(const Type& element, const Dim& iterations, size_t i) {
  if (!element.is_known()) return Type();
  if (!element.is_tensor()) {
    return error(Code::kInvalidModel, "scan output {} of the body is {}, expected a tensor", i, element.to_string());
  }
  if (!element.has_shape) return Type::tensor(element.element);
  Shape shape{iterations};
  for (const Dim& d : element.shape) shape.push_back(d);
  return Type::tensor(element.element, std::move(shape));
}

// Rows of a loop without iterations have the sizes that the model states, and 0 where it states none.
Type row_without_iterations(const ir::Region* body, size_t output, Type inferred) {
  if (!body || output >= body->output_types.size()) return inferred;
  Type row = body->output_types[output];
  if (!row.is_tensor() || !row.has_shape) return inferred;
  for (Dim& d : row.shape) d = d.value_or(0);
  return row;
}

// A Loop without cond ignores the condition, but its body still has to return one.
Status check_condition(const ir::Region* body, const Type& type) {
  if (!type.is_known()) return {};
  const bool is_bool =
      type.is_tensor() && (type.element == ElementType::kBool || type.element == ElementType::kUndefined);
  const Dim count = is_bool && type.has_shape ? element_count(type.shape) : Dim();
  if (is_bool && (!count.is_known() || count.value() == 1)) return {};
  const ir::Value* value = body ? LoopView(*body->parent_node).condition_after() : nullptr;
  return error(Code::kInvalidModel, "the body's condition{} is {}, expected one bool",
               value ? fmt::format(" \"{}\"", value->name) : "", type.to_string());
}

Status infer_loop(InferContext& ctx) {
  TREADLE_TRY(check_one_element(ctx, 0, "M"));
  TREADLE_TRY(check_one_element(ctx, 1, "cond"));
  if (!ctx.bodies) return {};
  const ir::Region* body = ctx.bodies->region("body");
  const BeforeStates before = before_states(Control::kLoop, ctx.version());
  const size_t states = ctx.inputs.size() - std::min(ctx.inputs.size(), before.inputs);
  if (ctx.outputs.size() < states) {
    return error(Code::kInvalidModel, "Loop has {} outputs, expected at least one for each of {} states",
                 ctx.outputs.size(), states);
  }
  const size_t results = before.body_outputs + ctx.outputs.size();
  if (body) TREADLE_TRY(check_body(ctx.node, *body, before.body_inputs + states, results));
  TREADLE_ASSIGN(auto arguments, first_iteration(ctx));
  TREADLE_ASSIGN(auto types, ctx.bodies->infer("body", std::move(arguments), states));
  if (types.size() != results) return {};
  TREADLE_TRY(check_condition(body, types[0]));

  const Dim iterations = trip_count(ctx, body);
  for (size_t i = 0; i < ctx.outputs.size(); ++i) {
    const size_t output = before.body_outputs + i;
    Type& inner = types[output];
    if (i >= states && iterations.is_known(0)) inner = row_without_iterations(body, output, std::move(inner));
    TREADLE_ASSIGN(Type outer, i < states ? state_after(ctx.input(before.inputs + i), std::move(inner), iterations, i)
                                          : scan_output(inner, iterations, i - states));
    ctx.set_output(i, std::move(outer));
  }
  return {};
}

}  // namespace

}  // namespace treadle

TREADLE_OP(Loop, "") {
  op.since(1)
      .in("M", "I", Arity::kOptional)
      .in("cond", "B", Arity::kOptional)
      .in("v_initial", "V", Arity::kVariadicMixed)
      .out("v_final_and_scan_outputs", "V", Arity::kVariadicMixed)
      .required("body", ir::AttributeKind::kGraph)
      .type("V", types::kAllTensors)
      .type("I", types::kInt64s)
      .type("B", types::kBools);
  op.since(11).in("v_initial", "V", Arity::kVariadicMixed, 0);
  add_value_types(op);
  op.infer(infer_loop).control(Control::kLoop).axes(loop_axes).over_time(TimeRule::kLoop);
}
