#pragma once
// Finds operator records by domain and name: treadle's own, which are built once, on first use, and those that the
// program has added (op/custom_operator.h). A record lives as long as the process.

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
std::span<const OpDef* const> all_ops();  // treadle's own, sorted by domain, then name

}  // namespace treadle
