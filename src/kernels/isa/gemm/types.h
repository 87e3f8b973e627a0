#pragma once
// Products by the type of their elements, each in a source of its own.

#include <string_view>
#include <vector>

#include "kernels/gemm.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

// `wanted`: the name of a walk (walk.h); empty: none.
GemmPlan prepare_f32_gemm(ComputeType type, const GemmShape& shape, std::string_view wanted);
GemmPlan prepare_f64_gemm(ComputeType type, const GemmShape& shape, std::string_view wanted);
// Integers, signed or not: sums wrap.
GemmPlan prepare_32_bit_gemm(ComputeType type, const GemmShape& shape, std::string_view wanted);
GemmPlan prepare_64_bit_gemm(ComputeType type, const GemmShape& shape, std::string_view wanted);

// Panels of Half, and of ScaledByte, for a plan of floats whose shape asks for them.
void use_half_panels(GemmPlan& plan, std::string_view wanted);
void use_byte_panels(GemmPlan& plan, std::string_view wanted);

// All walks of products of floats. Products of other types take some of them.
std::vector<std::string_view> f32_walks();

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
