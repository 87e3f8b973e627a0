#include "kernels/qgemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/conv.h"
#include "kernels/kernel_test_util.h"

namespace treadle::kernels {
namespace {

int32_t byte_value(uint8_t byte, bool is_signed) {
  return is_signed ? static_cast<int8_t>(byte) : byte;
}

struct QProblem {
  QGemmShape shape;
  std::vector<uint8_t> a, b, a_zero, b_zero;

  QProblem(std::mt19937& random, QGemmShape s) : shape(s) {
    const auto bytes = [&](int64_t count) { return random_values<uint8_t>(random, static_cast<size_t>(count)); };
    a = bytes(s.m * s.k + 1);
    b = bytes(s.k * s.n + 1);
    a_zero = bytes(s.m + 1);
    b_zero = bytes(s.n + 1);
    // Largest products, for which saturating instructions would be wrong.
    if (random() % 2 != 0) std::fill(a.begin(), a.end(), s.a_signed ? 0x80 : 0xFF);
    if (random() % 2 != 0) std::fill(b.begin(), b.end(), s.b_signed ? 0x80 : 0xFF);
  }

  std::vector<int32_t> expected(bool zeros) const {
    std::vector<int32_t> out;
    for (int64_t i = 0; i < shape.m; ++i) {
      for (int64_t j = 0; j < shape.n; ++j) {
        const auto za =
            zeros ? byte_value(a_zero[static_cast<size_t>(shape.a_zero_per_row ? i : 0)], shape.a_signed) : 0;
        const auto zb =
            zeros ? byte_value(b_zero[static_cast<size_t>(shape.b_zero_per_column ? j : 0)], shape.b_signed) : 0;
        int64_t sum = 0;
        for (int64_t p = 0; p < shape.k; ++p) {
          sum += int64_t{byte_value(a[static_cast<size_t>(i * shape.a_row + p * shape.a_col)], shape.a_signed) - za} *
                 (byte_value(b[static_cast<size_t>(p * shape.b_row + j * shape.b_col)], shape.b_signed) - zb);
        }
        out.push_back(static_cast<int32_t>(sum));
      }
    }
    return out;
  }
};

class QGemmTest : public EachIsa {
 protected:
  void check(QGemmShape s) {
    s.c_row = s.n + 2;
    check(s, QProblem(random_, s));
  }

