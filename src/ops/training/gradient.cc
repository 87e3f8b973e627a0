// Gradient and Derivative. A Gradient in a model names a part of the graph around it. Import turns it into a Derivative
// (internal) with that part as its body (model/gradients.h). The lowering of Derivative runs the body again. Behind the
// body's nodes, from the last to the first, it adds nodes that carry the derivative of y back to the arguments.

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "op/op_def.h"
#include "ops/fused/calls.h"
#include "type/make_tensor.h"

namespace treadle::training {

namespace {

using ir::Attribute;
using ir::Value;

class Backward;
using Rule = void (*)(Backward&, const ir::Node&);

class Backward {
 public:
  explicit Backward(LowerContext& ctx) : ctx_(ctx) {}

  Status run();

  // ---- Functions for rules

  Value* operator()(std::string_view op, std::initializer_list<Value*> inputs, std::vector<Attribute> attributes = {},
                    std::string_view domain = "") {
    return ctx_.call(op, inputs, std::move(attributes), domain);
  }
  LowerContext& ctx() { return ctx_; }
  Value* out() const { return node_->outputs[0]; }
  Value* in(size_t i) const { return i < node_->inputs.size() ? node_->inputs[i] : nullptr; }
  Value* g() const { return g_; }  // the derivative of y with respect to the node's result
  Value* number(double v) { return ctx_.number(v, element_); }
  Value* shape(Value* v) { return ctx_.call("Shape", {v}); }
  Value* times(Value* a, Value* b) { return ctx_.call("Mul", {a, b}); }
  Value* minus(Value* a, Value* b) { return ctx_.call("Sub", {a, b}); }

  // Sets the derivative with respect to input i, in the input's shape.
  void give(size_t i, Value* derivative) {
    Value* input = in(i);
    if (!wants(i)) return;
    Value*& sum = derivatives_[input];
    sum = sum ? ctx_.call("Add", {sum, derivative}) : derivative;
  }
  // The same for an input that was broadcast to the result.
  void give_sum(size_t i, Value* derivative) {
    if (wants(i)) give(i, summed_to(derivative, in(i)));
  }
  bool wants(size_t i) const { return in(i) && varies_.contains(in(i)); }
  void fail(std::string_view why) { problem_ = std::string(why); }

 private:
  Value* summed_to(Value* derivative, Value* like);
  void mark_varying(size_t nodes);
  Status step(const ir::Node& node);

