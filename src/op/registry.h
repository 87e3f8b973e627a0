#pragma once
// Finds operator records by domain and name. Built once, on first use; immutable afterwards.

#include <span>
#include <string_view>

#include "op/op_def.h"

namespace treadle {

// "ai.onnx" and "" are one domain. Null when treadle has no such operator.
const OpDef* find_op(std::string_view domain, std::string_view name);
// Like find_op for operators that treadle itself relies on (lowerings): asserts that it exists.
const OpDef& require_op(std::string_view name, std::string_view domain = "");
// Stands for operators that treadle lacks: any inputs and outputs, of which nothing is known.
const OpDef& opaque_op();
std::span<const OpDef* const> all_ops();  // sorted by domain, then name

}  // namespace treadle
