#include "plan/dynamic_code.h"

#include <algorithm>

namespace treadle::plan {

namespace {

// Reductions that native code writes for any size.
bool is_written(kernels::ReduceOp op) {
  using kernels::ReduceOp;
  constexpr ReduceOp kWritten[] = {ReduceOp::kSum, ReduceOp::kMean, ReduceOp::kMax,
                                   ReduceOp::kMin, ReduceOp::kL2,   ReduceOp::kSumSquare};
  return std::ranges::find(kWritten, op) != std::end(kWritten);
}

class DynamicDescriber {
 public:
  DynamicDescriber(const Program& program, uint32_t pc)
      : p_(program), pc_(pc), dynamic_(program.dynamic[program.code[pc].index]), node_(*dynamic_.node) {}

  std::optional<DynamicCode> run() {
    if (!node_.op->domain.empty() || dynamic_.kernel.takes_texts) return {};
    for (size_t i = 0; i < dynamic_.outputs.size(); ++i) {
      const uint32_t s = dynamic_.outputs[i];
      if (s == kNoSlot || p_.slots[s].storage != Storage::kHandle || !is_held(s, *node_.outputs[i])) return {};
    }
    for (size_t i = 0; i < dynamic_.inputs.size(); ++i) {
      if (input(i) != kNoSlot && !is_held(input(i), *node_.inputs[i])) return {};
    }
    auto code = node_.op->elementwise ? elementwise() : other();
    if (!code) return {};
    const bool is_longer = makes_rows_longer(*code);
    // A value that grows in another layout is not row-major.
    if (dynamic_.growth != Growth::kNone && (dynamic_.growth != Growth::kRows || !is_longer)) return {};
    code->appends = is_longer && makes_state_longer();
    for (size_t i = 0; i < dynamic_.inputs.size(); ++i) {
      code->planned.push_back(is_planned(i) ? known_dims(node_.inputs[i]->type.shape) : Dims());
    }
    return code;
  }

 private:
  std::optional<DynamicCode> other() {
    switch (node_.op->sizes) {
      case SizeRule::kReduce:
        return reduction();
      case SizeRule::kSlice:
        return slice();
      case SizeRule::kConcat:
        return concat();
      case SizeRule::kReshape:
        return reshape();
      case SizeRule::kSqueeze:
        return squeeze();
      case SizeRule::kUnsqueeze:
        return unsqueeze();
      case SizeRule::kSplit:
        return split();
      case SizeRule::kRange:
        return range();
      case SizeRule::kNone:
      case SizeRule::kBroadcast:
      case SizeRule::kGather:
        return std::nullopt;
    }
    return std::nullopt;
  }

  static DynamicCode of(SizeRule rule, int64_t axis = 0, Dims axes = {}) {
    DynamicCode code;
    code.rule = rule;
    code.axis = axis;
    code.axes = std::move(axes);
    return code;
  }
  // Whether native code can hold the value. Values in planned memory may share a slot, whose type may have other sizes.
  bool is_held(uint32_t s, const ir::Value& value) const {
    const Slot& slot = p_.slots[s];
    if (!slot.type.is_tensor() || !value.type.is_tensor() || !is_native(slot.type.element)) return false;
    if (value.type.element != slot.type.element || !value.type.has_shape) return false;
    if (slot.storage != Storage::kHandle) return is_known(value.type.shape);
    return slot.type.has_shape && slot.type.shape.size() == value.type.shape.size();
  }
  // Whether the first operand of a Concat is the beginning of the result's memory.
  bool makes_rows_longer(const DynamicCode& code) const {
    if (code.rule != SizeRule::kConcat) return false;
    const Shape& base = p_.slots[input(0)].type.shape;
    const auto is_one = [](const Dim& size) { return size.is_known(1); };
    return std::all_of(base.begin(), base.begin() + code.axis, is_one);
  }
  bool makes_state_longer() const {
    const auto is_state = [this](const LoopState& state) {
      return state.in == dynamic_.inputs[0] && state.out == dynamic_.outputs[0];
    };
    return std::ranges::any_of(p_.loops, [&](const Loop& loop) {
      return loop.first <= pc_ && pc_ <= loop.last && std::ranges::any_of(loop.states, is_state);
    });
  }
  int64_t rank(size_t i) const { return static_cast<int64_t>(node_.inputs[i]->type.shape.size()); }
  int64_t rank_of_result() const { return static_cast<int64_t>(node_.outputs[0]->type.shape.size()); }
  // The number of elements of a planned list.
  Dim length(size_t i) const { return element_count(node_.inputs[i]->type.shape); }
  uint32_t input(size_t i) const { return i < dynamic_.inputs.size() ? dynamic_.inputs[i] : kNoSlot; }
  bool is_planned(size_t i) const { return input(i) != kNoSlot && p_.slots[input(i)].storage != Storage::kHandle; }

