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
  std::array<double, kConvCounts> ns;  // in the order of ConvWork (work.h); the last of a run
};

// clang-format off
#if defined(__AVX512F__)
// avx512
inline constexpr ConvPrices kPrices[] = {
    {"im2col", {0.221, 1.1, 0.195, 0.874, 0.705, 0.6, 3.59, 75.1}},
    {"direct", {0.202, 0.601, 0.475, 1.82, 1.48, 1.9, 6.11, 154}},
    {"implicit-gemm-rows", {0.194, 7.92, 0.225, 1.37, 0.485, 1.43, 9.22, 112}},
    {"implicit-gemm-flat", {0.219, 0.859, 0.011, 0.677, 0.425, 3.43, 9.06, 126}},
    {"implicit-gemm-gathered", {0.19, 0.571, 0.824, 0.941, 0.498, 1.55, 9.24, 79.3}},
    {"depthwise-nhwc", {0.563, 0, 0, 0.233, 0.464, 2.17, 0, 9.32}},
    {"pointwise", {0.201, 0.787, 0, 2.74, 0.579, 0, 42.2, 0}},
    {"pointwise-nhwc", {0.21, 0, 0.198, 0.132, 0, 0.936, 17.8, 63.3}},
    {"depthwise-masked", {0.141, 0.0926, 0, 0, 0, 0.862, 3.35, 14.2}},
    {"depthwise-rows", {0.127, 0.284, 0, 0, 1.78, 3.44, 2.99, 13.5}},
    {"depthwise", {0.198, 0, 0, 0.0773, 0.356, 3.19, 6.65, 116}},
    {"depthwise-nhwc-rows", {0, 0.604, 0, 0.0449, 0.613, 2.28, 0, 39.3}},
    {"col2im", {0.246, 3.85, 0, 0.551, 0.45, 1.24, 31, 102}},
};
#elif defined(__AVX2__)
// avx2
inline constexpr ConvPrices kPrices[] = {
    {"im2col", {0.181, 0.714, 0.0683, 0.952, 1, 0.672, 3.55, 63.7}},
    {"direct", {0.195, 0.444, 0.127, 1.06, 1.57, 1.55, 4.01, 159}},
    {"implicit-gemm-rows", {0.176, 9.71, 0.31, 0.888, 0.473, 0.482, 10.6, 123}},
    {"implicit-gemm-flat", {0.2, 0, 0, 0.69, 0.403, 4.07, 10.6, 165}},
    {"implicit-gemm-gathered", {0.174, 0.348, 0.396, 0.529, 0.487, 0.413, 10.9, 112}},
    {"depthwise-nhwc", {0.382, 0, 0, 0.123, 0.789, 1.55, 0, 11.1}},
    {"pointwise", {0.157, 0.52, 0.473, 1.75, 0, 0, 23.5, 22.6}},
    {"pointwise-nhwc", {0.189, 32.4, 0.0642, 0.234, 0, 0.299, 12.7, 59.6}},
    {"depthwise-rows", {0.125, 0.253, 0, 0.068, 2.01, 1.62, 1.38, 20.3}},
    {"depthwise", {0.19, 0, 0, 0.11, 0.338, 2.14, 7.62, 97}},
    {"depthwise-nhwc-rows", {0.00315, 0.435, 0, 0.0367, 0.36, 1.7, 0, 60.1}},
    {"col2im", {0.244, 6.52, 0, 0.267, 0.324, 0.621, 17, 127}},
};
#else
// baseline
inline constexpr ConvPrices kPrices[] = {
    {"im2col", {0.25, 0.545, 0, 1.05, 1.05, 1.09, 3.11, 55.3}},
    {"implicit-gemm-rows", {0.235, 36.3, 0.357, 0.786, 2.14, 0.781, 9.37, 127}},
    {"implicit-gemm-flat", {0.25, 9.26, 0.206, 0.6, 0.389, 21.2, 11.1, 77.8}},
    {"implicit-gemm-gathered", {0.238, 0, 0.523, 0.783, 1.01, 0.484, 12.1, 130}},
    {"depthwise-nhwc", {0.305, 0, 0, 8.1, 0.946, 1.18, 0, 17.7}},
    {"pointwise", {0.277, 0.566, 0.143, 1.26, 0.036, 0, 14.3, 37.6}},
    {"pointwise-nhwc", {0.27, 15.3, 0, 0.00724, 0, 1.53, 1.46, 55.3}},
    {"depthwise-rows", {0.217, 0.2, 0, 1.35, 0.786, 1.52, 0.101, 25.6}},
    {"depthwise", {0.19, 0, 0, 0.198, 0.286, 1.7, 7.26, 104}},
    {"depthwise-nhwc-rows", {0.171, 0.187, 0, 6.8, 0.555, 1.17, 0, 47.4}},
    {"col2im", {0.345, 3.98, 0, 0, 0.752, 0.643, 2.45, 250}},
};
#endif
// clang-format on

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
