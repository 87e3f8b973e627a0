#include "op/effects.h"

#include <algorithm>

#include "op/op_def.h"

namespace treadle {

namespace {

template <class T>
bool has_zero(const Tensor& t) {
  const T* values = t.data<T>();
  return std::find(values, values + t.element_count(), T{0}) != values + t.element_count();
}

bool has_integer_zero(const Tensor& t) {
  switch (t.type()) {
    case ElementType::kInt8:
      return has_zero<int8_t>(t);
    case ElementType::kInt16:
      return has_zero<int16_t>(t);
    case ElementType::kInt32:
      return has_zero<int32_t>(t);
    case ElementType::kInt64:
      return has_zero<int64_t>(t);
    case ElementType::kUint8:
      return has_zero<uint8_t>(t);
    case ElementType::kUint16:
      return has_zero<uint16_t>(t);
    case ElementType::kUint32:
      return has_zero<uint32_t>(t);
    case ElementType::kUint64:
      return has_zero<uint64_t>(t);
    default:
      return true;
  }
}

// Constants of some size are not searched each time somebody asks.
constexpr int64_t kMaxDivisors = 4096;

bool divides_by_constants(const ir::Node& node) {
  const OpDef& op = *node.op;
  if (!op.domain.empty() || (op.name != "Div" && op.name != "Mod") || node.inputs.size() < 2) return false;
  const ir::Value* divisor = node.inputs[1];
  return divisor && divisor->is_constant() && divisor->constant.element_count() <= kMaxDivisors &&
         !has_integer_zero(divisor->constant);
}

bool has_known_size(const ir::Value* v) {
  return !v || v->type.is_concrete();
}

}  // namespace

bool can_fail(const ir::Node& node) {
  const ir::Value* first = node.inputs.empty() ? nullptr : node.inputs[0];
  if (!node.op->can_fail(first ? first->type.element : ElementType::kUndefined)) return false;
  return !divides_by_constants(node);
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
