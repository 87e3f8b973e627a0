// Most operators say what they compute (PrepareContext::form). Those that move elements do not have to: their kernels
// are shown numbers instead of elements, and where the numbers end up says it all.
#include "plan/instruction_codes.h"

#include <algorithm>
#include <cstring>

#include "kernels/types.h"
#include "op/gemm.h"
#include "plan/fusion.h"

namespace treadle::plan {

namespace {

using Kind = ElementwiseForm::Kind;

// The node of an instruction that stands for one, if all it reads and writes is of known sizes.
const ir::Node* single_node(const Program& program, uint32_t pc) {
  const KernelCall* call = kernel_of(program, pc);
  if (!call || !program.node_of[pc] || call->group) return nullptr;
  const ir::Node* node = program.node_of[pc];
  const auto concrete = [](const ir::Value* v) { return !v || v->type.is_concrete(); };
  const bool known = node->op->prepare && std::all_of(node->inputs.begin(), node->inputs.end(), concrete) &&
                     std::all_of(node->outputs.begin(), node->outputs.end(), concrete);
  return known ? node : nullptr;
}

bool is_held(const ir::Value* v) {
  return v && kernels::FusedBuilder::can_hold(v->type.element);
}

int64_t count_of(const ir::Value* v) {
  return element_count_unchecked(known_dims(v->type.shape));
}

// Preparation may look at every element of a constant.
bool is_small(const ir::Node& node) {
  constexpr int64_t kLargest = 1 << 16;
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [](const ir::Value* v) { return !v || !v->is_constant() || count_of(v) <= kLargest; });
}

ReductionCode reduction_of(const ElementwiseForm& form, const ir::Node& node, const Instruction& in) {
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

ExtremeCode extreme_of(const ElementwiseForm& form, const ir::Node& node, const Instruction& in) {
  const auto& [outer, n, inner, greatest, last] = form.extreme;
  return {
      in.operands[0], in.operands[node.inputs.size()], node.inputs[0]->type.element, outer, n, inner, greatest, last};
}

// One matrix that is constant, as kernels find it packed.
StackedGemm with_packed(const StackedGemm& product, const ir::Value& b, PackCache& packs) {
  StackedGemm gemm = product;
  const Dims dims = known_dims(b.type.shape);
  if (gemm.levels.empty() && b.is_constant()) {
    gemm.pack({b.type.element, dims, contiguous_strides(dims), b.constant.raw()}, packs, b.type.element);
  }
  return gemm;
}

ProductCode product_of(const Program& program, const ElementwiseForm& form, const ir::Node& node,
                       const Instruction& in) {
  ProductCode code;
  code.type = node.outputs[0]->type.element;
  code.shape = form.product->plan.shape;
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
  if (program.packs) {
    const StackedGemm gemm = with_packed(*form.product, *node.inputs[1], *program.packs);
    if (gemm.packed && code.shape.n > kernels::kGemmDotColumns) code.panel = gemm.plan.column_step;
  }
  return code;
}

}  // namespace

// ---------------------------------------------------------------------------------------------------------------------

namespace {

constexpr int64_t kMostMoved = 1024;  // elements of an operand or a result

// Runs an instruction with memory of its own: constants as they are, the other operands as given.
class Rehearsal {
 public:
  Rehearsal(const Program& program, uint32_t pc) : in_(program.code[pc]), slots_(program.slots.size()) {
    for (size_t s = 0; s < slots_.size(); ++s) {
      if (program.slots[s].storage == Storage::kConstant) {
        slots_[s] = const_cast<void*>(program.slots[s].constant.raw());  // never written
      }
    }
    // Scratch, and what was left out.
    for (uint32_t i = 0; i < kernel_of(program, pc)->operands.size(); ++i) {
      const Slot& slot = program.slots[in_.operands[i]];
      if (slot.storage == Storage::kArena) place(i, slot.bytes);
    }
  }

  std::byte* place(uint32_t operand, size_t bytes) {
    memory_.push_back(std::make_unique<std::byte[]>(bytes + 64));
    auto* at = reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(memory_.back().get()) + 63) / 64 * 64);
    slots_[in_.operands[operand]] = at;
    return at;
  }
  bool run() { return in_.run(in_.state, slots_.data(), in_.operands) == 0; }

 private:
  const Instruction& in_;
  std::vector<void*> slots_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
};

// Operands that are moved have the type of the result; the others say where to.
bool is_moved(const ir::Node& node, size_t input) {
  const Formal* formal = node.version->input(input);
  return formal && formal->type == node.version->outputs[0].type;
}

void write_numbers(std::byte* to, size_t width, int64_t first, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const auto number = static_cast<uint64_t>(first + i);
    std::memcpy(to + static_cast<size_t>(i) * width, &number, width);
  }
}

uint64_t read_number(const std::byte* from, size_t width, size_t i) {
  uint64_t number = 0;
  std::memcpy(&number, from + i * width, width);
  return number;
}

