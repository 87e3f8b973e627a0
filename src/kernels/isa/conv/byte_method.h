#pragma once
// The ways to compute a convolution of bytes: rows as in method.h. The table is in byte_methods.cc.

#include <cstdint>
#include <string_view>

#include "kernels/conv.h"
#include "kernels/isa/conv/axes.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

struct ByteConvMethod {
  std::string_view name;
  bool (*fits)(const ConvGeometry& g);  // whether it computes this convolution
  bool (*pays)(const ConvGeometry& g);  // whether it is quicker than the rows behind it
  void (*prepare)(QConvPlan& plan);     // all of the plan but its shape and method
};

extern const ByteConvMethod kBytePlanes, kByteIm2col;
#if defined(__AVX2__)
extern const ByteConvMethod kByteDirect, kByteStrips;
#endif

// Element `i` of zero points that have a sign or none; 0 where there are none.
inline int32_t byte_at(const void* bytes, bool is_signed, int64_t i) {
  if (bytes == nullptr) return 0;
  return is_signed ? static_cast<const int8_t*>(bytes)[i] : static_cast<const uint8_t*>(bytes)[i];
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
