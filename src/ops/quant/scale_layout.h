#pragma once
// What the attributes of QuantizeLinear and DequantizeLinear say, for kernels and for those who write code.

#include "ir/attribute.h"
#include "op/axis.h"
#include "type/element_type.h"

namespace treadle::quant {

// Scales for x: [1], [n] or [outer, blocks, inner] for x as [outer, n, inner].
struct ScaleLayout {
  AxisView view;
  size_t block = 0;  // elements of the axis per scale; 0: no blocks
  bool per_axis = false;

  // Blocks along the axis; the last one may be shorter.
  size_t blocks() const { return (view.n + block - 1) / block; }
};

// `scales`: how many there are.
Result<ScaleLayout> scale_layout(const ir::Attributes& attributes, const Dims& x, int64_t scales);
// The type to which a quotient is rounded before it becomes a level. `scale`: the type of scales.
ElementType precision_of_division(const ir::Attributes& attributes, ElementType scale);

}  // namespace treadle::quant
