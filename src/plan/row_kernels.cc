#include "plan/row_kernels.h"

#include <algorithm>

#include "op/axes.h"
#include "op/context.h"
#include "op/op_def.h"

namespace treadle::plan {

namespace {

size_t row_bytes(const ir::Value& v, int64_t iterations) {
  const auto count = known_element_count(v.type.shape);
  return static_cast<size_t>(count / iterations) * byte_width(v.type.element);
}

Operand operand_of(const ir::Value* v, const RowKernel::Operand& place, int64_t iterations, int64_t block) {
  if (!v) return {};
  Operand operand;
  operand.type = v->type.element;
  operand.dims = known_dims(v->type.shape);
  if (place.row_bytes > 0) {
    operand.dims[0] = operand.dims[0] / iterations * block;
  } else if (v->is_constant()) {
    operand.constant = v->constant.raw();
  }
  operand.strides = contiguous_strides(operand.dims);
  return operand;
}

}  // namespace

std::optional<RowKernel> rows_of_iterations(const Program& p, uint32_t at, int64_t iterations) {
  const ir::Node* node = p.node_of[at];
  const KernelCall* call = kernel_of(p, at);
  if (!call || !call->group.empty() || node->op->effects == Effects::kRandom) return {};
  const auto split = operands_of_rows(*node);
  if (!split) return {};
  const size_t inputs = node->inputs.size();
  const int64_t rows = node->outputs[0]->type.shape[0].value();
  if (rows % iterations != 0 || inputs + 2 > RowKernel::kMostOperands) return {};
  const std::vector<uint32_t>& slots = call->operands;
  RowKernel kernel;
  kernel.at = at;
  kernel.operand_count = static_cast<uint8_t>(inputs + 1);
  for (size_t i = 0; i < inputs; ++i) {
    if (!node->inputs[i]) continue;
    if (p.slots[slots[i]].storage == Storage::kHandle) return {};
    kernel.operands[i] = {slots[i], (*split)[i] ? row_bytes(*node->inputs[i], iterations) : 0};
  }
  kernel.operands[inputs] = {slots[inputs], row_bytes(*node->outputs[0], iterations)};
  return kernel;
}

bool prepare_rows(Program& p, RowKernel& rows, int64_t iterations, int64_t block, int64_t rest, int threads) {
  const ir::Node& node = *p.node_of[rows.at];
  size_t scratch = 0;
  for (const auto& [kernel, count] : {std::pair(&rows.whole, block), std::pair(&rows.rest, rest)}) {
    std::vector<Operand> in, out;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      in.push_back(operand_of(node.inputs[i], rows.operands[i], iterations, count));
    }
    out.push_back(operand_of(node.outputs[0], rows.operands[node.inputs.size()], iterations, count));
    PrepareContext context{node, in, out, p.states, *p.packs, {}, 0, nullptr, threads};
    if (!node.op->prepare(context).ok() || was_stopped()) return false;
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
