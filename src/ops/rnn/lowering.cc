#include <cstring>

#include "op/gemm.h"
#include "ops/rnn/recurrent.h"
#include "type/make_tensor.h"

namespace treadle::rnn {

using ir::Attribute;
using ir::Value;

Lowering::Lowering(LowerContext& ctx, Form form)
    : ctx_(ctx), form_(std::move(form)), hidden_(form_.hidden.value()), element_(ctx.type(kX).element) {
  time_ = extent(form_.batch_first ? 1 : 0);
  batch_ = extent(form_.batch_first ? 0 : 1);
  input_ = extent(2);
  loops_.resize(form_.directions);
}

Lowering::Extent Lowering::extent(size_t axis) {
  const Type& type = ctx_.type(kX);
  if (type.has_shape && type.shape[axis].is_known()) return {type.shape[axis].value(), nullptr};
  const auto at = static_cast<int64_t>(axis);
  return {-1, ctx_.call("Shape", {ctx_.input(kX)}, {Attribute::of("start", at), Attribute::of("end", at + 1)})};
}

Lowering::Extent Lowering::product(const Extent& a, const Extent& b) {
  if (a.known >= 0 && b.known >= 0) return {a.known * b.known, nullptr};
  return {-1, ctx_.call("Mul", {shape_of({a}), shape_of({b})})};
}

Value* Lowering::shape_of(std::initializer_list<Extent> extents) {
  std::vector<int64_t> known;
  std::vector<Value*> parts;
  for (const Extent& e : extents) {
    if (e.known >= 0) known.push_back(e.known);
    parts.push_back(e.known >= 0 ? nullptr : e.value);
  }
  if (known.size() == extents.size()) return ctx_.constant(Tensor::of_int64(known));
  size_t next = 0;
  for (Value*& part : parts) {
    if (!part) part = ctx_.constant_int64s({known[next++]});
  }
  return parts.size() == 1 ? parts[0] : ctx_.call("Concat", parts, {Attribute::of("axis", 0)});
}

Value* Lowering::reshape(Value* v, std::initializer_list<Extent> extents) {
  return ctx_.call("Reshape", {v, shape_of(extents)}, {Attribute::of("allowzero", 1)});
}

Value* Lowering::x() {
  if (x_) return x_;
  x_ = ctx_.input(kX);
  if (!form_.batch_first) return x_;
  // Swapping two axes of which one has size 1 moves no elements.
  const bool plain = batch_.known == 1 || time_.known == 1;
  x_ = plain ? reshape(x_, {time_, batch_, input_})
             : ctx_.call("Transpose", {x_}, {Attribute::of("perm", std::vector<int64_t>{1, 0, 2})});
  return x_;
}

Value* Lowering::x_rows() {
  if (!x_rows_) x_rows_ = reshape(x(), {product(time_, batch_), input_});
  return x_rows_;
}

Value* Lowering::by_step(Value* rows, int64_t columns) {
  return reshape(rows, {time_, batch_, {columns, nullptr}});
}

Value* Lowering::project(Value* weights, Value* bias, int64_t columns) {
  if (!mask()) return by_step(gemm(x_rows(), weights, bias), columns);
  Values inputs{x_rows(), weights, bias, lengths_};
  return by_step(ctx_.call("RaggedGemm", inputs, product_attributes(), "treadle"), columns);
}

Value* Lowering::weights(size_t i, size_t d) {
  if (!ctx_.has_input(i)) return nullptr;
  Value* all = ctx_.input(i);
  const auto at = static_cast<int64_t>(d);
  if (all->is_constant()) return ctx_.constant(part_of(all->constant, at, at + 1, false));
  if (form_.directions == 1) return ctx_.call("Squeeze", {all, ctx_.constant_int64s({0})});
  return ctx_.call("Gather", {all, ctx_.constant_int64(at)});
}

Value* Lowering::rows(Value* value, int64_t begin, int64_t end) {
  if (value->is_constant()) return ctx_.constant(part_of(value->constant, begin, end, true));
  return ctx_.call("Slice",
                   {value, ctx_.constant_int64s({begin}), ctx_.constant_int64s({end}), ctx_.constant_int64s({0})});
}

Value* Lowering::gemm(Value* a, Value* b, Value* addend) {
  Values inputs{a, b};
  if (addend) inputs.push_back(addend);
  return ctx_.call("Gemm", inputs, product_attributes());
}

std::vector<Attribute> Lowering::product_attributes() const {
  std::vector<Attribute> attributes{Attribute::of("transB", 1)};
  if (const Attribute* mark = ctx_.attributes().find(kOfRecurrence)) attributes.push_back(*mark);
  return attributes;
}

namespace {
Tensor zeros(ElementType type, Dims dims) {
  Tensor t = make_tensor(type, std::move(dims));
  std::memset(t.mutable_raw(), 0, t.byte_size());
  return t;
}
}  // namespace

Value* Lowering::zero() {
  return ctx_.constant(zeros(element_, {}));
}

Value* Lowering::initial(size_t i, size_t d) {
  if (!ctx_.has_input(i)) {
    if (!zeros_) {
      constexpr int64_t kLargeBatch = 4096;
      zeros_ = batch_.known >= 0 && batch_.known <= kLargeBatch
                   ? ctx_.constant(zeros(element_, {batch_.known, hidden_}))
                   : ctx_.call("Expand", {zero(), shape_of({batch_, {hidden_, nullptr}})});
    }
    return zeros_;
  }
  const int64_t axis = form_.batch_first ? 1 : 0;
  if (form_.directions == 1) return ctx_.call("Squeeze", {ctx_.input(i), ctx_.constant_int64s({axis})});
  return ctx_.call("Gather", {ctx_.input(i), ctx_.constant_int64(static_cast<int64_t>(d))},
                   {Attribute::of("axis", axis)});
}

// [T, B, 1]: whether step t is within entry b.
Value* Lowering::mask() {
  if (mask_ || !ctx_.has_input(kSequenceLens)) return mask_;
  Value* steps = shape_of({time_});
  lengths_ = ctx_.call("SequenceLengths", {ctx_.input(kSequenceLens), steps}, {}, "treadle");
  Value* times = ctx_.call("Range", {ctx_.constant_int64(0), ctx_.call("Squeeze", {steps}), ctx_.constant_int64(1)});
  mask_ = ctx_.call("Less", {ctx_.call("Unsqueeze", {times, ctx_.constant_int64s({1, 2})}),
                             ctx_.call("Unsqueeze", {lengths_, ctx_.constant_int64s({1})})});
  return mask_;
}

Type Lowering::step_type(ElementType type, int64_t columns) const {
  return Type::tensor(type, {batch_.known >= 0 ? Dim(batch_.known) : Dim(), Dim(columns)});
}

ir::Node* Lowering::cell(std::string_view op, const Values& operands, size_t d, size_t outputs) {
  std::vector<Attribute> attributes = to_attributes(form_.of_direction(d));
  for (const char* name : {"clip", "input_forget"}) {
    if (const Attribute* a = ctx_.attributes().find(name)) attributes.push_back(*a);
  }
  return ctx_.node(op, operands, outputs, std::move(attributes), "treadle");
}

Lowering::Next Lowering::freeze_ended(const Values& states, Value* h) {
  if (!within_) return {{h}, h};
  return {{ctx_.call("Where", {within_, h, states[0]})}, ctx_.call("Where", {within_, h, zero()})};
}

Lowering::Next Lowering::lstm_step(size_t d, const Values& states, Value* gates, Value* peepholes) {
  Values operands{gates, states[1]};
  if (peepholes || within_) operands.push_back(peepholes);
  if (within_) operands.push_back(within_);
  const auto& made = cell("LstmCell", operands, d, 2)->outputs;
  Value* h = within_ ? ctx_.call("Where", {within_, made[0], states[0]}) : made[0];
  return {{h, made[1]}, made[0]};
}

const char* Lowering::plain_activation(size_t d) const {
  const bool as_computed = element_ == ElementType::kFloat || element_ == ElementType::kDouble;
  if (!as_computed || ctx_.attributes().find("clip")) return nullptr;
  switch (form_.of_direction(d)[0].op) {
    case kernels::ElementwiseOp::kTanh:
      return "Tanh";
    case kernels::ElementwiseOp::kSigmoid:
      return "Sigmoid";
    case kernels::ElementwiseOp::kRelu:
      return "Relu";
    default:
      return nullptr;
  }
}

void Lowering::scan(size_t d, const Values& initial_states, const Values& projections,
                    const std::vector<int64_t>& widths, const Step& step) {
  Values inputs = initial_states;
  if (Value* m = mask()) inputs.push_back(m);
  inputs.insert(inputs.end(), projections.begin(), projections.end());
  const size_t states = initial_states.size(), scanned = inputs.size() - states;
  const int64_t reverse = form_.reverse[d];
  ir::Node* loop = ctx_.node("Scan", inputs, states + 1,
                             {Attribute::of("num_scan_inputs", static_cast<int64_t>(scanned)),
                              Attribute::of("scan_input_directions", std::vector<int64_t>(scanned, reverse)),
                              Attribute::of("scan_output_directions", std::vector<int64_t>{reverse})});
  if (mask()) loop->attributes.set(Attribute::of("masked", int64_t{1}));
  ctx_.begin_region(loop, "body");
  const std::string prefix = d ? "reverse_" : "";
  const Type state_type = step_type(element_, hidden_);
  Values before, projected;
  for (size_t i = 0; i < states; ++i) before.push_back(ctx_.region_input(prefix + (i ? "c" : "h"), state_type));
  within_ = mask() ? ctx_.region_input(prefix + "within", step_type(ElementType::kBool, 1)) : nullptr;
  for (size_t i = 0; i < projections.size(); ++i) {
    projected.push_back(ctx_.region_input(prefix + "x" + std::to_string(i), step_type(element_, widths[i])));
  }
  const Next next = step(before, projected);
  for (Value* v : next.states) ctx_.region_output(v, state_type);
  ctx_.region_output(next.y, state_type);
  ctx_.end_region();
  loops_[d].states.assign(loop->outputs.begin(), loop->outputs.end() - 1);
  loops_[d].y = loop->outputs.back();
}

Value* Lowering::stack(Values parts, int64_t axis) {
  for (Value*& part : parts) part = ctx_.call("Unsqueeze", {part, ctx_.constant_int64s({axis})});
  return parts.size() == 1 ? parts[0] : ctx_.call("Concat", parts, {Attribute::of("axis", axis)});
}

void Lowering::finish() {
  Values y;
  for (const Loop& loop : loops_) {
    // A scan without steps does not know the batch size if it is not known here.
    y.push_back(batch_.known >= 0 ? loop.y : reshape(loop.y, {time_, batch_, {hidden_, nullptr}}));
  }
  Value* all = stack(y, 1);  // [T, D, B, H]
  if (form_.batch_first) all = ctx_.call("Transpose", {all}, {Attribute::of("perm", std::vector<int64_t>{2, 0, 1, 3})});
  ctx_.set_output(0, all);
  for (size_t i = 0; i < loops_[0].states.size(); ++i) {
    Values last;
    for (const Loop& loop : loops_) last.push_back(loop.states[i]);
    ctx_.set_output(1 + i, stack(last, form_.batch_first ? 1 : 0));
  }
}

}  // namespace treadle::rnn
