#pragma once
// What a unit of each count of a method of convolution takes, in nanoseconds on the machine of docs/benchmarks.md.
// These are no times of single steps, which overlap, but what makes sums of counts come near to measured times. Fitted
// and written by `./dev bench costs --write`.

#include <array>
#include <string_view>

#include "kernels/conv_costs.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

struct ConvPrices {
  std::string_view method;
  std::array<double, kConvCounts> ns;  // products, loads, copies, elements, stores, begun, a run (work.h)
};

// clang-format off
#if defined(__AVX512F__)
// avx512
inline constexpr ConvPrices kPrices[] = {
    {"im2col", {0.262, 2.06, 0.687, 0.917, 1.02, 3.89, 102}},
    {"direct", {0.242, 1.48, 2.35, 2, 1.91, 4.92, 213}},
    {"implicit-gemm-rows", {0.214, 15.7, 2.77, 0.552, 1.41, 12.5, 149}},
    {"implicit-gemm-flat", {0.254, 2.34, 1.51, 0.479, 2.31, 11.7, 157}},
    {"implicit-gemm-gathered", {0.238, 0.651, 1.21, 0.52, 1.35, 13.2, 109}},
    {"depthwise-masked", {0.161, 0.394, 0, 0, 0.997, 5.77, 18.6}},
    {"depthwise-rows", {0.148, 0.3, 0, 2, 5.07, 3.74, 6.15}},
    {"depthwise", {0.217, 0, 0, 0.337, 4.58, 9.36, 107}},
    {"depthwise-nhwc-rows", {0, 0.65, 0.0153, 0.917, 3.28, 0, 34.6}},
    {"depthwise-nhwc", {0.631, 0, 0.319, 0.525, 2.55, 0, 14.4}},
    {"pointwise", {0.209, 0.519, 6.22, 4.11, 0.188, 43.2, 18.4}},
    {"pointwise-nhwc", {0.244, 0, 1.59, 101, 1.12, 11, 0}},
    {"col2im", {0.294, 4.03, 0, 0.623, 1.96, 39.4, 188}},
};
#elif defined(__AVX2__)
// avx2
inline constexpr ConvPrices kPrices[] = {
    {"im2col", {0.237, 1.64, 0.498, 0.931, 0.821, 3.37, 84.4}},
    {"direct", {0.204, 1.07, 1.21, 1.85, 1.54, 4.03, 207}},
    {"implicit-gemm-rows", {0.188, 22.9, 1.81, 0.614, 0.606, 12.4, 136}},
    {"implicit-gemm-flat", {0.212, 0, 1.14, 0.542, 5.41, 11.7, 171}},
    {"implicit-gemm-gathered", {0.203, 0.403, 0.652, 0.583, 0.43, 12.4, 129}},
    {"depthwise-rows", {0.204, 0.284, 0.00536, 1.91, 1.9, 0.895, 26.2}},
    {"depthwise", {0.246, 0, 0.0994, 0.482, 2.17, 8.5, 98.5}},
    {"depthwise-nhwc-rows", {0, 0.535, 0, 0.492, 1.48, 0, 53.1}},
    {"depthwise-nhwc", {0.43, 0, 0.27, 0.864, 1.57, 0, 12.8}},
    {"pointwise", {0.188, 0.533, 1.51, 0, 0, 29.7, 26.4}},
    {"pointwise-nhwc", {0.192, 0, 0.888, 88.6, 1.14, 8.81, 0}},
    {"col2im", {0.268, 6.45, 0, 0.504, 0.537, 23.4, 148}},
};
#else
// baseline
inline constexpr ConvPrices kPrices[] = {
    {"im2col", {0.311, 1.81, 0, 0.981, 1.42, 3.15, 72.3}},
    {"implicit-gemm-rows", {0.284, 75.5, 1.76, 2.05, 0.544, 13.5, 140}},
    {"implicit-gemm-flat", {0.312, 14, 1.52, 0.65, 16.8, 13.2, 108}},
    {"implicit-gemm-gathered", {0.323, 0, 1.03, 1.15, 0.156, 15.8, 148}},
    {"depthwise-rows", {0.344, 0.204, 1.25, 2.28, 1.52, 2.9, 3.18}},
    {"depthwise", {0.233, 0.23, 0.288, 0.253, 2.24, 9.57, 103}},
    {"depthwise-nhwc-rows", {0.221, 0.2, 6.25, 0.5, 1.61, 0, 73.6}},
    {"depthwise-nhwc", {0.35, 0, 10.9, 1.11, 1.43, 0, 23.3}},
    {"pointwise", {0.259, 0.422, 3.7, 3.55, 0, 23.7, 28.7}},
    {"pointwise-nhwc", {0.281, 0, 0.388, 2.73, 2.19, 0.139, 91.3}},
    {"col2im", {0.405, 3.84, 0, 0.999, 1.09, 3.2, 251}},
};
#endif
// clang-format on

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
