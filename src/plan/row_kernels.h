#pragma once
// Kernels in front of a loop, prepared to compute only the rows that a block of the loop's trips reads.

#include <optional>

#include "plan/program.h"

namespace treadle::plan {

// The kernel of instruction `at`, if a block of its result's rows needs that block of some operands, and all of the
// others (operands_of_rows): products with weights, elementwise operations, reductions of a row. The rows are those of
// `trips` trips, as many for each. Its operands are those of the node and the result.
std::optional<RowKernel> rows_of_trips(const Program& program, uint32_t at, int64_t trips);

// Prepares it for blocks of `block` trips, and for the last block of `rest` trips, on as many threads. Its scratch
// becomes one more operand. False: it cannot be had.
bool prepare_rows(Program& program, RowKernel& rows, int64_t trips, int64_t block, int64_t rest, int threads);

}  // namespace treadle::plan
