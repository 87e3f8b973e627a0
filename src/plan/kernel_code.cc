#include "plan/kernel_code.h"

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "kernels/fused.h"
#include "op/gemm.h"
#include "op/moves.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "plan/fusion.h"

namespace treadle::plan {

namespace {

using Kind = ElementwiseForm::Kind;

bool is_held(const ir::Value* v) {
  return v && is_native(v->type.element);
}

bool is_number(const ir::Value* v) {
  return v && compute_type(v->type.element) != ComputeType::kNone;
}

using Broadcast = ElementwiseCode::Broadcast;

Broadcast broadcast_of(const Dims& dims, const Dims& strides) {
  bool dense = true, scalar = true;
  int64_t next = 1;
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d] == 1) continue;
    dense &= strides[d] == next;
    scalar &= strides[d] == 0;
    next *= dims[d];
  }
  return scalar ? Broadcast::kScalar : dense ? Broadcast::kDense : Broadcast::kOther;
}

// Combines the nodes of one instruction into an ElementwiseCode.
class Describer {
 public:
  using SourceOf = std::function<Fusion::Source(const ir::Value*)>;
  // `plain`: Where may choose elements that native code does not hold.
  Describer(ElementwiseCode& code, const std::unordered_map<const ir::Value*, uint32_t>& slots, SourceOf source_of,
            bool plain)
      : code_(code), slots_(slots), source_of_(std::move(source_of)), plain_(plain) {}

  // `form`: in_one_type.
  bool add(const ir::Node& node, const ElementwiseForm& form) {
    const ir::Value* result = node.outputs[0];
    if (node.op->alias_input >= 0) {
      base_[result] = resolve(node.inputs[static_cast<size_t>(node.op->alias_input)]);
      return true;
    }
    if (form.kind == ElementwiseForm::Kind::kNone) return false;
    const bool chooses = form.kind == ElementwiseForm::Kind::kOperation && form.op == kernels::ElementwiseOp::kWhere;
    const auto takes = [&](const ir::Value* v) { return is_held(v) || (plain_ && chooses && is_number(v)); };
    if (!takes(result)) return false;
    for (const ir::Value* v : node.inputs) {
      if (v && !takes(v)) return false;
    }
    const Dims dims = known_dims(result->type.shape);
    ElementwiseCode::Step step;
    step.to = result->type.element;
    step.converts = form.kind == ElementwiseForm::Kind::kConversion;
    step.op = form.op;
    step.params = form.params;
    step.argument_count = step.converts ? 1 : kernels::info(form.op).inputs;
    for (size_t i = 0; i < step.argument_count; ++i) {
      const size_t input = step.converts ? 0 : form.arguments[i];
      if (input >= node.inputs.size() || !node.inputs[input]) return false;
      const ir::Value* v = node.inputs[input];
      step.from = v->type.element;
      if (!argument(v, dims, i == 1 ? form.axis : -1, step.arguments[i])) return false;
    }
    made_[result] = code_.steps.size();
    code_.steps.push_back(step);
    return true;
  }

  // The step that makes the value of which `v` is an alias.
  std::optional<uint16_t> step_of(const ir::Value* v) const {
    const auto it = made_.find(resolve(v));
    if (it == made_.end()) return std::nullopt;
    return static_cast<uint16_t>(it->second);
  }

  // Numbers the results of steps behind the inputs, whose number is known only at the end.
  void finish() {
    for (ElementwiseCode::Step& step : code_.steps) {
      for (size_t i = 0; i < step.argument_count; ++i) {
        uint16_t& at = step.arguments[i];
        if (at >= kMade) at = static_cast<uint16_t>(at - kMade + code_.inputs.size());
      }
    }
  }

 private:
  static constexpr uint16_t kMade = 0x8000;

  const ir::Value* resolve(const ir::Value* v) const {
    const auto it = base_.find(v);
    return it == base_.end() ? v : it->second;
  }

