#include "kernels/pool.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "kernels/kernel_test_util.h"

namespace treadle::kernels {
namespace {

struct Window {
  std::vector<int64_t> inside;  // input indices within the plane, in order
  int64_t padded = 0;           // taps inside the padded input
};

template <class F>
void for_each_window(const PoolShape& s, F&& f) {
  int64_t outputs = 1, taps = 1;
  for (int i = 0; i < s.axes; ++i) outputs *= s.output[i], taps *= s.kernel[i];
  for (int64_t output = 0; output < outputs; ++output) {
    Window window;
    for (int64_t tap = 0; tap < taps; ++tap) {
      int64_t index = 0, scale = 1, o = output, t = tap;
      bool inside = true, in_pads = true;
      for (int i = s.axes - 1; i >= 0; --i) {
        const int64_t at = o % s.output[i] * s.stride[i] + t % s.kernel[i] * s.dilation[i] - s.pad_begin[i];
        inside = inside && at >= 0 && at < s.input[i];
        in_pads = in_pads && at >= -s.pad_begin[i] && at < s.input[i] + s.pad_end[i];
        index += at * scale;
        scale *= s.input[i];
        o /= s.output[i];
        t /= s.kernel[i];
      }
      window.padded += in_pads;
      if (inside) window.inside.push_back(index);
    }
    f(output, window);
  }
}

template <class T>
T expected(PoolKind kind, int p, const T* x, const Window& window, int64_t* best_index) {
  if (kind == PoolKind::kMax) {
    T best = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::min();
    *best_index = -1;
    for (int64_t i : window.inside) {
      if (*best_index < 0 || x[i] > best || (x[i] != x[i] && best == best)) best = x[i], *best_index = i;
    }
    return best;
  }
  double sum = 0;
  for (int64_t i : window.inside) {
    sum += kind == PoolKind::kLp ? std::pow(std::abs(static_cast<double>(x[i])), p) : static_cast<double>(x[i]);
  }
  if (kind == PoolKind::kLp) return static_cast<T>(std::pow(sum, 1.0 / p));
  const auto count = kind == PoolKind::kAverage ? static_cast<int64_t>(window.inside.size()) : window.padded;
  return count == 0 ? T(0) : static_cast<T>(sum / static_cast<double>(count));
}

class PoolTest : public EachIsa {
 protected:
  // To the bit, except for NaNs.
  template <class T>
  static bool same_elements(const T* a, const T* b, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      if (std::memcmp(a + i, b + i, sizeof(T)) != 0 && (a[i] == a[i] || b[i] == b[i])) return false;
    }
    return true;
  }

  int64_t draw(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }

  PoolShape random_shape() {
    PoolShape s;
    s.axes = static_cast<int>(draw(1, 3));
    s.batch = draw(1, 2);
    s.channels = draw(1, 3);
    for (int i = 0; i < s.axes; ++i) {
      s.kernel[i] = draw(1, 4);
      s.stride[i] = draw(0, 3) == 0 ? draw(4, 17) : draw(1, 3);
      s.dilation[i] = draw(1, 2);
      const int64_t reach = (s.kernel[i] - 1) * s.dilation[i] + 1;
      s.pad_begin[i] = draw(0, s.kernel[i] - 1);
      s.pad_end[i] = draw(0, s.kernel[i] - 1);
      s.input[i] = std::max<int64_t>(draw(1, s.axes == 1 ? 100 : 20), reach - s.pad_begin[i] - s.pad_end[i]);
      const int64_t room = s.input[i] + s.pad_begin[i] + s.pad_end[i] - reach;
      const bool ceil = draw(0, 1) != 0;
      s.output[i] = (room + (ceil ? s.stride[i] - 1 : 0)) / s.stride[i] + 1;
      if ((s.output[i] - 1) * s.stride[i] >= s.input[i] + s.pad_begin[i]) --s.output[i];
    }
    return s;
  }

  static int64_t elements(const PoolShape& s) {
    int64_t count = s.batch * s.channels;
    for (int i = 0; i < s.axes; ++i) count *= s.input[i];
    return count;
  }

  template <class T>
  void check(PoolKind kind, ElementType type, const PoolShape& s) {
    check(kind, type, s, random_values<T>(random_, static_cast<size_t>(elements(s))));
  }