  LowerContext& ctx_;
  ElementType element_{};
  const ir::Node* node_ = nullptr;
  Value* g_ = nullptr;
  std::string problem_;
  std::unordered_map<const Value*, Value*> derivatives_;
  std::unordered_set<const Value*> varies_;  // values that depend on the arguments
};

// The axes along which `like` was repeated depend on sizes of the run.
Value* Backward::summed_to(Value* derivative, Value* like) {
  Value *own = shape(like), *full = shape(derivative);
  Value* rank = ctx_.constant_int64s({1});
  Value* missing = ctx_.call("Sub", {ctx_.call("Reshape", {ctx_.call("Size", {full}), rank}),
                                     ctx_.call("Reshape", {ctx_.call("Size", {own}), rank})});
  Value* ones = ctx_.call("Expand", {ctx_.constant_int64(1), missing});
  Value* repeated = ctx_.call("Not", {ctx_.call("Equal", {fused::concat(ctx_, {ones, own}), full})});
  Value* axes = ctx_.call("Reshape", {ctx_.call("NonZero", {repeated}), ctx_.constant_int64s({-1})});
  Value* sum = ctx_.call("ReduceSum", {derivative, axes}, {Attribute::of("noop_with_empty_axes", 1)});
  return ctx_.call("Reshape", {sum, own}, {Attribute::of("allowzero", 1)});
}

// ---- Elements

void differentiate_add(Backward& b, const ir::Node& node) {
  for (size_t i = 0; i < node.inputs.size(); ++i) b.give_sum(i, b.g());
}

void differentiate_sub(Backward& b, const ir::Node&) {
  b.give_sum(0, b.g());
  if (b.wants(1)) b.give_sum(1, b("Neg", {b.g()}));
}

void differentiate_mul(Backward& b, const ir::Node&) {
  for (size_t i = 0; i < 2; ++i) {
    if (b.wants(i)) b.give_sum(i, b.times(b.g(), b.in(1 - i)));
  }
}

void differentiate_div(Backward& b, const ir::Node&) {
  Value* by_first = b("Div", {b.g(), b.in(1)});
  b.give_sum(0, by_first);
  if (b.wants(1)) b.give_sum(1, b("Neg", {b.times(by_first, b.out())}));
}

void differentiate_pow(Backward& b, const ir::Node&) {
  if (b.wants(0)) {
    Value* exponent = b("CastLike", {b.in(1), b.in(0)});
    Value* power = b("Pow", {b.in(0), b.minus(exponent, b.number(1))});
    b.give_sum(0, b.times(b.g(), b.times(exponent, power)));
  }
  if (b.wants(1)) b.give_sum(1, b.times(b.g(), b.times(b.out(), b("Log", {b.in(0)}))));
}

// The larger or smaller of two operands; if they are equal, the first.
void differentiate_choice(Backward& b, const ir::Node& node) {
  if (node.inputs.size() == 1) return b.give(0, b.g());
  if (node.inputs.size() != 2) return b.fail("of more than two inputs");
  const char* compare = node.op->name == "Max" ? "GreaterOrEqual" : "LessOrEqual";
  Value* is_first = b(compare, {b.in(0), b.in(1)});
  b.give_sum(0, b("Where", {is_first, b.g(), b.number(0)}));
  b.give_sum(1, b("Where", {is_first, b.number(0), b.g()}));
}

void differentiate_where(Backward& b, const ir::Node&) {
  b.give_sum(1, b("Where", {b.in(0), b.g(), b.number(0)}));
  b.give_sum(2, b("Where", {b.in(0), b.number(0), b.g()}));
}

void differentiate_mean(Backward& b, const ir::Node& node) {
  Value* part = b("Div", {b.g(), b.number(static_cast<double>(node.inputs.size()))});
  for (size_t i = 0; i < node.inputs.size(); ++i) b.give_sum(i, part);
}

void pass_on(Backward& b, const ir::Node&) {
  b.give(0, b.g());
}

// Multiplies the derivative by a factor that depends on x and the result y.
template <Value* (*kFactor)(Backward&, Value* x, Value* y)>
void multiply_by(Backward& b, const ir::Node&) {
  b.give(0, b.times(b.g(), kFactor(b, b.in(0), b.out())));
}

Value* one_where_positive(Backward& b, Value* x) {
  return b("CastLike", {b("Greater", {x, b.number(0)}), x});
}

Value* of_exp(Backward&, Value*, Value* y) {
  return y;
}
Value* of_log(Backward& b, Value* x, Value*) {
  return b("Reciprocal", {x});
}
Value* of_sqrt(Backward& b, Value*, Value* y) {
  return b("Div", {b.number(0.5), y});
}
Value* of_reciprocal(Backward& b, Value*, Value* y) {
  return b("Neg", {b.times(y, y)});
}
Value* of_neg(Backward& b, Value*, Value*) {
  return b.number(-1);
}
Value* of_abs(Backward& b, Value* x, Value*) {
  return b("Sign", {x});
}
Value* of_sin(Backward& b, Value* x, Value*) {
  return b("Cos", {x});
}
Value* of_cos(Backward& b, Value* x, Value*) {
  return b("Neg", {b("Sin", {x})});
}
Value* of_tan(Backward& b, Value*, Value* y) {
  return b("Add", {b.number(1), b.times(y, y)});
}
Value* of_tanh(Backward& b, Value*, Value* y) {
  return b.minus(b.number(1), b.times(y, y));
}
Value* of_sigmoid(Backward& b, Value*, Value* y) {
  return b.times(y, b.minus(b.number(1), y));
}
Value* of_softplus(Backward& b, Value* x, Value*) {
  return b("Sigmoid", {x});
}
Value* of_erf(Backward& b, Value* x, Value*) {
  return b.times(b.number(2 / std::sqrt(std::numbers::pi)), b("Exp", {b("Neg", {b.times(x, x)})}));
}
Value* of_relu(Backward& b, Value* x, Value*) {
  return one_where_positive(b, x);
}

void differentiate_leaky_relu(Backward& b, const ir::Node& node) {
  const double alpha = static_cast<double>(node.attributes.get_float("alpha"));
  Value* is_positive = b("GreaterOrEqual", {b.in(0), b.number(0)});
  b.give(0, b("Where", {is_positive, b.g(), b.times(b.g(), b.number(alpha))}));
}

void differentiate_clip(Backward& b, const ir::Node& node) {
  if (node.inputs.size() < 2 && !(node.attributes.find("min") || node.attributes.find("max"))) return pass_on(b, node);
  Value* stays = b("Equal", {b.in(0), b.out()});
  b.give(0, b("Where", {stays, b.g(), b.number(0)}));
}

void differentiate_cast(Backward& b, const ir::Node&) {
  b.give(0, b("CastLike", {b.g(), b.in(0)}));
}

// ---- Rows

void differentiate_softmax(Backward& b, const ir::Node& node) {
  if (node.version->since < 13) return b.fail("before operator set 13");
  Value* axis = b.ctx().constant_int64s({node.attributes.get_int("axis")});
  if (node.op->name == "LogSoftmax") {
    Value* sum = b("ReduceSum", {b.g(), axis});
    return b.give(0, b.minus(b.g(), b.times(b("Exp", {b.out()}), sum)));
  }
  Value* sum = b("ReduceSum", {b.times(b.g(), b.out()), axis});
  b.give(0, b.times(b.out(), b.minus(b.g(), sum)));
}

void differentiate_reduction(Backward& b, const ir::Node& node) {
  Value* axes = b.in(1);
  if (const auto given = node.attributes.get_ints("axes"); !given.empty()) {
    Tensor numbers = make_tensor(ElementType::kInt64, {static_cast<int64_t>(given.size())});
    std::copy(given.begin(), given.end(), numbers.mutable_data<int64_t>());
    axes = b.ctx().constant(std::move(numbers));
  }
  Value* g = b.g();
  if (node.op->name == "ReduceMean") {
    const auto count = [&](Value* v) { return b("CastLike", {b("Size", {v}), g}); };
    g = b("Div", {g, b("Div", {count(b.in(0)), count(b.out())})});
  }
  if (node.attributes.get_int("keepdims", 1) == 0 && axes) g = b("Unsqueeze", {g, axes});
  b.give(0, b("Expand", {g, b.shape(b.in(0))}));
}

// ---- Products

Value* product(Backward& b, Value* x, bool transposed_x, Value* y, bool transposed_y) {
  return b("FusedMatMul", {x, y},
           {Attribute::of("transA", static_cast<int64_t>(transposed_x)),
            Attribute::of("transB", static_cast<int64_t>(transposed_y))},
           "com.microsoft");
}

void differentiate_matmul(Backward& b, const ir::Node& node) {
  // While a rank is unknown, a product of vectors cannot be ruled out.
  for (const Value* v : node.inputs) {
    if (v->type.has_shape && v->type.shape.size() < 2) return b.fail("of a vector");
  }
  if (b.wants(0)) b.give_sum(0, product(b, b.g(), false, b.in(1), true));
  if (b.wants(1)) b.give_sum(1, product(b, b.in(0), true, b.g(), false));
}

void differentiate_gemm(Backward& b, const ir::Node& node) {
  const bool a = node.attributes.get_int("transA") != 0, t = node.attributes.get_int("transB") != 0;
  Value* g = b.times(b.g(), b.number(static_cast<double>(node.attributes.get_float("alpha"))));
  if (b.wants(0)) b.give(0, a ? product(b, b.in(1), t, g, true) : product(b, g, false, b.in(1), !t));
  if (b.wants(1)) b.give(1, t ? product(b, g, true, b.in(0), a) : product(b, b.in(0), !a, g, false));
  if (b.wants(2)) b.give_sum(2, b.times(b.g(), b.number(static_cast<double>(node.attributes.get_float("beta")))));
}

// ---- Moves

void give_shape_back(Backward& b, const ir::Node&) {
  b.give(0, b("Reshape", {b.g(), b.shape(b.in(0))}, {Attribute::of("allowzero", 1)}));
}

void differentiate_transpose(Backward& b, const ir::Node& node) {
  const auto perm = node.attributes.get_ints("perm");
  if (perm.empty()) return b.give(0, b("Transpose", {b.g()}));
  std::vector<int64_t> back(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  b.give(0, b("Transpose", {b.g()}, {Attribute::of("perm", std::move(back))}));
}

void differentiate_expand(Backward& b, const ir::Node&) {
  b.give_sum(0, b.g());
}

void differentiate_concat(Backward& b, const ir::Node& node) {
  const int64_t axis = node.attributes.get_int("axis");
  Value* begin = b.ctx().constant_int64s({0});
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    Value* end = b("Add", {begin, fused::size_of(b.ctx(), b.in(i), axis)});
    if (b.wants(i)) b.give(i, fused::slice(b.ctx(), b.g(), begin, end, axis));
    begin = end;
  }
}

// Rows that are picked more than once add up.
void differentiate_gather(Backward& b, const ir::Node& node) {
  if (node.attributes.get_int("axis") != 0) return b.fail("along another axis than the first");
  Value* zeros = b("Expand", {b.number(0), b.shape(b.in(0))});
  Value* places = fused::unsqueeze(b.ctx(), b.in(1), {-1});
  b.give(0, b("ScatterND", {zeros, places, b.g()}, {Attribute::of("reduction", "add")}));
}

const std::unordered_map<std::string_view, Rule>& rules() {
  static const std::unordered_map<std::string_view, Rule> all{
      {"Add", differentiate_add},
      {"Sum", differentiate_add},
      {"Sub", differentiate_sub},
      {"Mul", differentiate_mul},
      {"Div", differentiate_div},
      {"Pow", differentiate_pow},
      {"Max", differentiate_choice},
      {"Min", differentiate_choice},
      {"Mean", differentiate_mean},
      {"Where", differentiate_where},
      {"Identity", pass_on},
      {"Neg", multiply_by<of_neg>},
      {"Abs", multiply_by<of_abs>},
      {"Exp", multiply_by<of_exp>},
      {"Log", multiply_by<of_log>},
      {"Sqrt", multiply_by<of_sqrt>},
      {"Reciprocal", multiply_by<of_reciprocal>},
      {"Sin", multiply_by<of_sin>},
      {"Cos", multiply_by<of_cos>},
      {"Tan", multiply_by<of_tan>},
      {"Tanh", multiply_by<of_tanh>},
      {"Sigmoid", multiply_by<of_sigmoid>},
      {"Softplus", multiply_by<of_softplus>},
      {"Erf", multiply_by<of_erf>},
      {"Relu", multiply_by<of_relu>},
      {"LeakyRelu", differentiate_leaky_relu},
      {"Clip", differentiate_clip},
      {"Cast", differentiate_cast},
      {"Softmax", differentiate_softmax},
      {"LogSoftmax", differentiate_softmax},
      {"ReduceSum", differentiate_reduction},
      {"ReduceMean", differentiate_reduction},
      {"MatMul", differentiate_matmul},
      {"Gemm", differentiate_gemm},
      {"Reshape", give_shape_back},
      {"Flatten", give_shape_back},
      {"Squeeze", give_shape_back},
      {"Unsqueeze", give_shape_back},
      {"Transpose", differentiate_transpose},
      {"Expand", differentiate_expand},
      {"Concat", differentiate_concat},
      {"Gather", differentiate_gather},
  };
  return all;
}

// Results that depend on sizes alone have no derivative.
bool is_of_sizes(const ir::Node& node) {
  return node.op->name == "Shape" || node.op->name == "Size";
}

void Backward::mark_varying(size_t nodes) {
  for (size_t i = 0; i < nodes; ++i) {
    const ir::Node& node = *ctx_.region()->nodes[i];
    if (is_of_sizes(node)) continue;
    for (const Value* v : node.inputs) {
      if (!v || !varies_.contains(v)) continue;
      for (const Value* made : node.outputs) varies_.insert(made);
    }
  }
}

Status Backward::step(const ir::Node& node) {
  node_ = &node;
  const auto it = node.outputs.empty() ? derivatives_.end() : derivatives_.find(node.outputs[0]);
  if (it == derivatives_.end()) return {};
  g_ = it->second;
  const auto rule = node.op->domain.empty() ? rules().find(node.op->name) : rules().end();
  if (rule == rules().end()) {
    return error(Code::kNotImplemented, "Gradient does not differentiate operator {}", node.op->name);
  }
  rule->second(*this, node);
  if (problem_.empty()) return {};
  return error(Code::kNotImplemented, "Gradient does not differentiate {} {}", node.op->name, problem_);
}

Status Backward::run() {
  std::vector<Value*> arguments;
  for (size_t i = 0; i < ctx_.input_count(); ++i) arguments.push_back(ctx_.input(i));
  Value* y = ctx_.inline_body("function", arguments)[0];
  element_ = ctx_.type(0).element;
  const size_t results = ctx_.node().output_count, nodes = ctx_.region()->nodes.size();
  varies_.insert(arguments.begin(), arguments.begin() + static_cast<ptrdiff_t>(results));
  mark_varying(nodes);
  derivatives_[y] = ctx_.call("Expand", {number(1), shape(y)});
  for (size_t i = nodes; i-- > 0;) {
    const ir::Node& node = *ctx_.region()->nodes[i];
    if (!node.outputs.empty() && varies_.contains(node.outputs[0])) TREADLE_TRY(step(node));
  }
  for (size_t i = 0; i < results; ++i) {
    const auto it = derivatives_.find(arguments[i]);
    ctx_.set_output(i, it != derivatives_.end() ? it->second : ctx_.call("Expand", {number(0), shape(arguments[i])}));
  }
  return {};
}

Status lower_derivative(LowerContext& ctx) {
  return Backward(ctx).run();
}

Status infer_derivative(InferContext& ctx) {
  for (size_t i = 0; i < ctx.outputs.size(); ++i) {
    if (!is_float(ctx.element(i)) || ctx.element(i) != ctx.element(0)) {
      return error(Code::kInvalidArgument,
                   "the arguments of Gradient have types {} and {}, expected floats of one type", name(ctx.element(0)),
                   name(ctx.element(i)));
    }
    ctx.set_output(i, ctx.input(i));
  }
  return {};
}

Status lower_alone(LowerContext&) {
  return error(Code::kInvalidModel, "Gradient is expected in a graph whose part it differentiates");
}

}  // namespace

}  // namespace treadle::training

TREADLE_OP(Gradient, "ai.onnx.preview.training") {
  op.since(1)
      .in("Inputs", "T1", Arity::kVariadicMixed)
      .out("Outputs", "T2", Arity::kVariadicMixed)
      .required("xs", ir::AttributeKind::kStrings)
      .required("y", ir::AttributeKind::kString)
      .optional("zs", ir::AttributeKind::kStrings)
      .type("T1", types::kAllTensors)
      .type("T2", types::kFloats);
  op.infer(training::infer_derivative)
      .lower(training::lower_alone)
      .can_fail()
      .no_axes("it stands for a part of a graph");
}

TREADLE_OP(Derivative, "treadle") {
  op.since(1)
      .in("arguments", "T1", Arity::kVariadicMixed)
      .out("derivatives", "T2", Arity::kVariadicMixed)
      .required("function", ir::AttributeKind::kGraph)
      .type("T1", types::kAllTensors)
      .type("T2", types::kFloats);
  op.infer(training::infer_derivative)
      .lower(training::lower_derivative)
      .can_fail()
      .no_axes("its function may run along any");
}
