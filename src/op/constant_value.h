#pragma once
// The value of a node Constant.

#include <string_view>

#include "base/status.h"
#include "ir/attribute.h"
#include "type/tensor.h"

namespace treadle {

// The attributes of Constant, of which each node has one.
struct ConstantAttribute {
  std::string_view name;
  ir::AttributeKind kind;
};
inline constexpr ConstantAttribute kConstantAttributes[] = {
    {"value", ir::AttributeKind::kTensor},        {"sparse_value", ir::AttributeKind::kSparseTensor},
    {"value_float", ir::AttributeKind::kFloat},   {"value_floats", ir::AttributeKind::kFloats},
    {"value_int", ir::AttributeKind::kInt},       {"value_ints", ir::AttributeKind::kInts},
    {"value_string", ir::AttributeKind::kString}, {"value_strings", ir::AttributeKind::kStrings},
};

// The value of such an attribute. Errors: an attribute of another kind.
Result<Tensor> constant_value(const ir::Attribute& attribute);

}  // namespace treadle
