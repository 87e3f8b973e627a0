#pragma once
// The methods of convolution, each prepared by a source of its own: their tiles take a compiler long.

#include "kernels/conv.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

void prepare_channels(ConvPlan& plan);  // with AVX2 and wider
void prepare_depthwise_last(ConvPlan& plan);
void prepare_depthwise_last_rows(ConvPlan& plan);
void prepare_depthwise_rows(ConvPlan& plan);
template <class T>
void prepare_depthwise(ConvPlan& plan);
template <class T>
void prepare_masked(ConvPlan& plan);  // with AVX-512
template <class T>
void prepare_rows(ConvPlan& plan);
template <class T>
void prepare_shift(ConvPlan& plan);

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
