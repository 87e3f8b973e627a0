#include "kernels/conv_folded.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "kernels/kernel_test_util.h"

namespace treadle::kernels {
namespace {

// A filter for one channel; `kind` 1 symmetric, -1 antisymmetric, 0 neither. A periodic one mirrors n and length - n.
std::vector<double> random_filter(std::mt19937& random, int kind, bool periodic, int64_t length) {
  auto w = random_values<float>(random, static_cast<size_t>(length));
  for (int64_t i = periodic; i < length; ++i) {
    const int64_t j = length - 1 - i + periodic;
    if (kind != 0 && j > i) w[static_cast<size_t>(j)] = static_cast<float>(kind) * w[static_cast<size_t>(i)];
  }
  return {w.begin(), w.end()};
}

// The real and the imaginary part of the transform of windowed frames, as exporters write it.
std::vector<double> transform(int64_t length, const std::vector<double>& window) {
  std::vector<double> w;
  for (const bool imaginary : {false, true}) {
    for (int64_t k = 0; k <= length / 2; ++k) {
      for (int64_t n = 0; n < length; ++n) {
        const double angle = 2 * std::numbers::pi * static_cast<double>(k * n % length) / static_cast<double>(length);
        w.push_back(window[static_cast<size_t>(n)] * (imaginary ? -std::sin(angle) : std::cos(angle)));
      }
    }
  }
  return w;
}

std::vector<double> hann(int64_t length) {
  std::vector<double> w;
  for (int64_t n = 0; n < length; ++n) {
    w.push_back(0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(n) / static_cast<double>(length)));
  }
  return w;
}

ConvShape frames(int64_t batch, int64_t channels, int64_t filters, int64_t length, int64_t stride, int64_t count) {
  ConvShape s;
  s.axes = 1, s.batch = batch, s.in_channels = channels, s.out_channels = filters;
  s.kernel[0] = length, s.stride[0] = stride, s.output[0] = count, s.input[0] = length + (count - 1) * stride;
  return s;
}

template <class T>
class Convolution {
 public:
  static constexpr ComputeType kType = std::is_same_v<T, float> ? ComputeType::kF32 : ComputeType::kF64;

  Convolution(const ConvShape& shape, std::vector<T> weights) : shape_(shape), weights_(std::move(weights)) {
    fold = fold_weights(kType, shape, weights_.data());
  }

  std::vector<T> run(bool folds, const std::vector<T>& x, const T* bias = nullptr, const T* addend = nullptr,
                     bool in_parts = false) const {
    ConvPlan plan = prepare_conv(kType, shape_);
    plan.clamp = clamp;
    if (folds) fold_conv(plan, fold);
    Scratch scratch(plan.scratch_bytes), packed(plan.packed_weight_bytes), table(plan.table_bytes);
    folds ? make_folded_table(plan, fold, table.get()) : make_conv_table(plan, table.get());
    pack_conv_weights(plan, weights_.data(), packed.get());
    std::vector<T> y(static_cast<size_t>(shape_.batch * shape_.out_channels * positions()));
    const ConvOperands operands{x.data(), packed.get(), bias, y.data(), scratch.get(), addend, table.get()};
    if (!in_parts) run_conv(plan, operands);
    for (int64_t unit = plan.units - 1; in_parts && unit >= 0; --unit) run_conv_range(plan, operands, unit, unit + 1);
    return y;
  }

