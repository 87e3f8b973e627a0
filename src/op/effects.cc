#include "op/effects.h"

#include <algorithm>

#include "op/op_def.h"

namespace treadle {

namespace {

// Larger constants are not searched.
constexpr int64_t kMaxLookedAt = 4096;

bool has_known_size(const ir::Value* v) {
  return !v || v->type.is_concrete();
}

}  // namespace

bool can_fail(const ir::Node& node) {
  const ir::Value* first = node.inputs.empty() ? nullptr : node.inputs[0];
  if (!node.op->can_fail(first ? first->type.element : ElementType::kUndefined)) return false;
  return !(node.op->total_if && node.op->total_if(node));
}

bool picks_by_constants(const ir::Node& node) {
  const ir::Value *data = node.inputs[0], *indices = node.inputs[1];
  if (!data || !indices || !indices->is_constant() || !data->type.has_shape || data->type.shape.empty()) return false;
  const Tensor& t = indices->constant;
  int64_t axis = node.attributes.get_int("axis");
  if (axis < 0) axis += data->type.rank();
  if (t.element_count() > kMaxLookedAt || axis < 0 || axis >= data->type.rank()) return false;
  const Dim& size = data->type.shape[static_cast<size_t>(axis)];
  for (int64_t i = 0; i < t.element_count(); ++i) {
    if (!size.is_known() || t.int64_at(i) < -size.value() || t.int64_at(i) >= size.value()) return false;
  }
  return true;
}

bool knows_shape_inputs(const ir::Node& node) {
  for (size_t i = 0; i < node.inputs.size() && i < 64; ++i) {
    if ((node.op->shape_inputs >> i & 1) && node.inputs[i] && !node.inputs[i]->is_constant()) return false;
  }
  return true;
}

bool is_total(const ir::Node& node) {
  if (!node.regions.empty() || node.op->control != Control::kNone || node.inputs.empty()) return false;
  if (node.op->effects == Effects::kRandom || can_fail(node) || !knows_shape_inputs(node)) return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(), has_known_size) &&
         std::all_of(node.outputs.begin(), node.outputs.end(), has_known_size);
}

}  // namespace treadle
