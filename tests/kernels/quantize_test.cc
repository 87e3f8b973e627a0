// Every instruction set against the formulas, element by element, at lengths around the widths of vectors, in place.
#include "kernels/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "kernels/kernel_test_util.h"

namespace treadle::kernels {
namespace {

class Quantize : public EachIsa {
 protected:
  // Calls fn(n, step) with fresh values.
  template <class Fn>
  void each(Fn fn) {
    const QuantizeKernels& rows = quantize_kernels();
    for (const size_t n : {0, 1, 3, 4, 5, 15, 16, 17, 33, 100}) {
      for (const size_t step : {0, 1}) {
        SCOPED_TRACE(testing::Message() << n << " elements, step " << step);
        std::uniform_real_distribution<float> any(-300, 300), positive(0.1f, 4);
        std::uniform_int_distribution<int32_t> level(-128, 255);
        floats.resize(n);
        scales.resize(n + 1);
        levels.resize(n);
        zeros.resize(n + 1);
        for (float& v : floats) v = any(random_);
        for (float& v : scales) v = positive(random_);
        for (int32_t& v : levels) v = level(random_);
        for (int32_t& v : zeros) v = level(random_);
        if (n > 4) floats[1] = NAN, floats[2] = INFINITY, floats[3] = -INFINITY, floats[4] = 2.5f;
        fn(rows, n, step);
      }
    }
  }

  static float rounded(float v, int32_t zero, float low, float high) {
    if (std::isnan(v)) return low;
    const double level = std::nearbyint(std::clamp(static_cast<double>(v), double{low} - zero, double{high} - zero));
    return static_cast<float>(level + zero);
  }

  std::vector<float> floats, scales;
  std::vector<int32_t> levels, zeros;
};
TREADLE_EACH_ISA(Quantize);

void expect_same(float found, float expected) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(found));
  } else {
    EXPECT_EQ(found, expected);
  }
}

TEST_P(Quantize, Scales) {
  each([&](const QuantizeKernels& rows, size_t n, size_t step) {
    std::vector<float> quotients = floats, products = floats;
    rows.divide(quotients.data(), scales.data(), step, quotients.data(), n);
    rows.multiply(products.data(), scales.data(), step, products.data(), n);
    for (size_t i = 0; i < n; ++i) {
      expect_same(quotients[i], floats[i] / scales[i * step]);
      expect_same(products[i], floats[i] * scales[i * step]);
    }
  });
}

TEST_P(Quantize, Rounds) {
  each([&](const QuantizeKernels& rows, size_t n, size_t step) {
    std::vector<int32_t> found(n);
    rows.round(floats.data(), zeros.data(), step, -128, 127, found.data(), n);
    for (size_t i = 0; i < n; ++i) EXPECT_EQ(found[i], rounded(floats[i], zeros[i * step], -128, 127));
    rows.round(floats.data(), nullptr, step, 0, 255, found.data(), n);
    for (size_t i = 0; i < n; ++i) EXPECT_EQ(found[i], rounded(floats[i], 0, 0, 255));
  });
}

TEST_P(Quantize, Centres) {
  each([&](const QuantizeKernels& rows, size_t n, size_t step) {
    std::vector<float> found(n);
    rows.centre(levels.data(), zeros.data(), step, found.data(), n);
    for (size_t i = 0; i < n; ++i) EXPECT_EQ(found[i], static_cast<float>(levels[i] - zeros[i * step]));
    rows.centre(levels.data(), nullptr, step, found.data(), n);
    for (size_t i = 0; i < n; ++i) EXPECT_EQ(found[i], static_cast<float>(levels[i]));
  });
}

}  // namespace
}  // namespace treadle::kernels