  // The definition, computed more exactly than the results.
  std::vector<long double> reference(const std::vector<T>& x, const T* bias, const T* addend) const {
    const int64_t in = shape_.input[0], taps = shape_.kernel[0];
    std::vector<long double> y;
    for (int64_t b = 0; b < shape_.batch; ++b) {
      for (int64_t f = 0; f < shape_.out_channels; ++f) {
        for (int64_t p = 0; p < positions(); ++p) {
          long double sum = bias == nullptr ? 0 : static_cast<long double>(bias[f]);
          for (int64_t c = 0; c < shape_.in_channels; ++c) {
            for (int64_t n = 0; n < taps; ++n) {
              const int64_t at = p * shape_.stride[0] + n * shape_.dilation[0] - shape_.pad_begin[0];
              if (at < 0 || at >= in) continue;
              sum += static_cast<long double>(x[static_cast<size_t>((b * shape_.in_channels + c) * in + at)]) *
                     static_cast<long double>(weights_[static_cast<size_t>((f * shape_.in_channels + c) * taps + n)]);
            }
          }
          if (addend != nullptr) sum += static_cast<long double>(addend[y.size()]);
          y.push_back(std::clamp(sum, static_cast<long double>(clamp.low), static_cast<long double>(clamp.high)));
        }
      }
    }
    return y;
  }

  int64_t positions() const { return shape_.output[0]; }
  int64_t input_count() const { return shape_.batch * shape_.in_channels * shape_.input[0]; }

  Clamp clamp{-INFINITY, INFINITY};
  Fold fold;

 private:
  ConvShape shape_;
  std::vector<T> weights_;
};

class FoldedConvTest : public EachIsa {
 protected:
  // Folded sums are as close to the exact ones as plain sums, up to a small factor.
  template <class T>
  void check(Convolution<T>& conv, const ConvShape& shape, bool adds = false) {
    ASSERT_GT(conv.fold.split_count, 0);
    const auto x = random_values<T>(random_, static_cast<size_t>(conv.input_count()));
    const auto bias = random_values<T>(random_, static_cast<size_t>(shape.out_channels));
    const auto outputs = static_cast<size_t>(shape.batch * shape.out_channels * conv.positions());
    const auto addend = random_values<T>(random_, outputs);
    const T* added = adds ? addend.data() : nullptr;
    const std::vector<long double> want = conv.reference(x, bias.data(), added);
    const auto plain = conv.run(false, x, bias.data(), added), folded = conv.run(true, x, bias.data(), added);
    long double plain_error = 0, folded_error = 0, largest = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      plain_error = std::max(plain_error, std::abs(plain[i] - want[i]));
      folded_error = std::max(folded_error, std::abs(folded[i] - want[i]));
      largest = std::max(largest, std::abs(want[i]));
    }
    const long double unit = std::numeric_limits<T>::epsilon() / 2;
    EXPECT_LE(folded_error, 1.5L * plain_error + unit * largest) << "plain " << plain_error << " of " << largest;
    EXPECT_EQ(folded, conv.run(true, x, bias.data(), added, true)) << "in parts";
  }

  template <class T = float>
  void check_random(int kinds, const ConvShape& shape, bool periodic, Clamp clamp = {-INFINITY, INFINITY},
                    bool adds = false) {
    std::vector<T> weights;
    for (int64_t f = 0; f < shape.out_channels; ++f) {
      const int kind = kinds == 3 ? static_cast<int>(f % 3) - 1 : kinds;
      for (int64_t c = 0; c < shape.in_channels; ++c) {
        const auto w = random_filter(random_, kind, periodic, shape.kernel[0]);
        weights.insert(weights.end(), w.begin(), w.end());
      }
    }
    Convolution<T> conv(shape, weights);
    conv.clamp = clamp;
    check(conv, shape, adds);
  }
};

std::vector<float> floats(const std::vector<double>& w) {
  return {w.begin(), w.end()};
}

TEST_P(FoldedConvTest, Transforms) {
  for (const int64_t length : {64, 100, 128, 256, 400, 513}) {
    for (const int64_t batch : {1, 3, 40}) {
      const ConvShape s = frames(batch, 1, length / 2 * 2 + 2, length, length / 2, 4);
      Convolution<float> conv(s, floats(transform(length, hann(length))));
      check(conv, s);
    }
  }
}

