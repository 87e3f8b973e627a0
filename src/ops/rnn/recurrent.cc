#include "ops/rnn/recurrent.h"

#include "op/axes.h"

namespace treadle::rnn {

namespace {

// Checks known axes of a direction's weights; -1 stands for any size.
Status check_shape(const InferContext& ctx, size_t i, std::string_view name, std::initializer_list<Dim> expected) {
  const Shape* shape = ctx.shape(i);
  if (!shape) return {};
  bool fits = shape->size() == expected.size();
  for (size_t axis = 0; fits && axis < expected.size(); ++axis) {
    const Dim& want = *(expected.begin() + axis);
    fits = !want.is_known() || !(*shape)[axis].is_known() || want.value() == (*shape)[axis].value();
  }
  if (fits) return {};
  if (shape->size() != expected.size()) {
    return error(Code::kInvalidArgument, "{} has shape {}, expected {} dimensions", name, to_string(*shape),
                 expected.size());
  }
  return error(Code::kInvalidArgument, "{} has shape {}, expected {}", name, to_string(*shape),
               to_string(Shape(expected)));
}

Result<bool> is_reverse(const ir::NodeInfo& node, std::string_view direction) {
  if (direction == "forward" || direction == "bidirectional") return false;
  if (direction == "reverse") return true;
  // The specification misspells the default of GRU-1.
  if (direction == "foward" && node.op->name == "GRU" && node.version->since < 3) return false;
  return error(Code::kInvalidModel, "direction is '{}', expected 'forward', 'reverse' or 'bidirectional'", direction);
}

}  // namespace

Result<Form> read_form(const ir::NodeInfo& node, const Family& family, const Type* r) {
  Form form;
  const std::string_view direction = node.attributes.get_string("direction", "forward");
  TREADLE_ASSIGN(form.reverse[0], is_reverse(node, direction));
  if (direction == "bidirectional") {
    form.directions = 2;
    form.reverse[1] = true;
  }
  const int64_t layout = node.attributes.get_int("layout");
  if (layout != 0 && layout != 1) return error(Code::kInvalidModel, "layout is {}, expected 0 or 1", layout);
  form.batch_first = layout == 1;
  if (const ir::Attribute* clip = node.attributes.find("clip"); clip && !(clip->as_float() >= 0)) {
    return error(Code::kInvalidModel, "clip is {}, expected a threshold of at least 0", clip->as_float());
  }
  if (r && r->has_shape && r->rank() == 3) form.hidden = r->shape[family.quantized ? 1 : 2];
  if (node.attributes.has("hidden_size")) {
    const int64_t size = node.attributes.get_int("hidden_size");
    if (size < 0 || (form.hidden.is_known() && form.hidden.value() != size)) {
      return error(Code::kInvalidModel, "hidden_size is {}, expected the last size of R, whose shape is {}", size,
                   r && r->has_shape ? to_string(r->shape) : std::string("?"));
    }
    form.hidden = size;
  }
  TREADLE_ASSIGN(form.activations, read_activations(node.attributes, form.directions, family.activations));
  return form;
}

Result<Form> read_form(const LowerContext& ctx, const Family& family) {
  TREADLE_ASSIGN(Form form, read_form(ctx.node(), family, &ctx.type(kR)));
  if (!form.hidden.is_known())
    return error(Code::kInvalidModel,
                 "the size of the states is not known: expected attribute hidden_size or the shape of R");
  return form;
}

Status infer(InferContext& ctx, const Family& family) {
  TREADLE_ASSIGN(const Form form, read_form(ctx.node, family, ctx.has_input(kR) ? &ctx.input(kR) : nullptr));
  const Dim directions(static_cast<int64_t>(form.directions)), gates(family.gates);
  const Dim& hidden = form.hidden;
  Dim time, batch, inputs;
  TREADLE_TRY(check_shape(ctx, kX, "X", {Dim(), Dim(), Dim()}));
  if (const Shape* x = ctx.shape(kX)) {
    time = (*x)[form.batch_first ? 1 : 0];
    batch = (*x)[form.batch_first ? 0 : 1];
    inputs = (*x)[2];
  }
  if (family.quantized) {
    TREADLE_TRY(check_shape(ctx, kW, "W", {directions, inputs, gates * hidden}));
    TREADLE_TRY(check_shape(ctx, kR, "R", {directions, hidden, gates * hidden}));
  } else {
    TREADLE_TRY(check_shape(ctx, kW, "W", {directions, gates * hidden, inputs}));
    TREADLE_TRY(check_shape(ctx, kR, "R", {directions, gates * hidden, hidden}));
  }
  TREADLE_TRY(check_shape(ctx, kB, "B", {directions, Dim(2) * gates * hidden}));
  TREADLE_TRY(check_shape(ctx, kSequenceLens, "sequence_lens", {batch}));
  TREADLE_TRY(check_shape(ctx, kP, "P", {directions, Dim(3) * hidden}));
  const Shape state = form.batch_first ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden};
  TREADLE_TRY(check_shape(ctx, kInitialH, "initial_h", {state[0], state[1], state[2]}));
  TREADLE_TRY(check_shape(ctx, kInitialC, "initial_c", {state[0], state[1], state[2]}));

  const ElementType element = ctx.element(kX);
  ctx.set_output(0, element,
                 form.batch_first ? Shape{batch, time, directions, hidden} : Shape{time, directions, batch, hidden});
  for (size_t i = 0; i < family.states; ++i) ctx.set_output(1 + i, element, state);
  return {};
}

Status recurrent_axes(AxisContext& c) {
  const bool batch_first = c.attributes().get_int("layout") != 0;
  const int64_t batch = batch_first ? 0 : 1;
  if (c.in(kX) != batch) return looks_along(c.in(kX) == 1 - batch ? "it runs over time" : "its product sums along it");
  for (size_t i = 1; i < c.inputs(); ++i) {
    const int64_t expected = i == kSequenceLens ? 0 : i == kInitialH || i == kInitialC ? batch : kNoAxis;
    if (c.present(i) && c.in(i) != expected) return looks_along("not all of its inputs run along it");
  }
  TREADLE_TRY(c.give(0, batch_first ? 0 : 2));
  TREADLE_TRY(c.give(1, batch));
  return c.give(2, batch);
}

void add_inputs(VersionBuilder& version) {
  version.in("X", "T")
      .in("W", "T")
      .in("R", "T")
      .in("B", "T", Arity::kOptional)
      .in("sequence_lens", "T1", Arity::kOptional)
      .in("initial_h", "T", Arity::kOptional);
}

void add_attributes(VersionBuilder& version) {
  version.optional("activation_alpha", ir::AttributeKind::kFloats)
      .optional("activation_beta", ir::AttributeKind::kFloats)
      .optional("activations", ir::AttributeKind::kStrings)
      .optional("clip", ir::AttributeKind::kFloat)
      .attr("direction", "forward")
      .optional("hidden_size", ir::AttributeKind::kInt);
}

}  // namespace treadle::rnn
