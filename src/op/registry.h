#pragma once
// Finds operator records by domain and name: treadle's own, which are made on first use, and those that programs have
// added (op/custom_operator.h). A record lives as long as the process.

#include <span>
#include <string_view>

#include "op/op_def.h"

namespace treadle {

// "ai.onnx" and "" are the same domain. Null if there is no such operator.
const OpDef* find_op(std::string_view domain, std::string_view name);
// As find_op(), for operators that treadle itself uses (lowerings). Asserts that the operator exists.
const OpDef& require_op(std::string_view name, std::string_view domain = "");
// The record of all operators that treadle lacks: any inputs and outputs, with unknown types.
const OpDef& opaque_op();
std::span<const OpDef* const> all_ops();  // treadle's own, sorted by domain, then name

}  // namespace treadle
