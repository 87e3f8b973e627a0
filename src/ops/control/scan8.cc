// Scan-8 has a batch axis (0) before the sequence axis (1), and its body sees neither. It is lowered to a Scan over the
// batch without states. The body of this Scan contains a Scan over time for one batch entry, with the original body:
//
//   outer iteration b:  states init[b], sequences x[b], n = sequence_lens[b]
//     x[b][0:n]            so that a reverse scan begins at n - 1
//     inner Scan           final states; outputs of n iterations
//     Pad to T with zeros  so that all entries have the same length
//
// Without sequence_lens, n is T, and nothing is cut or padded.
#include "ops/control/scan8.h"

#include "op/loop_signature.h"

namespace treadle {

namespace {

using ir::Attribute;
using ir::Value;

class Scan8 {
 public:
  Scan8(LowerContext& ctx, LoopSignature form) : ctx_(ctx), form_(std::move(form)), ragged_(ctx.has_input(0)) {}

  void run() {
    std::vector<Value*> inputs(count());
    for (size_t i = 0; i < count(); ++i) inputs[i] = ctx_.input(1 + i);
    if (ragged_) {
      Value* longest = inputs[form_.states];
      steps_ = ctx_.call("Shape", {longest}, {Attribute::of("start", 1), Attribute::of("end", 2)});
      inputs.push_back(ctx_.call("SequenceLengths", {ctx_.input(0), steps_}, {}, "treadle"));
    }
    ir::Node* outer =
        ctx_.node("Scan", inputs, outputs(), {Attribute::of("num_scan_inputs", static_cast<int64_t>(inputs.size()))});
    ctx_.begin_region(outer, "body");
    batch_entry();
    ctx_.end_region();
    drop_unwanted(*outer);
    for (size_t i = 0; i < outputs(); ++i) ctx_.set_output(i, outer->outputs[i]);
  }

 private:
  size_t count() const { return form_.states + form_.scan_inputs.size(); }
  size_t outputs() const { return form_.states + form_.scan_outputs.size(); }
  // A graph that is lowered late may have lost unused scan outputs.
  bool is_wanted(size_t output) const { return ctx_.body("body")->outputs[output] != nullptr; }
  void drop_unwanted(ir::Node& scan) const {
    for (size_t i = 0; i < outputs(); ++i) {
      if (!is_wanted(i)) scan.outputs[i] = nullptr;
    }
  }

  // The outer body. Its inputs are the states, the sequences, and n, of one batch entry.
  void batch_entry() {
    std::vector<Value*> arguments;
    for (size_t i = 0; i < count(); ++i) {
      const Type& type = ctx_.type(1 + i);
      arguments.push_back(ctx_.region_input("entry_" + std::to_string(i), Type::tensor(type.element)));
    }
    Value* length = nullptr;
    if (ragged_) {
      Value* n = ctx_.region_input("length", Type::tensor(ElementType::kInt64, Shape{}));
      length = ctx_.call("Unsqueeze", {n, ctx_.constant_int64s({0})});
      for (size_t i = form_.states; i < count(); ++i) {
        arguments[i] = ctx_.call("Slice", {arguments[i], ctx_.constant_int64s({0}), length});
      }
    }
    ir::Node* inner = scan_over_time(arguments);
    for (size_t i = 0; i < outputs(); ++i) {
      Value* result = inner->outputs[i];
      if (i < form_.states || !is_wanted(i)) {
        ctx_.region_output(result, element_type(i));
      } else {
        ctx_.region_output(ragged_ ? padded(result, length) : result, sequence_type(i));
      }
    }
  }

  ir::Node* scan_over_time(std::span<Value* const> arguments) {
    std::vector<int64_t> directions(form_.scan_inputs.size());
    for (size_t i = 0; i < directions.size(); ++i) directions[i] = form_.scan_inputs[i].reverse;
    ir::Node* scan = ctx_.node("Scan", arguments, outputs(),
                               {Attribute::of("num_scan_inputs", static_cast<int64_t>(form_.scan_inputs.size())),
                                Attribute::of("scan_input_directions", std::move(directions))});
    ctx_.begin_region(scan, "body");
    std::vector<Value*> elements(count());
    for (size_t i = 0; i < count(); ++i) {
      elements[i] = ctx_.region_input("element_" + std::to_string(i), Type::tensor(ctx_.type(1 + i).element));
    }
    const std::vector<Value*> results = ctx_.inline_body("body", elements);
    for (size_t i = 0; i < results.size(); ++i) ctx_.region_output(results[i], element_type(i));
    ctx_.end_region();
    drop_unwanted(*scan);
    return scan;
  }

  Type element_type(size_t output) const {
    const auto& known = ctx_.body("body")->output_types;
    return output < known.size() ? known[output] : Type();
  }

  // The type of output `output` of one batch entry, for all iterations together.
  Type sequence_type(size_t output) const {
    Type type = element_type(output);
    if (!type.has_shape) return type;
    const Type& scanned = ctx_.type(1 + form_.states);
    Shape shape{scanned.rank() > 1 ? scanned.shape[1] : Dim()};
    for (const Dim& d : type.shape) shape.push_back(d);
    return Type::tensor(type.element, std::move(shape));
  }

  Value* padded(Value* result, Value* length) {
    Value* missing = ctx_.call("Sub", {steps_, length});
    Value* pads = ctx_.call("Concat", {ctx_.constant_int64s({0}), missing}, {Attribute::of("axis", 0)});
    return ctx_.call("Pad", {result, pads, nullptr, ctx_.constant_int64s({0})});
  }

  LowerContext& ctx_;
  LoopSignature form_;
  bool ragged_;
  Value* steps_ = nullptr;  // T, as one element
};

}  // namespace

Status lower_scan8(LowerContext& ctx) {
  TREADLE_ASSIGN(LoopSignature form, read_signature(ctx.node(), ctx.input_count(), ctx.body("body")->outputs.size()));
  Scan8(ctx, std::move(form)).run();
  return {};
}

}  // namespace treadle
