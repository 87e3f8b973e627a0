#pragma once
// What one instruction set provides: tables of row functions. Rows work on contiguous elements that are aligned to
// their own size, any n (0 too). Element i of a result depends on element i of the inputs only, never on its place in
// the row.

#include <cstddef>
#include <cstdint>

#include "base/cpu.h"
#include "kernels/elementwise_ops.h"
#include "type/element_type.h"

namespace treadle::kernels {

// Returns 0 or an Error. Unary rows ignore b. `params`: ElementwiseParams; may be null for operations without. `out`
// may be `a` or `b` when the result is as wide.
using Row = uint32_t (*)(const void* a, const void* b, void* out, size_t n, const ElementwiseParams* params);

// vs: b is one element; sv: a is one element. Unary operations have vv only. Clip has vs only, b pointing at {lo, hi}.
struct ElementwiseRows {
  Row vv = nullptr;
  Row vs = nullptr;
  Row sv = nullptr;
};

// out[i] = condition[i] ? x[i] : y[i]; bits 0..2 of scalar_mask: condition, x, y is one element.
using WhereRow = void (*)(const uint8_t* condition, const void* x, const void* y, void* out, size_t n,
                          unsigned scalar_mask);

using ConvertRow = void (*)(const void* in, void* out, size_t n);

// A conversion in up to three steps; see convert.h.
struct TileConverter {
  ConvertRow steps[3] = {};
  ConvertRow direct = nullptr;  // all steps in one, where there is such a row
  uint8_t step_count = 0;
  uint8_t from_width = 0;
  uint8_t to_width = 0;
};

}  // namespace treadle::kernels
