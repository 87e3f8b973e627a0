#pragma once
// Products by the type of their elements, each in a source of its own.

#include "kernels/gemm.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

GemmPlan prepare_f32_gemm(ComputeType type, const GemmShape& shape);
GemmPlan prepare_f64_gemm(ComputeType type, const GemmShape& shape);
GemmPlan prepare_32_bit_gemm(ComputeType type, const GemmShape& shape);  // integers, whose sums wrap
GemmPlan prepare_64_bit_gemm(ComputeType type, const GemmShape& shape);

// Panels of Half, and of ScaledByte, for a plan of floats whose shape asks for them.
void use_half_panels(GemmPlan& plan);
void use_byte_panels(GemmPlan& plan);

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
