#include "ops/quant/scale_layout.h"

namespace treadle::quant {

Result<ScaleLayout> scale_layout(const ir::Attributes& attributes, const Dims& x, int64_t scales) {
  ScaleLayout layout;
  const int64_t block = attributes.get_int("block_size");
  if (scales == 1 && (block == 0 || x.empty())) {
    layout.view = {1, 1, static_cast<size_t>(element_count_unchecked(x))};
    return layout;
  }
  TREADLE_ASSIGN(const int64_t axis, normalize_axis(attributes.get_int("axis", 1), static_cast<int64_t>(x.size())));
  layout.view = view_along(x, axis);
  layout.block = static_cast<size_t>(block);
  layout.per_axis = layout.block == 0;
  return layout;
}

ElementType precision_of_division(const ir::Attributes& attributes, ElementType scale) {
  const ElementType named = element_type_from_number(attributes.get_int("precision"));
  return named == ElementType::kUndefined ? scale : named;
}

}  // namespace treadle::quant
