#pragma once
// The tables of row functions of one instruction set. Rows work on any number of contiguous elements (0 too), aligned
// to their own size. Element i of a result depends on elements i of the inputs only, never on the position in the row.

#include <cstddef>
#include <cstdint>

#include "base/cpu.h"
#include "kernels/elementwise_ops.h"
#include "type/element_type.h"

namespace treadle::kernels {

// Returns 0 or an Error. Unary rows ignore b. `params`: an ElementwiseParams; may be null for operations without
// parameters. `out` may be `a` or `b` if the result is as wide.
using Row = uint32_t (*)(const void* a, const void* b, void* out, size_t n, const ElementwiseParams* params);

// vs: b is a single element. sv: a is a single element. Unary operations have vv only. Clip has vs only, with b
// pointing at {lo, hi}.
struct ElementwiseRows {
  Row vv = nullptr;
  Row vs = nullptr;
  Row sv = nullptr;
};

// out[i] = condition[i] ? x[i] : y[i]. Bits 0..2 of scalar_mask: condition, x, y is a single element.
using WhereRow = void (*)(const uint8_t* condition, const void* x, const void* y, void* out, size_t n,
                          unsigned scalar_mask);

using ConvertRow = void (*)(const void* in, void* out, size_t n);

// A conversion in up to three steps; see convert.h.
struct TileConverter {
  ConvertRow steps[3] = {};
  ConvertRow direct = nullptr;  // all steps in one call; null if there is no such row
  uint8_t step_count = 0;
  uint8_t from_width = 0;
  uint8_t to_width = 0;
};

}  // namespace treadle::kernels
