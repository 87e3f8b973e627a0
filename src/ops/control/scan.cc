#include "op/loop_signature.h"
#include "op/op_def.h"
#include "ops/control/bodies.h"
#include "ops/control/loop.h"
#include "ops/control/scan8.h"

namespace treadle {

namespace {

// Merges the lengths of two axes that are scanned together.
Status merge_length(Dim& known, const Dim& other, size_t input) {
  if (known.is_known() && other.is_known() && known.value() != other.value()) {
    return unequal_lengths(input, other.value(), known.value());
  }
  if (other.is_known() || known.is_unknown()) known = other;
  return {};
}

Shape without_axis(const Shape& shape, size_t axis) {
  Shape rest;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i != axis) rest.push_back(shape[i]);
  }
  return rest;
}

Shape with_axis(const Shape& shape, size_t axis, const Dim& size) {
  Shape more;
  for (size_t i = 0; i < axis; ++i) more.push_back(shape[i]);
  more.push_back(size);
  for (size_t i = axis; i < shape.size(); ++i) more.push_back(shape[i]);
  return more;
}

Status require_tensor(const Type& type, std::string_view what, size_t i) {
  if (!type.is_known() || type.is_tensor()) return {};
  return error(Code::kInvalidModel, "{} {} is {}, expected a tensor", what, i, type.to_string());
}

// Shapes as versions 9 and later see them. Version 8 has a batch axis in front, which is removed first and put back
// last.
class ScanInference {
 public:
  ScanInference(InferContext& ctx, const LoopSignature& form) : ctx_(ctx), form_(form), batched_(ctx.version() == 8) {}

  Status run() {
    TREADLE_ASSIGN(auto arguments, arguments_of_body());
    if (!ctx_.bodies) return {};
    // States keep their shapes, so no fixed point is needed.
    TREADLE_ASSIGN(auto results, ctx_.bodies->infer("body", arguments));
    if (results.size() != ctx_.outputs.size()) return {};
    for (size_t i = 0; i < results.size(); ++i) {
      TREADLE_TRY(require_tensor(results[i], "output of the body", i));
      if (!results[i].is_known()) continue;
      TREADLE_ASSIGN(Type type, i < form_.states ? final_state(arguments[i], results[i], i)
                                                 : scan_output(results[i], i - form_.states));
      ctx_.set_output(i, batched_ ? with_batch(std::move(type)) : std::move(type));
    }
    return {};
  }

 private:
  Result<std::vector<Type>> arguments_of_body() {
    std::vector<Type> arguments;
    for (size_t i = 0; i < form_.states + form_.scan_inputs.size(); ++i) {
      const size_t input = form_.before.inputs + i;
      if (!ctx_.inputs[input]) return error(Code::kInvalidModel, "input {} is left out", input);
      Type type = ctx_.input(input);
      TREADLE_TRY(require_tensor(type, "input", input));
      if (batched_ && type.has_shape) TREADLE_TRY(take_batch(type, input));
      if (i >= form_.states && type.has_shape) TREADLE_TRY(take_time(type, i - form_.states));
      arguments.push_back(std::move(type));
    }
    return arguments;
  }

  Status take_batch(Type& type, size_t input) {
    if (type.shape.empty()) return error(Code::kInvalidModel, "input {} is a scalar, expected a batch axis", input);
    if (batch_.is_known() && type.shape[0].is_known() && batch_.value() != type.shape[0].value()) {
      return error(Code::kInvalidArgument, "input {} has batch size {}, expected that of the inputs before it, {}",
                   input, type.shape[0].value(), batch_.value());
    }
    if (type.shape[0].is_known() || batch_.is_unknown()) batch_ = type.shape[0];
    type.shape = without_axis(type.shape, 0);
    return {};
  }

  Status take_time(Type& type, size_t scan_input) {
    TREADLE_ASSIGN(const int64_t axis, normalize_axis(form_.scan_inputs[scan_input].axis, type.rank(),
                                                      batched_ ? "the sequence axis" : "scan_input_axes"));
    TREADLE_TRY(merge_length(length_, type.shape[static_cast<size_t>(axis)], scan_input));
    type.shape = without_axis(type.shape, static_cast<size_t>(axis));
    return {};
  }

  Result<Type> final_state(const Type& initial, const Type& after, size_t i) {
    if (!initial.is_known() || length_.is_known(0)) return initial;
    auto same = merge(initial, after);
    if (same.ok()) return same;
    if (initial.element == after.element) {
      const auto least = length_.lower_bound();
      if (!least || *least == 0) return unite(initial, after);  // an error only if there is an iteration
    }
    return changed_state(Code::kInvalidModel, i, 0, initial, after);
  }

  Result<Type> scan_output(const Type& element, size_t output) {
    if (!element.has_shape) return element;
    TREADLE_ASSIGN(const int64_t axis,
                   normalize_axis(form_.scan_outputs[output].axis, element.rank() + 1, "scan_output_axes"));
    return Type::tensor(element.element, with_axis(element.shape, static_cast<size_t>(axis), length_));
  }

  Type with_batch(Type type) const {
    if (type.has_shape) type.shape = with_axis(type.shape, 0, batch_);
    return type;
  }

  InferContext& ctx_;
  const LoopSignature& form_;
  const bool batched_;
  Dim length_, batch_;
};

Status infer_scan(InferContext& ctx) {
  TREADLE_ASSIGN(const LoopSignature form, read_signature(ctx.node, ctx.inputs.size(), ctx.outputs.size()));
  if (ctx.bodies) {
    if (const ir::Region* body = ctx.bodies->region("body")) {
      TREADLE_TRY(check_body(ctx.node, *body, form.states + form.scan_inputs.size(), ctx.outputs.size()));
    }
  }
  return ScanInference(ctx, form).run();
}

}  // namespace

}  // namespace treadle

TREADLE_OP(Scan, "") {
  op.since(8)
      .in("sequence_lens", "I", Arity::kOptional)
      .in("initial_state_and_scan_inputs", "V", Arity::kVariadicMixed)
      .out("final_state_and_scan_outputs", "V", Arity::kVariadicMixed)
      .required("body", ir::AttributeKind::kGraph)
      .optional("directions", ir::AttributeKind::kInts)
      .required("num_scan_inputs", ir::AttributeKind::kInt)
      .type("I", types::kInt64s)
      .type("V", types::kAllTensors);
  op.since(9)
      .drop_in("sequence_lens")
      .drop_attr("directions")
      .optional("scan_input_axes", ir::AttributeKind::kInts)
      .optional("scan_input_directions", ir::AttributeKind::kInts)
      .optional("scan_output_axes", ir::AttributeKind::kInts)
      .optional("scan_output_directions", ir::AttributeKind::kInts)
      .drop_type("I");
  op.since(11);
  op.since(16).type("V", types::kAllTensorsIr4);
  op.since(19).type("V", types::kAllTensorsIr9);
  op.since(21).type("V", types::kAllTensorsIr10);
  op.since(23).type("V", types::kAllTensorsIr11);
  op.since(24).type("V", types::kAllTensorsIr12);
  op.since(25).type("V", types::kAllTensorsIr13);
  op.infer(infer_scan).control(Control::kScan).lower_before(9, lower_scan8).axes(loop_axes).over_time(TimeRule::kScan);
}