  template <class T>
  void check(PoolKind kind, ElementType type, const PoolShape& s, const std::vector<T>& x) {
    int64_t in = 1, out = 1;
    for (int i = 0; i < s.axes; ++i) in *= s.input[i], out *= s.output[i];
    const int64_t planes = s.batch * s.channels;
    Scratch y(static_cast<size_t>(planes * out) * sizeof(T)), z(static_cast<size_t>(planes * out) * sizeof(T));
    Scratch indices(static_cast<size_t>(planes * out) * sizeof(int64_t));
    run_pool(kind, type, s, x.data(), y.get(), nullptr, 0, planes);
    if (kind != PoolKind::kLp) {  // any lanes
      const ScopedIsa narrow(Isa::kBaseline);
      run_pool(kind, type, s, x.data(), z.get(), nullptr, 0, planes);
      ASSERT_TRUE(same_elements(y.as<T>(), z.as<T>(), planes * out));
    }
    if (kind == PoolKind::kMax) {
      run_pool(kind, type, s, x.data(), z.get(), indices.as<int64_t>(), 0, planes);
      EXPECT_EQ(0, std::memcmp(y.get(), z.get(), static_cast<size_t>(planes * out) * sizeof(T)));
    }
    for (int64_t plane = 0; plane < planes; ++plane) {
      for_each_window(s, [&](int64_t output, const Window& window) {
        int64_t index = 0;
        const T want = expected(kind, s.p, x.data() + plane * in, window, &index);
        const T got = y.as<T>()[plane * out + output];
        if constexpr (std::is_integral_v<T>) {
          ASSERT_EQ(got, want) << "output " << output;
        } else {
          const bool equal = got == want || (std::isnan(got) && std::isnan(want));
          ASSERT_TRUE(equal || std::abs(got - want) < 1e-5) << got << " for " << want << " at " << output;
        }
        if (kind != PoolKind::kMax) return;
        if (index >= 0 && s.column_major_indices) {
          int64_t turned = 0, scale = 1, rest = index;
          int64_t at[kMaxSpatialAxes];
          for (int i = s.axes - 1; i >= 0; --i) at[i] = rest % s.input[i], rest /= s.input[i];
          for (int i = 0; i < s.axes; ++i) turned += at[i] * scale, scale *= s.input[i];
          index = turned;
        }
        ASSERT_EQ(indices.as<int64_t>()[plane * out + output], index < 0 ? -1 : plane * in + index);
      });
    }
  }
};

TEST_P(PoolTest, RandomWindows) {
  for (int round = 0; round < 200; ++round) {
    PoolShape s = random_shape();
    s.p = static_cast<int>(draw(1, 3));
    s.column_major_indices = draw(0, 1) != 0;
    for (PoolKind kind : {PoolKind::kMax, PoolKind::kAverage, PoolKind::kAverageWithPads, PoolKind::kLp}) {
      check<float>(kind, ElementType::kFloat, s);
      check<double>(kind, ElementType::kDouble, s);
    }
    check<int8_t>(PoolKind::kMax, ElementType::kInt8, s);
    check<uint8_t>(PoolKind::kMax, ElementType::kUint8, s);
  }
}

// Windows that are mostly outside of the input; many taps read nothing at any position.
TEST_P(PoolTest, WindowsLargerThanTheInput) {
  for (int round = 0; round < 60; ++round) {
    PoolShape s = random_shape();
    for (int i = 0; i < s.axes; ++i) {
      s.input[i] = draw(1, 5);
      s.kernel[i] = draw(1, s.axes == 3 ? 6 : 12);
      const int64_t reach = (s.kernel[i] - 1) * s.dilation[i] + 1;
      s.pad_begin[i] = draw(0, 9);
      s.pad_end[i] = std::max(draw(0, 9), reach - s.input[i] - s.pad_begin[i]);
      s.output[i] = (s.input[i] + s.pad_begin[i] + s.pad_end[i] - reach) / s.stride[i] + 1;
    }
    for (PoolKind kind : {PoolKind::kMax, PoolKind::kAverage, PoolKind::kAverageWithPads, PoolKind::kLp}) {
      check<float>(kind, ElementType::kFloat, s);
      check<double>(kind, ElementType::kDouble, s);
    }
    check<int8_t>(PoolKind::kMax, ElementType::kInt8, s);
  }
}

// The kernel walks at most as many taps as the input and output have elements, and divides the sum by all taps that
// count.
TEST_P(PoolTest, WindowsOfAnySize) {
  constexpr int64_t kMost = INT32_MAX;
  PoolShape s;
  s.axes = 3;
  for (int i = 0; i < s.axes; ++i) {
    s.input[i] = s.output[i] = 3;
    s.kernel[i] = kMost;
    s.pad_begin[i] = s.pad_end[i] = (kMost - 1) / 2;
  }
  const PoolShape read = narrowed(s);
  for (int i = 0; i < s.axes; ++i) EXPECT_LE(read.kernel[i], 6);
  const std::vector<float> x(27, 1);
  std::vector<float> y(27);
  run_pool(PoolKind::kAverage, ElementType::kFloat, s, x.data(), y.data(), nullptr, 0, 1);
  for (const float average : y) EXPECT_EQ(average, 1);
  run_pool(PoolKind::kAverageWithPads, ElementType::kFloat, s, x.data(), y.data(), nullptr, 0, 1);
  const double taps = static_cast<double>(kMost);
  EXPECT_FLOAT_EQ(y[13], static_cast<float>(27 / (taps * taps * taps)));
}

// Infinities and NaNs among the elements, in most or few of them, in windows of any shape.
TEST_P(PoolTest, SpecialValues) {
  for (int round = 0; round < 100; ++round) {
    const PoolShape s = random_shape();
    const auto place = [&](auto x) {
      using T = typename decltype(x)::value_type;
      constexpr T kInfinity = std::numeric_limits<T>::infinity();
      const T special[] = {kInfinity, -kInfinity, std::numeric_limits<T>::quiet_NaN(), T(-0.0)};
      const int64_t every = draw(1, 40);
      for (T& element : x) {
        if (draw(1, every) == 1) element = special[draw(0, 3)];
      }
      return x;
    };
    const auto count = static_cast<size_t>(elements(s));
    check<float>(PoolKind::kMax, ElementType::kFloat, s, place(random_values<float>(random_, count)));
    check<double>(PoolKind::kMax, ElementType::kDouble, s, place(random_values<double>(random_, count)));
    check<float>(PoolKind::kAverage, ElementType::kFloat, s, place(random_values<float>(random_, count)));
    check<double>(PoolKind::kAverageWithPads, ElementType::kDouble, s, place(random_values<double>(random_, count)));
  }
}

// Planes of few rows and columns, and rows longer than the stretch that is searched at once.
TEST_P(PoolTest, SmallAndLongRows) {
  for (const int64_t width : {2, 5, 7, 8, 9, 127, 128, 129, 300}) {
    for (const int64_t channels : {5, 75}) {
      PoolShape s;
      s.channels = channels;
      s.input[0] = 4, s.input[1] = width;
      s.kernel[0] = s.kernel[1] = 2;
      s.output[0] = 3, s.output[1] = width - 1;
      check<float>(PoolKind::kMax, ElementType::kFloat, s);
      check<uint8_t>(PoolKind::kMax, ElementType::kUint8, s);
      check<float>(PoolKind::kAverage, ElementType::kFloat, s);
      s.kernel[1] = 3, s.pad_begin[1] = s.pad_end[1] = 1;
      s.output[1] = width;
      check<float>(PoolKind::kMax, ElementType::kFloat, s);
      check<float>(PoolKind::kAverage, ElementType::kFloat, s);
      check<float>(PoolKind::kAverageWithPads, ElementType::kFloat, s);
    }
  }
}

TEST_P(PoolTest, NotANumberWins) {
  PoolShape s;
  s.axes = 1;
  s.input[0] = 40, s.kernel[0] = 3, s.output[0] = 38;
  std::vector<float> x(40, 1.f), y(38);
  x[20] = NAN;
  std::vector<int64_t> indices(38);
  for (int64_t* where : {static_cast<int64_t*>(nullptr), indices.data()}) {
    run_pool(PoolKind::kMax, ElementType::kFloat, s, x.data(), y.data(), where, 0, 1);
    for (size_t i = 0; i < 38; ++i) EXPECT_EQ(std::isnan(y[i]), i >= 18 && i <= 20) << i;
  }
  EXPECT_EQ(indices[18], 20);
}

TEST_P(PoolTest, WholePlanes) {
  for (int64_t plane : {1, 7, 64, 65, 1000}) {
    const auto x = random_values<float>(random_, static_cast<size_t>(3 * plane));
    for (int p : {1, 2, 3}) {
      for (PoolKind kind : {PoolKind::kMax, PoolKind::kAverage, PoolKind::kLp}) {
        float y[3];
        run_global_pool(kind, ElementType::kFloat, p, plane, x.data(), y, 0, 3);
        for (int64_t i = 0; i < 3; ++i) {
          Window all;
          for (int64_t j = 0; j < plane; ++j) all.inside.push_back(j);
          int64_t index;
          const double exact = expected(kind, p, x.data() + i * plane, all, &index);
          EXPECT_NEAR(y[i], exact, 1e-5 * (1 + std::abs(exact)));  // up to 1000 elements are summed
        }
      }
    }
  }
}

TREADLE_EACH_ISA(PoolTest);

}  // namespace
}  // namespace treadle::kernels
