#pragma once
// The elements that GatherElements reads and ScatterElements writes: at the positions of the indices, but along one
// axis at the position that the index says.

#include "op/context.h"
#include "type/shape.h"

namespace treadle::tensor_ops {

struct IndexedElements {
  Dims dims;     // of the indices, without the last axis
  Dims strides;  // of the indexed tensor along them, 0 for the indexed axis
  int64_t row = 0;
  int64_t row_stride = 0;   // of the indexed tensor along the last axis, 0 when that is indexed
  int64_t axis_stride = 0;  // of the indexed tensor along the indexed axis
  int64_t n = 0;            // its size there
};

inline IndexedElements indexed_elements(const Operand& indexed, const Operand& indices, size_t axis) {
  IndexedElements e;
  e.dims = indices.dims;
  e.strides = indexed.strides;
  e.strides[axis] = 0;
  e.row = e.dims.back();
  e.row_stride = e.strides.back();
  e.dims.pop_back();
  e.strides.pop_back();
  e.axis_stride = indexed.strides[axis];
  e.n = indexed.dims[axis];
  return e;
}

}  // namespace treadle::tensor_ops
