#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>

#include "reference/interpreter.h"
#include "support/one_node.h"

namespace treadle {
namespace {

using ir::Attribute;
using testing_support::make_node;

std::vector<float> run(const char* op, int version, std::vector<AnyValue> inputs,
                       std::vector<Attribute> attributes = {}) {
  const ir::NodeInfo node = make_node(op, version, inputs.size(), 1, std::move(attributes));
  const auto out = reference::run_node(node, inputs);
  if (!out.ok()) {
    ADD_FAILURE() << out.error().to_string();
    return {};
  }
  const auto span = (*out)[0].tensor().span<float>();
  return {span.begin(), span.end()};
}

// The sum that defines the transform, for lengths by halving and others.
TEST(Dft, IsTheDefiningSumAtAnyLength) {
  for (int n : {1, 2, 3, 7, 8, 12, 31, 64}) {
    std::vector<float> x;
    for (int i = 0; i < 2 * n; ++i) x.push_back(std::sin(static_cast<float>(i * i + n)));
    const AnyValue input(Tensor::of_float(x).reshaped({1, n, 2}));
    const auto y = run("DFT", 20, {input});
    ASSERT_EQ(y.size(), x.size());
    for (int k = 0; k < n; ++k) {
      std::complex<double> sum;
      for (int t = 0; t < n; ++t) {
        const std::complex<double> v(x[static_cast<size_t>(2 * t)], x[static_cast<size_t>(2 * t + 1)]);
        sum += v * std::polar(1.0, -2 * std::numbers::pi * k * t / n);
      }
      EXPECT_NEAR(y[static_cast<size_t>(2 * k)], sum.real(), 1e-5) << n << " " << k;
      EXPECT_NEAR(y[static_cast<size_t>(2 * k + 1)], sum.imag(), 1e-5) << n << " " << k;
    }
    const AnyValue spectrum(Tensor::of_float(y).reshaped({1, n, 2}));
    const auto back = run("DFT", 17, {spectrum}, {Attribute::of("inverse", 1)});
    for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(back[i], x[i], 1e-6) << n;
  }
}

TEST(Stft, FramesAreWindowedAndTransformed) {
  const AnyValue step(Tensor::scalar(ElementType::kInt64, int64_t{2}));
  const AnyValue window(Tensor::of_float(std::vector<float>{1, 0, 0, 2}));
  // Frames [1,0,0,8] and [3,0,0,12]: bins 0, 1, 2 of each.
  const std::vector<float> expected = {9, 0, 1, 8, -7, 0, 15, 0, 3, 12, -9, 0};
  for (const Dims& dims : {Dims{1, 6, 1}, Dims{1, 6}}) {
    const AnyValue signal(Tensor::of_float(std::vector<float>{1, 2, 3, 4, 5, 6}).reshaped(dims));
    const auto y = run("STFT", 17, {signal, step, window});
    ASSERT_EQ(y.size(), expected.size());
    for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], expected[i], 1e-5) << i;
  }
}

// Frames whose length is no power of two, to the precision of float32; onnxruntime's error is a thousand times as
// large.
TEST(Stft, LongFramesKeepTheirPrecision) {
  constexpr int kFrame = 400, kBins = kFrame / 2 + 1;
  std::vector<float> signal, weights;
  for (int i = 0; i < kFrame; ++i) {
    signal.push_back(std::sin(static_cast<float>(i * i)));
    weights.push_back(0.5f - 0.5f * std::cos(static_cast<float>(i) / 64));
  }
  const auto y =
      run("STFT", 17,
          {AnyValue(Tensor::of_float(signal).reshaped({1, kFrame, 1})),
           AnyValue(Tensor::scalar(ElementType::kInt64, int64_t{160})), AnyValue(Tensor::of_float(weights))});
  ASSERT_EQ(y.size(), 2u * kBins);
  for (int k = 0; k < kBins; ++k) {
    std::complex<double> sum;
    for (int t = 0; t < kFrame; ++t) {
      const auto at = static_cast<size_t>(t);
      sum += static_cast<double>(signal[at]) * static_cast<double>(weights[at]) *
             std::polar(1.0, -2 * std::numbers::pi * (k * t % kFrame) / kFrame);
    }
    EXPECT_NEAR(y[static_cast<size_t>(2 * k)], sum.real(), 1e-5) << k;
    EXPECT_NEAR(y[static_cast<size_t>(2 * k + 1)], sum.imag(), 1e-5) << k;
  }
}

TEST(WindowFunctions, PeriodicAndSymmetric) {
  const AnyValue size(Tensor::scalar(ElementType::kInt64, int64_t{4}));
  const auto periodic = run("HannWindow", 17, {size});
  const auto symmetric = run("HannWindow", 17, {size}, {Attribute::of("periodic", 0)});
  const std::vector<float> p = {0, 0.5f, 1, 0.5f}, s = {0, 0.75f, 0.75f, 0};
  ASSERT_EQ(periodic.size(), 4u);
  ASSERT_EQ(symmetric.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(periodic[i], p[i], 1e-6);
    EXPECT_NEAR(symmetric[i], s[i], 1e-6);
  }
}

}  // namespace
}  // namespace treadle