  bool argument(const ir::Value* v, const Dims& dims, int64_t axis, uint16_t& at) {
    if (const auto step = step_of(v)) {
      at = static_cast<uint16_t>(kMade + *step);
      return true;
    }
    const Fusion::Source source = source_of_(v);
    const auto slot = slots_.find(source.value);
    if (slot == slots_.end()) return false;
    ElementwiseCode::Input input;
    input.slot = slot->second;
    input.type = v->type.element;
    Dims strides = broadcast_strides(source.operand, dims, axis);
    input.broadcast = source.start == 0 ? broadcast_of(dims, strides) : Broadcast::kOther;
    if (input.broadcast == Broadcast::kOther) {
      input.dims = dims;
      input.strides = std::move(strides);
      input.start = source.start;
    }
    for (size_t i = 0; i < code_.inputs.size(); ++i) {
      const ElementwiseCode::Input& known = code_.inputs[i];
      if (known.slot == input.slot && known.broadcast == input.broadcast && known.dims == input.dims &&
          known.strides == input.strides && known.start == input.start) {
        at = static_cast<uint16_t>(i);
        return true;
      }
    }
    at = static_cast<uint16_t>(code_.inputs.size());
    code_.inputs.push_back(std::move(input));
    return true;
  }

  ElementwiseCode& code_;
  const std::unordered_map<const ir::Value*, uint32_t>& slots_;
  SourceOf source_of_;
  const bool plain_;
  std::unordered_map<const ir::Value*, size_t> made_;
  std::unordered_map<const ir::Value*, const ir::Value*> base_;
};

template <class FormOf>
std::optional<ElementwiseCode> describe(std::span<const ir::Node* const> nodes, const ValueLists& values,
                                        const KernelCall& call, FormOf&& form_of, const Describer::SourceOf& source_of,
                                        const std::function<bool(const Describer&, ElementwiseCode&)>& add_more,
                                        bool plain) {
  std::unordered_map<const ir::Value*, uint32_t> slots;
  for (size_t i = 0; i < values.inputs.size(); ++i) {
    if (values.inputs[i]) slots.emplace(values.inputs[i], call.operands[i]);
  }
  ElementwiseCode code;
  Describer describer(code, slots, source_of, plain);
  for (const ir::Node* node : nodes) {
    const bool is_alias = node->op->alias_input >= 0;
    if (!describer.add(*node, is_alias ? ElementwiseForm() : form_of(*node))) return std::nullopt;
    code.count = known_element_count(node->outputs[0]->type.shape);
  }
  describer.finish();
  for (size_t i = 0; i < values.outputs.size(); ++i) {
    const auto step = describer.step_of(values.outputs[i]);
    if (!step) return std::nullopt;
    code.outputs.push_back({*step, call.operands[values.inputs.size() + i]});
  }
  if (!add_more(describer, code)) return std::nullopt;
  return code;
}

int64_t count_of(const ir::Value* v) {
  return known_element_count(v->type.shape);
}

// Kernels handle larger constants: from 256 x 256 weights on they are as fast (jit/row_product.cc; bench.py rnn, GRU).
bool is_small(const ir::Node& node) {
  constexpr int64_t kLargest = 1 << 16;
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [](const ir::Value* v) { return !v || !v->is_constant() || count_of(v) <= kLargest; });
}

ReductionCode reduction_of(const ElementwiseForm& form, const ir::Node& node, const KernelCall& in) {
  const kernels::ReducePlan& plan = *form.reduction;
  ReductionCode code;
  code.op = plan.op;
  code.from = in.operands[0];
  code.to = in.operands[node.inputs.size()];
  code.type = node.inputs[0]->type.element;
  code.columns = plan.columns;
  for (uint8_t d = 0; d < plan.kept_rank; ++d) {
    code.kept.push_back(plan.kept_dims[d]);
    code.kept_strides.push_back(plan.kept_strides[d] / plan.width);
  }
  for (uint8_t d = 0; d < plan.reduced_rank; ++d) {
    code.reduced.push_back(plan.reduced_dims[d]);
    code.reduced_strides.push_back(plan.reduced_strides[d] / plan.width);
  }
  (plan.columns ? code.kept : code.reduced).push_back(static_cast<int64_t>(plan.inner));
  (plan.columns ? code.kept_strides : code.reduced_strides).push_back(1);
  return code;
}

