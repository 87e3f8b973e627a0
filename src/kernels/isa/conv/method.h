#pragma once
// The ways to compute a convolution of floats. Each has a source of its own, and a row here that says all that others
// need to know of it. The table is in methods.cc.

#include <cstdint>
#include <string_view>

#include "kernels/conv.h"
#include "kernels/isa/conv/axes.h"
#include "kernels/isa/conv/work.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

// In which order the products of an output are added up. Methods of one order give the same bits.
enum class SumOrder : uint8_t {
  kWeights,  // of the weights: channel by channel, the taps of each
  kTaps,     // tap by tap, the channels of each
  kColumns,  // down the columns of the kernel
  kDots,     // in several sums at once (gemm/dots.h)
  kOutputs,  // the channels of a tap, whose sum is added to the output
};
inline constexpr SumOrder kSumOrders[] = {SumOrder::kWeights, SumOrder::kTaps, SumOrder::kColumns, SumOrder::kDots,
                                          SumOrder::kOutputs};

// All functions are asked with x_nhwc and y_nhwc of the geometry's shape set as the operands will be.
struct ConvMethod {
  std::string_view name;
  bool (*fits)(const ConvGeometry& g, ComputeType type);      // whether it computes this convolution
  ConvWork (*work)(const ConvGeometry& g, ComputeType type);  // what it does for it
  SumOrder (*order)(const ConvGeometry& g);
  void (*prepare)(ConvPlan& plan);  // all of the plan but its shape, type and method
};

extern const ConvMethod kIm2col, kPointwise, kPointwiseNhwc, kCol2im, kDepthwise, kDepthwiseRows, kDepthwiseNhwc,
    kDepthwiseNhwcRows, kImplicitGemmRows, kImplicitGemmFlat, kImplicitGemmGathered;
#if defined(__AVX2__)
extern const ConvMethod kDirect;
#endif
#if defined(__AVX512F__)
extern const ConvMethod kDepthwiseMasked;
#endif

inline bool has_nchw_operands(const ConvGeometry& g) {
  return !g.shape.x_nhwc && !g.shape.y_nhwc;
}
inline bool has_nhwc_operands(const ConvGeometry& g) {
  return g.shape.x_nhwc && g.shape.y_nhwc;
}

template <SumOrder kOrder>
SumOrder sums_in(const ConvGeometry&) {
  return kOrder;
}

// The function for elements of the plan's type.
template <void (*kFloat)(ConvPlan&), void (*kDouble)(ConvPlan&)>
void prepare_by_type(ConvPlan& plan) {
  plan.type == ComputeType::kF64 ? kDouble(plan) : kFloat(plan);
}
template <ConvWork (*kFloat)(const ConvGeometry&), ConvWork (*kDouble)(const ConvGeometry&)>
ConvWork work_by_type(const ConvGeometry& g, ComputeType type) {
  return type == ComputeType::kF64 ? kDouble(g) : kFloat(g);
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
