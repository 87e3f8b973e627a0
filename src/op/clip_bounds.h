#pragma once
// Clip with a bound that is not given or is NaN.
//
// From version 11 on, the default bounds are the least and the largest finite number, as the specification says:
// Clip(infinity, 0) is finite. Attributes of older versions have their own defaults or none. A bound that is NaN makes
// every result NaN, because the specification defines Clip as Min(max, Max(input, min)).

#include <cfloat>

#include "type/element_type.h"

namespace treadle {

inline constexpr int kClipTakesBoundsSince = 11;

// The default upper bound of float types; the lower bound is its negative. 0 for other types, which need no bound.
inline double clip_bound_left_out(ElementType type) {
  switch (type) {
    case ElementType::kFloat16:
      return 65504;
    case ElementType::kBfloat16:
      return 0x1.FEp127;
    case ElementType::kFloat:
      return FLT_MAX;
    case ElementType::kDouble:
      return DBL_MAX;
    default:
      return 0;
  }
}

}  // namespace treadle