ArgReductionCode extreme_of(const ElementwiseForm& form, const ir::Node& node, const KernelCall& in) {
  const auto& [outer, n, inner, greatest, last] = form.arg_reduction;
  return {
      in.operands[0], in.operands[node.inputs.size()], node.inputs[0]->type.element, outer, n, inner, greatest, last};
}

// The matrix as kernels pack it, if there is one and it is constant.
const void* packed_of(const ElementwiseForm& form, const ir::Node& node) {
  return form.product->levels.empty() && node.inputs[1]->is_constant() ? form.product->packed : nullptr;
}

ProductCode product_of(const ElementwiseForm& form, const ir::Node& node, const KernelCall& in) {
  ProductCode code;
  code.stored = node.outputs[0]->type.element;
  code.type = wide_type(code.stored);
  code.shape = form.product->plan.shape;
  code.shape.b_packed = false;
  code.a = in.operands[0];
  code.b = in.operands[1];
  code.c = in.operands[node.inputs.size()];
  code.a_count = count_of(node.inputs[0]);
  code.b_count = count_of(node.inputs[1]);
  code.c_count = count_of(node.outputs[0]);
  if (node.inputs.size() > 2 && node.inputs[2] && code.shape.beta != 0) {
    code.bias = in.operands[2];
    code.bias_count = count_of(node.inputs[2]);
  }
  for (const auto& level : form.product->levels) code.stack.push_back({level.size, level.a, level.b, level.c});
  if (packed_of(form, node)) code.panels = form.product->plan.panels;
  return code;
}

std::vector<MoveCode::Region> regions_of(const ElementwiseForm& form, const ir::Node& node, const KernelCall& in) {
  std::vector<MoveCode::Region> regions;
  if (!form.regions) return regions;
  for (const CopiedRegion& r : *form.regions) {
    const uint32_t from = r.input == CopiedRegion::kConstant ? kNoSlot : in.operands[r.input];
    regions.push_back({from, in.operands[node.inputs.size() + r.output], r.in_start, r.out_start, r.dims, r.in_strides,
                       r.out_strides, r.bits});
  }
  return regions;
}

void list_elements(MoveCode& code, const Moves& moves, const ir::Node& node, const KernelCall& in) {
  for (size_t i = 0; i < moves.first.size(); ++i) {
    if (moves.first[i] >= 0) code.inputs.push_back({in.operands[i], count_of(node.inputs[i])});
  }
  bool is_constant = false;
  for (size_t i = 0; i < moves.from.size(); ++i) {
    code.outputs.push_back({in.operands[node.inputs.size() + i], moves.from[i]});
    is_constant |= *std::ranges::min_element(moves.from[i]) < 0;
  }
  if (is_constant) code.constants = moves.constants;
}

std::optional<MoveCode> move_of(const ElementwiseForm& form, const ir::Node& node, const KernelCall& in, bool plain) {
  const ir::Value* made = node.outputs[0];
  if (!is_held(made) && !(plain && is_number(made))) return std::nullopt;
  MoveCode code;
  code.type = made->type.element;
  if (form.moves) list_elements(code, *form.moves, node, in);
  code.is_listed = !code.inputs.empty();
  code.regions = regions_of(form, node, in);
  return code.is_listed || !code.regions.empty() ? std::optional(std::move(code)) : std::nullopt;
}

GatherCode gather_of(const ElementwiseForm& form, const ir::Node& node, const KernelCall& in) {
  const auto& [outer, n, row, count] = form.gather;
  const bool wide = node.inputs[1]->type.element == ElementType::kInt64;
  return {in.operands[0], in.operands[1], in.operands[2], node.inputs[0]->type.element, wide, outer, n, row, count};
}