// What becomes of numbers from `base` on, by result.
std::optional<std::vector<std::vector<uint64_t>>> rehearse(const Program& program, uint32_t pc, const ir::Node& node,
                                                           int64_t base) {
  Rehearsal rehearsal(program, pc);
  const size_t width = byte_width(node.outputs[0]->type.element);
  std::vector<std::byte*> results;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ir::Value* v = node.inputs[i];
    if (!v || !is_moved(node, i)) continue;
    const int64_t count = count_of(v);
    write_numbers(rehearsal.place(static_cast<uint32_t>(i), static_cast<size_t>(count) * width), width, base, count);
    base += count;
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const size_t bytes = static_cast<size_t>(count_of(node.outputs[i])) * width;
    results.push_back(rehearsal.place(static_cast<uint32_t>(node.inputs.size() + i), bytes));
  }
  if (!rehearsal.run()) return std::nullopt;
  std::vector<std::vector<uint64_t>> numbers;
  for (size_t i = 0; i < results.size(); ++i) {
    auto& of_result = numbers.emplace_back();
    const auto count = static_cast<size_t>(count_of(node.outputs[i]));
    for (size_t k = 0; k < count; ++k) of_result.push_back(read_number(results[i], width, k));
  }
  return numbers;
}

bool may_be_rehearsed(const ir::Node& node, const Instruction& in) {
  if (!node.op->moves_elements || node.version->outputs.empty()) return false;
  int64_t moved = 0;
  std::vector<uint32_t> seen;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ir::Value* v = node.inputs[i];
    if (!v) continue;
    if (!is_moved(node, i)) {
      if (!v->is_constant()) return false;
      continue;
    }
    // Two operands in one place cannot hold different numbers.
    const uint32_t slot = in.operands[i];
    if (!is_held(v) || count_of(v) > kMostMoved || std::find(seen.begin(), seen.end(), slot) != seen.end())
      return false;
    seen.push_back(slot);
    moved += count_of(v);
  }
  if (moved == 0) return false;
  for (const ir::Value* v : node.outputs) {
    if (!v || !is_held(v) || count_of(v) < 1 || count_of(v) > kMostMoved) return false;
  }
  return byte_width(node.outputs[0]->type.element) > 1 || moved <= 100;
}

std::optional<MoveCode> move_of(const Program& program, uint32_t pc, const ir::Node& node) {
  // What does not change when the numbers do is a constant.
  constexpr int64_t kFirst = 1, kSecond = 128;
  const auto one = rehearse(program, pc, node, kFirst), other = rehearse(program, pc, node, kSecond);
  if (!one || !other) return std::nullopt;
  const Instruction& in = program.code[pc];
  MoveCode code;
  code.type = node.outputs[0]->type.element;
  int64_t total = 0;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.inputs[i] || !is_moved(node, i)) continue;
    code.inputs.push_back({in.operands[i], count_of(node.inputs[i])});
    total += code.inputs.back().count;
  }
  for (size_t i = 0; i < one->size(); ++i) {
    MoveCode::Output output{in.operands[node.inputs.size() + i], {}};
    for (size_t k = 0; k < (*one)[i].size(); ++k) {
      const uint64_t a = (*one)[i][k], b = (*other)[i][k];
      if (a == b) {
        code.constants.push_back(a);
        output.from.push_back(-static_cast<int64_t>(code.constants.size()));
      } else if (b - a == kSecond - kFirst && a >= kFirst && a < static_cast<uint64_t>(kFirst + total)) {
        output.from.push_back(static_cast<int64_t>(a) - kFirst);
      } else {
        return std::nullopt;
      }
    }
    code.outputs.push_back(std::move(output));
  }
  return code;
}

}  // namespace

std::optional<InstructionCode> describe_instruction(const Program& program, uint32_t pc) {
  const ir::Node* node = single_node(program, pc);
  if (!node) return std::nullopt;
  if (may_be_rehearsed(*node, program.code[pc])) return move_of(program, pc, *node);
  if (node->outputs.size() != 1 || node->inputs.empty() || !is_held(node->inputs[0]) || !is_small(*node)) {
    return std::nullopt;
  }
  if (count_of(node->inputs[0]) < 1 || count_of(node->outputs[0]) < 1) return std::nullopt;
  const Instruction& in = program.code[pc];
  StateArena states;
  const ElementwiseForm form = node_form(*node, states, program.packs.get());
  switch (form.kind) {
    case Kind::kReduction:
      return reduction_of(form, *node, in);
    case Kind::kExtreme:
      return extreme_of(form, *node, in);
    case Kind::kProduct:
      return product_of(program, form, *node, in);
    default:
      return std::nullopt;
  }
}

const void* packed_constant(const Program& program, uint32_t pc) {
  const ir::Node* node = single_node(program, pc);
  if (!node || !program.packs) return nullptr;
  StateArena states;
  const ElementwiseForm form = node_form(*node, states, program.packs.get());
  return form.kind == Kind::kProduct ? with_packed(*form.product, *node->inputs[1], *program.packs).packed : nullptr;
}

}  // namespace treadle::plan
