#pragma once
// The ways to compute a convolution of bytes: rows as in method.h. The table is in byte_methods.cc.

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

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