  void check(QGemmShape s, const QProblem& problem) {
    for (bool zeros : {false, true}) {
      const auto want = problem.expected(zeros);
      for (bool packed : {false, true}) {
        s.b_packed = packed;
        const QGemmPlan plan = prepare_qgemm(s);
        Scratch scratch(plan.scratch_bytes), panels(plan.packed_b_bytes);
        if (packed) pack_qgemm_b(plan, problem.b.data(), panels.get());
        std::vector<int32_t> got(static_cast<size_t>(s.m * s.c_row), -7);
        run_qgemm(plan,
                  {problem.a.data(), packed ? panels.get() : problem.b.data(), zeros ? problem.a_zero.data() : nullptr,
                   zeros ? problem.b_zero.data() : nullptr, got.data(), scratch.get()},
                  {});
        for (int64_t i = 0; i < s.m; ++i) {
          for (int64_t j = 0; j < s.c_row; ++j) {
            ASSERT_EQ(got[static_cast<size_t>(i * s.c_row + j)], j < s.n ? want[static_cast<size_t>(i * s.n + j)] : -7)
                << fmt::format("m={} n={} k={} signed {} {} per {} {} zeros {} packed {} at {},{}", s.m, s.n, s.k,
                               s.a_signed, s.b_signed, s.a_zero_per_row, s.b_zero_per_column, zeros, packed, i, j);
          }
        }
      }
    }
  }
};

TEST_P(QGemmTest, ExactForEveryCombination) {
  const int64_t sizes[][3] = {{1, 1, 1},  {1, 40, 7},  {3, 33, 64}, {8, 16, 5},  {9, 70, 130},
                              {1, 64, 0}, {17, 3, 19}, {2, 31, 4},  {20, 65, 33}};
  for (const auto& [m, n, k] : sizes) {
    for (int flags = 0; flags < 64; ++flags) {
      QGemmShape s;
      s.m = m, s.n = n, s.k = k;
      const bool a_turned = (flags & 16) != 0, b_turned = (flags & 32) != 0;
      s.a_row = a_turned ? 1 : k, s.a_col = a_turned ? m : 1;
      s.b_row = b_turned ? 1 : n, s.b_col = b_turned ? k : 1;
      s.a_signed = flags & 1, s.b_signed = flags & 2;
      s.a_zero_per_row = flags & 4, s.b_zero_per_column = flags & 8;
      check(s);
    }
  }
}

// Weights as in trained models, where few neighbours do not fit 16 bits together, and weights of which all or none do.
TEST_P(QGemmTest, ExactForWeightsThatFitAndThoseThatDoNot) {
  const auto weight = [this](int kind) -> int {
    std::normal_distribution<double> normal(0, kind);
    switch (kind) {
      case 0:
        return -128;
      case 1:
        return 127;
      case 2:
        return 64;
      default:
        return static_cast<int>(std::clamp(std::nearbyint(normal(random_)), -128., 127.));
    }
  };
  for (const int kind : {0, 1, 2, 25, 33, 38, 60}) {
    for (int round = 0; round < 12; ++round) {
      QGemmShape s;
      s.m = 1 + random_() % 40, s.n = 1 + random_() % 90, s.k = 1 + random_() % 300;
      const bool a_turned = round % 3 == 0, b_turned = round % 4 == 0;
      s.a_row = a_turned ? 1 : s.k, s.a_col = a_turned ? s.m : 1;
      s.b_row = b_turned ? 1 : s.n, s.b_col = b_turned ? s.k : 1;
      s.a_signed = round & 1, s.b_signed = round & 2;
      s.a_zero_per_row = random_() % 2, s.b_zero_per_column = random_() % 2;
      s.c_row = s.n + 2;
      QProblem problem(random_, s);
      for (auto& b : problem.b) b = static_cast<uint8_t>(weight(kind) + (s.b_signed ? 0 : 128));
      check(s, problem);
    }
  }
}

TEST_P(QGemmTest, LongSumsWrap) {
  QGemmShape s;
  s.m = 2, s.n = 3, s.k = 140000;
  s.a_row = s.k, s.b_row = s.n;
  check(s);
}

float scaled(int32_t sum, int32_t bias, float multiplier) {
  return static_cast<float>(sum + bias) * multiplier;
}

TEST_P(QGemmTest, Epilogues) {
  QGemmShape s;
  s.m = 5, s.n = 37, s.k = 50;
  s.a_row = s.k, s.b_row = s.n, s.c_row = s.n;
  s.b_packed = true;
  s.b_signed = true;
  const QProblem problem(random_, s);
  const auto sums = problem.expected(true);
  const QGemmPlan plan = prepare_qgemm(s);
  Scratch scratch(plan.scratch_bytes), panels(plan.packed_b_bytes);
  pack_qgemm_b(plan, problem.b.data(), panels.get());
  const auto float_bias = random_values<float>(random_, static_cast<size_t>(s.n));
  std::vector<int32_t> bias(static_cast<size_t>(s.n));
  std::vector<float> a_scale(5), b_scale(static_cast<size_t>(s.n));
  for (auto& value : bias) value = static_cast<int32_t>(random_() % 2001) - 1000;
  for (auto& value : a_scale) value = 0.01f * static_cast<float>(random_() % 100 + 1);
  for (auto& value : b_scale) value = 0.01f * static_cast<float>(random_() % 100 + 1);
  const float c_scale = 40.5f;
  for (int flags = 0; flags < 8; ++flags) {
    QGemmEpilogue e;
    e.bias = flags & 4 ? bias.data() : nullptr;
    e.a_scale = a_scale.data(), e.b_scale = b_scale.data(), e.c_scale = &c_scale;
    e.a_scale_per_row = flags & 1, e.b_scale_per_column = flags & 2;
    const auto each = [&](auto&& f) {
      for (size_t i = 0; i < 5; ++i) {
        for (size_t j = 0; j < 37; ++j) {
          const float scale = a_scale[e.a_scale_per_row ? i : 0] * b_scale[e.b_scale_per_column ? j : 0];
          f(i * 37 + j, j, scale, sums[i * 37 + j], e.bias ? bias[j] : 0);
        }
      }
    };
    const auto run = [&](void* c) {
      run_qgemm(plan, {problem.a.data(), panels.get(), problem.a_zero.data(), problem.b_zero.data(), c, scratch.get()},
                e);
    };
    std::vector<float> floats(5 * 37, 100.f);
    e.output = QGemmOutput::kScaled;
    e.float_bias = float_bias.data();
    e.accumulate = true;
    run(floats.data());
    each([&](size_t at, size_t j, float scale, int32_t sum, int32_t b) {
      EXPECT_FLOAT_EQ(floats[at], 100.f + (scaled(sum, b, scale) + float_bias[j]));
    });
    e.float_bias = nullptr;
    std::vector<uint8_t> bytes(5 * 37);
    for (auto output : {QGemmOutput::kUint8, QGemmOutput::kInt8}) {
      e.output = output;
      const bool is_signed = output == QGemmOutput::kInt8;
      e.c_zero = is_signed ? -3 : 128;
      run(bytes.data());
      each([&](size_t at, size_t, float scale, int32_t sum, int32_t b) {
        const double want = std::nearbyint(scaled(sum, b, scale / c_scale)) + e.c_zero;
        const double low = is_signed ? -128 : 0;
        EXPECT_EQ(byte_value(bytes[at], is_signed), std::clamp(want, low, low + 255)) << sum;
      });
    }
  }
}

// To the last bit as QuantizeLinear behind a product and a bias.
TEST_P(QGemmTest, DividesAsQuantizeLinearDoes) {
  QGemmShape s;
  s.m = 7, s.n = 41, s.k = 30;
  s.a_row = s.k, s.b_row = s.n, s.c_row = s.n;
  s.b_packed = true;
  const QProblem problem(random_, s);
  const auto sums = problem.expected(true);
  const QGemmPlan plan = prepare_qgemm(s);
  Scratch scratch(plan.scratch_bytes), panels(plan.packed_b_bytes);
  pack_qgemm_b(plan, problem.b.data(), panels.get());
  const auto bias = random_values<float>(random_, static_cast<size_t>(s.n));
  const auto b_scale = random_values<float>(random_, static_cast<size_t>(s.n));
  const float a_scale = 0.0123f, c_scale = 3.7f;
  for (const bool per_column : {false, true}) {
    QGemmEpilogue e;
    e.output = QGemmOutput::kInt8;
    e.float_bias = bias.data();
    e.a_scale = &a_scale, e.b_scale = b_scale.data(), e.c_scale = &c_scale;
    e.b_scale_per_column = per_column;
    e.divides = true;
    e.c_zero = 5;
    std::vector<int8_t> got(sums.size());
    run_qgemm(plan,
              {problem.a.data(), panels.get(), problem.a_zero.data(), problem.b_zero.data(), got.data(), scratch.get()},
              e);
    for (size_t at = 0; at < sums.size(); ++at) {
      const size_t j = at % static_cast<size_t>(s.n);
      const float scale = a_scale * b_scale[per_column ? j : 0];
      const float scaled = static_cast<float>(sums[at]) * scale;
      const float value = (scaled + bias[j]) / c_scale;
      EXPECT_EQ(got[at], std::clamp(std::nearbyint(value) + 5, -128.f, 127.f)) << at;
    }
  }
}

TEST_P(QGemmTest, RoundsHalfToEvenAndSaturates) {
  QGemmShape s;
  s.m = 8, s.n = 1, s.k = 1;
  s.a_row = 1, s.b_row = 1, s.c_row = 1;
  s.a_signed = true;
  const int8_t a[] = {1, 3, 5, -1, -3, 127, -128, 0};
  const uint8_t b = 1;
  const float half = 0.5f, one = 1.f;
  QGemmEpilogue e;
  e.output = QGemmOutput::kUint8;
  e.a_scale = &half, e.b_scale = &one, e.c_scale = &one;
  e.c_zero = 10;
  const QGemmPlan plan = prepare_qgemm(s);
  Scratch scratch(plan.scratch_bytes);
  uint8_t c[8];
  run_qgemm(plan, {a, &b, nullptr, nullptr, c, scratch.get()}, e);
  const uint8_t want[] = {10, 12, 12, 10, 8, 74, 0, 10};
  EXPECT_TRUE(std::equal(c, c + 8, want));
}

TEST_P(QGemmTest, Convolution) {
  for (int round = 0; round < 100; ++round) {
    QConvShape q;
    ConvShape& s = q.conv;
    s.batch = 1 + random_() % 2;
    s.groups = 1 + random_() % 3;
    s.in_channels = s.groups * static_cast<int64_t>(1 + random_() % 4);
    s.out_channels = s.groups * static_cast<int64_t>(1 + random_() % 9);
    for (size_t i = 0; i < 2; ++i) {
      s.input[i] = 6 + random_() % 10;
      s.kernel[i] = 1 + random_() % 3;
      s.stride[i] = 1 + random_() % 2;
      s.dilation[i] = 1 + random_() % 2;
      s.pad_begin[i] = random_() % 2;
      s.output[i] = (s.input[i] + 2 * s.pad_begin[i] - (s.kernel[i] - 1) * s.dilation[i] - 1) / s.stride[i] + 1;
    }
    q.x_signed = round & 1, q.w_signed = round & 2, q.w_zero_per_channel = round & 4;
    const int64_t in = s.input[0] * s.input[1], out = s.output[0] * s.output[1], taps = s.kernel[0] * s.kernel[1];
    const int64_t in_group = s.in_channels / s.groups, out_group = s.out_channels / s.groups;
    const auto x = random_values<uint8_t>(random_, static_cast<size_t>(s.batch * s.in_channels * in));
    const auto w = random_values<uint8_t>(random_, static_cast<size_t>(s.out_channels * in_group * taps));
    const auto zeros = random_values<uint8_t>(random_, static_cast<size_t>(s.out_channels) + 1);
    const QConvPlan plan = prepare_qconv(q);
    Scratch scratch(plan.scratch_bytes), packed(plan.packed_weight_bytes);
    std::vector<int32_t> y(static_cast<size_t>(s.batch * s.out_channels * out));
    pack_qconv_weights(plan, w.data(), packed.get());
    run_qconv(plan, {x.data(), packed.get(), zeros.data() + s.out_channels, zeros.data(), y.data(), scratch.get()}, {});
    size_t at = 0;
    for (int64_t b = 0; b < s.batch; ++b) {
      for (int64_t o = 0; o < s.out_channels; ++o) {
        for (int64_t position = 0; position < out; ++position, ++at) {
          int32_t sum = 0;
          for (int64_t c = 0; c < in_group; ++c) {
            for (int64_t tap = 0; tap < taps; ++tap) {
              const int64_t iy =
                  position / s.output[1] * s.stride[0] + tap / s.kernel[1] * s.dilation[0] - s.pad_begin[0];
              const int64_t ix =
                  position % s.output[1] * s.stride[1] + tap % s.kernel[1] * s.dilation[1] - s.pad_begin[1];
              if (iy < 0 || iy >= s.input[0] || ix < 0 || ix >= s.input[1]) continue;
              const int64_t channel = b * s.in_channels + o / out_group * in_group + c;
              const int32_t xv = byte_value(x[static_cast<size_t>(channel * in + iy * s.input[1] + ix)], q.x_signed) -
                                 byte_value(zeros.back(), q.x_signed);
              const int32_t wv = byte_value(w[static_cast<size_t>((o * in_group + c) * taps + tap)], q.w_signed) -
                                 byte_value(zeros[static_cast<size_t>(q.w_zero_per_channel ? o : 0)], q.w_signed);
              sum += xv * wv;
            }
          }
          ASSERT_EQ(y[at], sum) << "round " << round << " at " << at;
        }
      }
    }
  }
}

TREADLE_EACH_ISA(QGemmTest);

}  // namespace
}  // namespace treadle::kernels
