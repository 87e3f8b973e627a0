#pragma once
// The attributes of Cast and CastLike.

#include <string_view>

#include "ir/attribute.h"
#include "kernels/convert.h"

namespace treadle {

inline kernels::CastOptions cast_options(const ir::Attributes& attributes) {
  kernels::CastOptions options;
  options.saturate = attributes.get_int("saturate", 1) != 0;
  const std::string_view mode = attributes.get_string("round_mode", "up");
  if (mode == "down") options.rounding = E8m0Rounding::kDown;
  if (mode == "nearest") options.rounding = E8m0Rounding::kNearest;
  return options;
}

}  // namespace treadle
