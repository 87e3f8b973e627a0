#include "plan/row_kernels.h"

#include <algorithm>

#include "op/context.h"
#include "op/op_def.h"

namespace treadle::plan {

namespace {

// Per operand, whether a block of its leading axis gives that block of the result's; false: it does not.
bool split_operands(const ir::Node& node, std::vector<bool>& split) {
  const std::string& name = node.op->name;
  if (node.outputs.size() != 1 || !node.outputs[0]) return false;
  const Shape& out = node.outputs[0]->type.shape;
  if (out.empty()) return false;
  const auto leads = [&](const ir::Value* v) {
    return v && v->type.shape.size() == out.size() && v->type.shape[0].is_known(out[0].value());
  };
  split.clear();
  if (name == "Gemm" || name == "RaggedGemm") {
    if (node.attributes.get_int("transA") != 0) return false;
    for (size_t i = 0; i < node.inputs.size(); ++i) split.push_back(i == 0 || (i == 2 && leads(node.inputs[i])));
    return true;
  }
  if (node.op->batch == BatchRule::kMatMul) {
    if (node.inputs.size() != 2 || node.inputs[0]->type.shape.size() < 2 || node.inputs[1]->type.shape.size() > 2) {
      return false;
    }
    split = {true, false};
    return leads(node.inputs[0]) || node.inputs[1]->type.shape.size() == 1;
  }
  if (name == "Transpose") {
    const auto perm = node.attributes.get_ints("perm");
    split = {true};
    return !perm.empty() && perm[0] == 0;
  }
  if (node.op->batch != BatchRule::kElementwise) return false;
  for (const ir::Value* v : node.inputs) split.push_back(leads(v));
  return true;
}

size_t row_bytes(const ir::Value& v, int64_t trips) {
  const auto count = element_count_unchecked(known_dims(v.type.shape));
  return static_cast<size_t>(count / trips) * byte_width(v.type.element);
}

Operand operand_of(const ir::Value* v, const RowKernel::Operand& place, int64_t trips, int64_t block) {
  if (!v) return {};
  Operand operand;
  operand.type = v->type.element;
  operand.dims = known_dims(v->type.shape);
  if (place.row_bytes > 0) {
    operand.dims[0] = operand.dims[0] / trips * block;
  } else if (v->is_constant()) {
    operand.constant = v->constant.raw();
  }
  operand.strides = contiguous_strides(operand.dims);
  return operand;
}

}  // namespace

std::optional<RowKernel> rows_of_trips(const Program& p, uint32_t at, int64_t trips) {
  const ir::Node* node = p.node_of[at];
  const KernelCall* call = kernel_of(p, at);
  if (!call || call->group || node->op->effects == Effects::kRandom) return {};
  std::vector<bool> split;
  if (!split_operands(*node, split)) return {};
  const size_t inputs = node->inputs.size();
  const int64_t rows = node->outputs[0]->type.shape[0].value();
  if (rows % trips != 0 || inputs + 2 > RowKernel::kMostOperands) return {};
  const std::vector<uint32_t>& slots = call->operands;
  RowKernel kernel;
  kernel.at = at;
  kernel.operand_count = static_cast<uint8_t>(inputs + 1);
  for (size_t i = 0; i < inputs; ++i) {
    if (!node->inputs[i]) continue;
    if (p.slots[slots[i]].storage == Storage::kHandle) return {};
    kernel.operands[i] = {slots[i], split[i] ? row_bytes(*node->inputs[i], trips) : 0};
  }
  kernel.operands[inputs] = {slots[inputs], row_bytes(*node->outputs[0], trips)};
  return kernel;
}

bool prepare_rows(Program& p, RowKernel& rows, int64_t trips, int64_t block, int64_t rest, int threads) {
  const ir::Node& node = *p.node_of[rows.at];
  size_t scratch = 0;
  for (const auto& [kernel, count] : {std::pair(&rows.whole, block), std::pair(&rows.rest, rest)}) {
    std::vector<Operand> in, out;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      in.push_back(operand_of(node.inputs[i], rows.operands[i], trips, count));
    }
    out.push_back(operand_of(node.outputs[0], rows.operands[node.inputs.size()], trips, count));
    PrepareContext context{node, in, out, p.states, *p.packs, {}, 0, nullptr, threads};
    if (!node.op->prepare(context).ok()) return false;
    *kernel = context.kernel;
    scratch = std::max(scratch, context.scratch_bytes);
  }
  RowKernel::Operand& place = rows.operands[rows.operand_count++];
  if (scratch == 0) return true;
  Slot slot;
  slot.storage = Storage::kArena;
  slot.bytes = scratch;
  p.slots.push_back(std::move(slot));
  place.slot = static_cast<uint32_t>(p.slots.size() - 1);
  return true;
}

}  // namespace treadle::plan