// Windows that are not symmetric, or zero at both ends.
TEST_P(FoldedConvTest, WindowsOfAnyForm) {
  const int64_t length = 256;
  auto skewed = hann(length), narrow = hann(length);
  for (size_t n = 0; n < skewed.size(); ++n) {
    skewed[n] = (0.1 + skewed[n]) * std::exp(-0.01 * static_cast<double>(n));
    if (n < 40 || n > 210) narrow[n] = 0;
  }
  const ConvShape s = frames(2, 1, length + 2, length, 100, 9);
  for (const auto& window : {std::vector<double>(256, 1), skewed, narrow}) {
    Convolution<float> conv(s, floats(transform(length, window)));
    EXPECT_LT(conv.fold.work, conv.fold.plain_work / 3);
    check(conv, s);
  }
}

TEST_P(FoldedConvTest, BanksOfFilters) {
  for (const bool periodic : {false, true}) {
    for (const int64_t length : {63, 64, 65, 97, 160}) {
      for (const int kinds : {1, -1, 3}) {
        check_random(kinds, frames(1, 1, 144, length, 1, 70), periodic);
        check_random(kinds, frames(5, 3, 90, length, 7, 3), periodic, {-0.5f, 2}, true);
        check_random<double>(kinds, frames(2, 2, 96, length, 16, 5), periodic, {0, INFINITY}, true);
      }
    }
  }
}

TEST_P(FoldedConvTest, PadsAndDilations) {
  for (const int64_t dilation : {1, 2, 5}) {
    for (const int64_t pad : {0, 31, 64, -3}) {
      ConvShape s = frames(2, 2, 144, 64, 3, 20);
      s.dilation[0] = dilation;
      s.pad_begin[0] = pad;
      check_random(3, s, true);
    }
  }
}

// Two axes; the kernel is longer than 1 along the first only.
TEST_P(FoldedConvTest, FirstOfTwoAxes) {
  ConvShape line = frames(2, 2, 48, 64, 8, 5), plane = line;
  plane.axes = 2;
  plane.input[1] = plane.output[1] = plane.kernel[1] = 1;
  std::vector<float> weights;
  for (int64_t f = 0; f < 2 * 48; ++f) {
    for (const double w : random_filter(random_, 1, false, 64)) weights.push_back(static_cast<float>(w));
  }
  const auto x = random_values<float>(random_, static_cast<size_t>(2 * 2 * line.input[0]));
  const Convolution<float> one(line, weights), two(plane, weights);
  EXPECT_EQ(one.run(true, x), two.run(true, x));
}