  // The contents of a constant list; of the attribute if there is no such input.
  std::optional<Dims> list(size_t i, const char* attribute) const {
    Dims found;
    if (input(i) == kNoSlot) {
      for (const int64_t number : node_.attributes.get_ints(attribute)) found.push_back(number);
      return found;
    }
    const Slot& slot = p_.slots[input(i)];
    if (slot.storage != Storage::kConstant || !is_integer(slot.type.element)) return std::nullopt;
    for (const int64_t number : slot.constant.to_int64s()) found.push_back(number);
    return found;
  }
  // The axes that an operand or attribute names, counted from the front, in order; nullopt if they are unknown or
  // invalid.
  std::optional<Dims> axes(size_t i, int64_t rank) const {
    auto found = list(i, "axes");
    if (!found) return std::nullopt;
    for (int64_t& axis : *found) {
      const auto at = normalize_axis(axis, rank);
      if (!at.ok()) return std::nullopt;
      axis = *at;
    }
    for (size_t a = 1; a < found->size(); ++a) {
      if (std::find(found->begin(), found->begin() + static_cast<std::ptrdiff_t>(a), (*found)[a]) !=
          found->begin() + static_cast<std::ptrdiff_t>(a)) {
        return std::nullopt;
      }
    }
    return found;
  }

  std::optional<DynamicCode> elementwise() {
    const auto one_element = [](const ir::Value* v) {
      Operand operand;
      if (v) operand.type = v->type.element;
      return operand;
    };
    std::vector<Operand> in;
    for (const ir::Value* v : node_.inputs) in.push_back(one_element(v));
    ElementwiseForm form;
    with_form(node_, in, one_element(node_.outputs[0]),
              [&](const ElementwiseForm& said) { form = in_one_type(said, node_); });
    DynamicCode code = of(SizeRule::kBroadcast);
    ElementwiseCode::Step& step = code.step;
    step.converts = form.kind == ElementwiseForm::Kind::kConversion;
    if ((!step.converts && form.kind != ElementwiseForm::Kind::kOperation) || form.axis >= 0) return std::nullopt;
    step.to = node_.outputs[0]->type.element;
    step.op = form.op;
    step.params = form.params;
    step.argument_count = step.converts ? 1 : kernels::info(form.op).inputs;
    for (size_t i = 0; i < step.argument_count; ++i) {
      step.arguments[i] = step.converts ? 0 : form.arguments[i];
      if (input(step.arguments[i]) == kNoSlot) return std::nullopt;
      step.from = node_.inputs[step.arguments[i]]->type.element;
    }
    const bool can_fail = !step.converts && kernels::info(step.op).can_fail && !is_float(step.from);
    return can_fail ? std::nullopt : std::optional(code);
  }

