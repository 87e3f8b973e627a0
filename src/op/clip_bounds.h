#pragma once
// What Clip does where a bound is not given, or is no number.
//
// From version 11 on, bounds that are left out are those that the specification names, the least and the largest finite
// number: Clip(infinity, 0) is finite. Attributes of older versions have their own defaults or none. A bound that is
// NaN makes NaN of everything, because the specification says that Clip is Min(max, Max(input, min)).

#include <cfloat>

#include "type/element_type.h"

namespace treadle {

inline constexpr int kClipTakesBoundsSince = 11;

// Its negative is the bound below. Of float types; 0 for others, in which nothing lies beyond.
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