TEST_P(FoldedConvTest, NanAndInfinityComeThrough) {
  const ConvShape s = frames(1, 1, 258, 256, 128, 4);
  const Convolution<float> conv(s, floats(transform(256, hann(256))));
  for (const float special : {NAN, INFINITY, -INFINITY}) {
    for (int64_t at = 0; at < conv.input_count(); at += 1 + at % 3) {
      auto x = random_values<float>(random_, static_cast<size_t>(conv.input_count()));
      x[static_cast<size_t>(at)] = special;
      const auto plain = conv.run(false, x), folded = conv.run(true, x);
      for (size_t i = 0; i < plain.size(); ++i) {
        ASSERT_EQ(std::isfinite(folded[i]), std::isfinite(plain[i])) << i << ", " << special << " at " << at;
        if (std::isnan(plain[i])) ASSERT_TRUE(std::isnan(folded[i])) << i << ", " << special << " at " << at;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, FoldedConvTest, testing::ValuesIn(usable_isas()),
                         [](const auto& chosen) { return std::string(name(chosen.param)); });

Fold fold_of(const std::vector<double>& weights, int64_t filters, int64_t length) {
  return fold_filters(floats(weights).data(), filters, 1, length).fold;
}

TEST(Fold, TransformsTakeAFourthOfTheProducts) {
  for (const int64_t length : {256, 400, 512}) {
    const Fold fold = fold_of(transform(length, hann(length)), length + 2, length);
    EXPECT_TRUE(pays(fold, frames(1, 1, length + 2, length, 1, 1000)));
    EXPECT_LT(fold.work, fold.plain_work * 2 / 7) << length;
  }
}

std::vector<double> symmetric_bank(std::mt19937& random, int64_t filters, int64_t length) {
  std::vector<double> weights;
  for (int64_t f = 0; f < filters; ++f) {
    const auto w = random_filter(random, 1, false, length);
    weights.insert(weights.end(), w.begin(), w.end());
  }
  return weights;
}

TEST(Fold, FiltersThatAreNearlySymmetricStayPlain) {
  std::mt19937 random(1);
  auto weights = symmetric_bank(random, 64, 64);
  EXPECT_EQ(fold_of(weights, 64, 64).lists[0].filters, 0);
  double largest = 0;
  for (size_t i = 0; i < 64; ++i) largest = std::max(largest, std::abs(weights[5 * 64 + i]));
  weights[5 * 64 + 3] += 12 * 0x1p-24 * largest;
  EXPECT_EQ(fold_of(weights, 64, 64).lists[0].filters, 1);
  for (size_t f = 0; f < 64; ++f) weights[f * 64 + f] += 1e-5;
  EXPECT_EQ(fold_of(weights, 64, 64).split_count, 0);
}

TEST(Fold, RoundingsOfMirroredWeightsDoNotMatter) {
  std::mt19937 random(1);
  auto weights = symmetric_bank(random, 64, 64);
  for (size_t f = 0; f < 64; ++f) {
    double largest = 0;
    for (size_t i = 0; i < 64; ++i) largest = std::max(largest, std::abs(weights[f * 64 + i]));
    weights[f * 64 + f] += 2 * 0x1p-24 * largest;
  }
  EXPECT_EQ(fold_of(weights, 64, 64).lists[0].filters, 0);
}

TEST(Fold, NeedsFiltersEnoughAndFiniteWeights) {
  std::mt19937 random(1);
  EXPECT_FALSE(may_fold(2, 1, 256));
  EXPECT_FALSE(may_fold(512, 512, 3));
  EXPECT_EQ(fold_of(random_filter(random, 0, false, 64 * 64), 64, 64).split_count, 0);
  EXPECT_EQ(fold_of(std::vector<double>(64 * 64), 64, 64).split_count, 0);
  auto weights = symmetric_bank(random, 64, 64);
  weights[64 * 7] = weights[64 * 7 + 63] = INFINITY;
  weights[64 * 9] = weights[64 * 9 + 63] = NAN;
  EXPECT_EQ(fold_of(weights, 64, 64).lists[0].filters, 2);
}

// The fewer filters share the sums, the less they gain; results that a plain convolution stores in place cost more.
TEST(Fold, PaysByTheCountsOfProducts) {
  std::mt19937 random(1);
  for (const int64_t filters : {16, 32, 64, 128, 256}) {
    const Fold fold = fold_of(symmetric_bank(random, filters, 64), filters, 64);
    EXPECT_EQ(pays(fold, frames(1, 1, filters, 64, 1, 4)), filters >= 64) << filters;
    EXPECT_FALSE(pays(fold, frames(1, 1, filters, 64, 1, 300))) << filters;
    EXPECT_EQ(pays(fold, frames(1, 1, filters, 64, 32, 300)), filters >= 64) << filters;
  }
}

TEST(Fold, ShapesThatDoNot) {
  ConvShape s = frames(1, 1, 258, 256, 128, 4);
  EXPECT_TRUE(may_fold(s));
  s.groups = 2;
  EXPECT_FALSE(may_fold(s));
  s.groups = 1, s.transposed = true;
  EXPECT_FALSE(may_fold(s));
  s.transposed = false, s.axes = 2, s.kernel[1] = 3;
  EXPECT_FALSE(may_fold(s));
}

}  // namespace
}  // namespace treadle::kernels