  std::optional<DynamicCode> reduction() {
    if (!node_.op->reduction || !is_written(*node_.op->reduction)) return std::nullopt;
    const int64_t n = rank(0);
    const ElementType type = node_.inputs[0]->type.element;
    const auto named = axes(1, n);
    if (n == 0 || !named || (type != ElementType::kFloat && type != ElementType::kDouble)) return std::nullopt;
    const bool all = named->empty() && n == 1 && node_.attributes.get_int("noop_with_empty_axes", 0) == 0;
    if (!all && (named->size() != 1 || (*named)[0] != n - 1)) return std::nullopt;
    DynamicCode code = of(SizeRule::kReduce);
    code.reduce = *node_.op->reduction;
    code.keep = node_.attributes.get_int("keepdims", 1) != 0;
    return code;
  }

  std::optional<DynamicCode> slice() {
    if (node_.version->since < 10 || !is_planned(1) || !is_planned(2)) return std::nullopt;
    const auto count = static_cast<size_t>(length(1).value());
    DynamicCode code = of(SizeRule::kSlice);
    for (size_t i = 0; i < count; ++i) code.axes.push_back(static_cast<int64_t>(i)), code.steps.push_back(1);
    if (input(3) != kNoSlot) {
      const auto named = axes(3, rank(0));
      if (!named) return std::nullopt;
      code.axes = *named;
    }
    if (input(4) != kNoSlot) {
      const auto steps = list(4, "");
      if (!steps) return std::nullopt;
      code.steps = *steps;
    }
    const bool fits = code.axes.size() == count && code.steps.size() == count &&
                      static_cast<int64_t>(count) <= rank(0) && length(2).is_known(length(1).value());
    // The operator handles steps whose negation overflows.
    const bool steps = std::ranges::all_of(code.steps, [](int64_t s) { return s != 0 && s > INT32_MIN; });
    return fits && steps ? std::optional(code) : std::nullopt;
  }

  std::optional<DynamicCode> concat() {
    const int64_t n = rank(0);
    for (size_t i = 0; i < dynamic_.inputs.size(); ++i) {
      if (input(i) == kNoSlot || rank(i) != n) return std::nullopt;
    }
    const auto axis = normalize_axis(node_.attributes.get_int("axis", 1), n);
    return axis.ok() ? std::optional(of(SizeRule::kConcat, *axis)) : std::nullopt;
  }

  std::optional<DynamicCode> reshape() {
    if (node_.version->since < 5 || !is_planned(1) || node_.attributes.get_int("allowzero", 0) != 0)
      return std::nullopt;
    const bool fits = length(1).is_known(rank_of_result());
    return fits ? std::optional(of(SizeRule::kReshape)) : std::nullopt;
  }

  std::optional<DynamicCode> squeeze() {
    auto named = axes(1, rank(0));
    if (!named || named->empty()) return std::nullopt;
    return of(SizeRule::kSqueeze, 0, std::move(*named));
  }
  std::optional<DynamicCode> unsqueeze() {
    auto named = axes(1, rank_of_result());
    if (!named) return std::nullopt;
    return of(SizeRule::kUnsqueeze, 0, std::move(*named));
  }

  std::optional<DynamicCode> split() {
    const auto axis = normalize_axis(node_.attributes.get_int("axis", 0), rank(0));
    if (input(1) != kNoSlot || node_.attributes.has("split") || !axis.ok()) return std::nullopt;
    return of(SizeRule::kSplit, *axis);
  }

  std::optional<DynamicCode> range() {
    const ElementType type = node_.inputs[0]->type.element;
    if (type != ElementType::kInt64 && type != ElementType::kInt32) return std::nullopt;
    for (size_t i = 0; i < 3; ++i) {
      if (!is_planned(i) || !length(i).is_known(1)) return std::nullopt;
    }
    return of(SizeRule::kRange);
  }

  const Program& p_;
  const uint32_t pc_;
  const DynamicNode& dynamic_;
  const ir::Node& node_;
};

}  // namespace

std::optional<DynamicCode> dynamic_code(const Program& program, uint32_t pc) {
  const Instruction& in = program.code[pc];
  if (in.code != OpCode::kGuarded) return std::nullopt;
  return DynamicDescriber(program, pc).run();
}

}  // namespace treadle::plan
