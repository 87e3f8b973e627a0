#include "jit/late.h"

#include <algorithm>

namespace treadle::jit {

using kernels::ElementwiseOp;
using plan::ElementwiseCode;
using Step = ElementwiseCode::Step;

namespace {

bool is_extreme(const Step& step) {
  return !step.converts && (step.op == ElementwiseOp::kMin || step.op == ElementwiseOp::kMax);
}

// Writes the steps anew, one after the other.
class Sorter {
 public:
  Sorter(const ElementwiseCode& code, const std::vector<bool>& is_late)
      : old_(code), late_(is_late), inputs_(code.inputs.size()), uses_(inputs_ + code.steps.size()) {
    for (const Step& step : code.steps) {
      for (size_t i = 0; i < step.argument_count; ++i) ++uses_[step.arguments[i]];
    }
    for (const ElementwiseCode::Output& out : code.outputs) uses_[inputs_ + out.step] += 2;  // it stays
    made_.resize(uses_.size());
    for (size_t i = 0; i < inputs_; ++i) made_[i] = static_cast<uint16_t>(i);
  }

  ElementwiseCode run() {
    ElementwiseCode code = old_;
    code.steps.clear();
    for (size_t i = 0; i < old_.steps.size(); ++i) {
      Step step = old_.steps[i];
      for (size_t k = 0; k < step.argument_count; ++k) step.arguments[k] = made_[step.arguments[k]];
      if (is_extreme(step)) regroup(code, old_.steps[i], step);
      made_[inputs_ + i] = append(code, step);
    }
    for (ElementwiseCode::Output& out : code.outputs) {
      out.step = static_cast<uint16_t>(made_[inputs_ + out.step] - inputs_);
    }
    return code;
  }

 private:
  uint16_t append(ElementwiseCode& code, const Step& step) {
    code.steps.push_back(step);
    late_.push_back(std::any_of(step.arguments, step.arguments + step.argument_count,
                                [&](uint16_t argument) { return late_[argument]; }));
    return static_cast<uint16_t>(inputs_ + code.steps.size() - 1);
  }

  // `step` is to take what a step before has taken late: op(op(a, b), c) as op(a, op(b, c)).
  void regroup(ElementwiseCode& code, const Step& old, Step& step) {
    const uint16_t first = step.arguments[0], c = step.arguments[1];
    if (first < inputs_ || uses_[old.arguments[0]] != 1 || !late_[first] || late_[c]) return;
    const Step& inner = code.steps[first - inputs_];
    if (!is_extreme(inner) || inner.op != step.op || inner.from != step.from) return;
    uint16_t a = inner.arguments[0], b = inner.arguments[1];
    if (late_[b] && !late_[a] && !is_float(step.from)) std::swap(a, b);
    if (!late_[a] || late_[b]) return;
    Step rest = step;
    rest.arguments[0] = b;
    rest.arguments[1] = c;
    step.arguments[0] = a;
    step.arguments[1] = append(code, rest);
  }

  const ElementwiseCode& old_;
  std::vector<bool> late_;  // by value of the new steps
  const size_t inputs_;
  std::vector<int> uses_;       // by value of the old steps
  std::vector<uint16_t> made_;  // by value of the old steps: of the new ones
};

}  // namespace

ElementwiseCode with_late_last(const ElementwiseCode& code, const std::vector<bool>& is_late) {
  const bool none = std::find(is_late.begin(), is_late.end(), true) == is_late.end();
  if (none || std::count_if(code.steps.begin(), code.steps.end(), is_extreme) < 2) return code;
  return Sorter(code, is_late).run();
}

}  // namespace treadle::jit
