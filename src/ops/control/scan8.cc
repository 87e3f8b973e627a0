// Scan-8 has a batch axis (0) before the sequence axis (1), and its body sees neither. It becomes a Scan over the batch
// with no state; the body of that one scans over time, for one batch entry, with the original body inlined:
//
//   outer trip b:  states init[b], sequences x[b], n = sequence_lens[b]
//     x[b][0:n]            so that a reverse scan starts at n - 1
//     inner Scan           final states; outputs of n trips
//     Pad to T with zeros  so that all entries agree
//
// Without sequence_lens, n is T and there is nothing to cut or pad.
#include "ops/control/scan8.h"

#include "ops/control/scan.h"

namespace treadle {

namespace {

using ir::Attribute;
using ir::Value;

class Scan8 {
 public:
  Scan8(LowerContext& ctx, ScanForm form) : ctx_(ctx), form_(std::move(form)), ragged_(ctx.has_input(0)) {}

  void run() {
    std::vector<Value*> inputs;
    for (size_t i = 0; i < count(); ++i) inputs.push_back(ctx_.input(1 + i));
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
    for (size_t i = 0; i < outputs(); ++i) ctx_.set_output(i, outer->outputs[i]);
  }

 private:
  size_t count() const { return form_.states + form_.scan_inputs; }
  size_t outputs() const { return form_.states + form_.scan_outputs; }

  // The outer body: its inputs are the states, the sequences, and n, of one batch entry.
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
    ir::Node* inner =
        ctx_.node("Scan", arguments, outputs(),
                  {Attribute::of("num_scan_inputs", static_cast<int64_t>(form_.scan_inputs)),
                   Attribute::of("scan_input_directions",
                                 std::vector<int64_t>(form_.input_reverse.begin(), form_.input_reverse.end()))});
    ctx_.begin_region(inner, "body");
    std::vector<Value*> elements;
    for (size_t i = 0; i < count(); ++i) {
      elements.push_back(ctx_.region_input("element_" + std::to_string(i), Type::tensor(ctx_.type(1 + i).element)));
    }
    for (Value* v : ctx_.inline_body("body", elements)) ctx_.region_output(v);
    ctx_.end_region();
    for (size_t i = 0; i < outputs(); ++i) {
      Value* result = inner->outputs[i];
      ctx_.region_output(ragged_ && i >= form_.states ? padded(result, length) : result);
    }
  }

  Value* padded(Value* result, Value* length) {
    Value* missing = ctx_.call("Sub", {steps_, length});
    Value* pads = ctx_.call("Concat", {ctx_.constant_int64s({0}), missing}, {Attribute::of("axis", 0)});
    return ctx_.call("Pad", {result, pads, nullptr, ctx_.constant_int64s({0})});
  }

  LowerContext& ctx_;
  ScanForm form_;
  bool ragged_;
  Value* steps_ = nullptr;  // T, as one element
};

}  // namespace

Status lower_scan8(LowerContext& ctx) {
  TREADLE_ASSIGN(ScanForm form, scan_form(ctx.node(), 1));
  Scan8(ctx, std::move(form)).run();
  return {};
}

}  // namespace treadle