std::optional<InstructionCode> other_of(const ir::Node& node, const ElementwiseForm& form, const KernelCall& call,
                                        bool plain) {
  if (form.kind == Kind::kMoves || (form.kind == Kind::kNone && form.regions)) return move_of(form, node, call, plain);
  if (node.outputs.size() != 1 || node.inputs.empty() || !is_held(node.inputs[0]) || !(plain || is_small(node))) {
    return std::nullopt;
  }
  // Code for any size reduces nothing to the neutral element.
  const bool may_be_empty = plain && (form.kind == Kind::kReduction || form.kind == Kind::kProduct);
  if (!may_be_empty && (count_of(node.inputs[0]) < 1 || count_of(node.outputs[0]) < 1)) return std::nullopt;
  switch (form.kind) {
    case Kind::kReduction:
      return reduction_of(form, node, call);
    case Kind::kArgReduction:
      return extreme_of(form, node, call);
    case Kind::kGather:
      return gather_of(form, node, call);
    case Kind::kProduct:
      if (!plain && !is_stored_as_computed(node.inputs[0]->type.element)) return std::nullopt;
      return product_of(form, node, call);
    default:
      return std::nullopt;
  }
}

struct Slots {
  std::vector<uint32_t> all;

  void operator()(const ReductionCode& of) { all = {of.from, of.to}; }
  void operator()(const ArgReductionCode& of) { all = {of.from, of.to}; }
  void operator()(const ProductCode& of) { all = {of.a, of.b, of.bias, of.c}; }
  void operator()(const GatherCode& of) { all = {of.data, of.index, of.to}; }
  void operator()(const MoveCode& of) { add(of); }
  template <class Code>
  void add(const Code& of) {
    for (const auto& in : of.inputs) all.push_back(in.slot);
    for (const auto& out : of.outputs) all.push_back(out.slot);
    if constexpr (requires { of.reductions; }) {
      for (const auto& reduction : of.reductions) all.push_back(reduction.slot);
    }
    if constexpr (requires { of.regions; }) {
      for (const auto& region : of.regions) all.insert(all.end(), {region.from, region.to});
    }
  }
};

}  // namespace

std::vector<uint32_t> slots_of(const KernelCode& code) {
  Slots slots;
  if (code.elementwise) slots.add(*code.elementwise);
  if (code.other) std::visit(slots, *code.other);
  return slots.all;
}

std::shared_ptr<const KernelCode> code_of_group(const Fusion& fusion, const Unit& unit, const ValueLists& values,
                                                const KernelCall& call) {
  const auto add_reductions = [&](const Describer& describer, ElementwiseCode& code) {
    size_t operand = values.inputs.size() + values.outputs.size();
    for (const ir::Node* node : unit.reductions) {
      const auto step = describer.step_of(node->inputs[0]);
      if (!step) return false;
      code.reductions.push_back({*step, call.operands[operand++], fusion.reduction(*node).op});
      code.lines = fusion.lines(*node);
    }
    return true;
  };
  auto code = describe(
      unit.nodes, values, call, [&](const ir::Node& node) { return fusion.form(node); },
      [&](const ir::Value* v) { return fusion.source(unit, v); }, add_reductions, false);
  if (!code) return nullptr;
  return std::make_shared<KernelCode>(KernelCode{std::move(code), std::nullopt, nullptr});
}

std::shared_ptr<const KernelCode> code_of_node(const ir::Node& node, const ElementwiseForm& form,
                                               const KernelCall& call, bool plain) {
  if (node.outputs.size() == 1 && node.outputs[0] && node.op->elementwise) {
    const ir::Node* const nodes[] = {&node};
    ElementwiseForm own = in_one_type(form, node);
    if (auto code = describe(
            nodes, {node.inputs, node.outputs}, call, [&](const ir::Node&) { return own; },
            [](const ir::Value* v) { return Fusion::Source{v, 0, operand_of(*v)}; },
            [](const Describer&, ElementwiseCode&) { return true; }, plain)) {
      return std::make_shared<KernelCode>(KernelCode{std::move(code), std::nullopt, nullptr});
    }
  }
  auto other = other_of(node, form, call, plain);
  if (!other) return nullptr;
  const void* packed = form.kind == Kind::kProduct ? packed_of(form, node) : nullptr;
  return std::make_shared<KernelCode>(KernelCode{std::nullopt, std::move(other), packed});
}

}  // namespace treadle::plan
