#pragma once
// Kernels in front of a loop, prepared to compute only the rows that a strip of the loop's iterations reads.

#include <optional>

#include "plan/program.h"

namespace treadle::plan {

// The kernel of instruction `at`, if a strip of its result's rows needs only that strip of some operands and all of the
// others (operands_of_rows): products with weights, elementwise operations, reductions of a row. Each of `iterations`
// iterations has the same number of rows. Its operands are the operands of the node, and the result.
std::optional<RowKernel> rows_of_iterations(const Program& program, uint32_t at, int64_t iterations);

// Prepares the kernel for strips of `block` iterations, and for the last strip of `rest` iterations, on `threads`
// threads. Adds its scratch as an operand. False if it cannot be prepared.
bool prepare_rows(Program& program, RowKernel& rows, int64_t iterations, int64_t block, int64_t rest, int threads);

}  // namespace treadle::plan
