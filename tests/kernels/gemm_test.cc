#include "kernels/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "base/caches.h"
#include "base/float_formats.h"
#include "kernels/gemm_problem.h"
#include "kernels/kernel_test_util.h"

namespace treadle::kernels {
namespace {

template <class T>
void expect_close(const std::vector<T>& got, const std::vector<T>& want, int64_t k, const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if constexpr (std::is_integral_v<T>) {
      ASSERT_EQ(got[i], want[i]) << what << " at " << i;
    } else {
      const double tolerance = std::numeric_limits<T>::epsilon() * static_cast<double>(k + 8);
      ASSERT_NEAR(got[i], want[i], tolerance) << what << " at " << i;
    }
  }
}

class GemmTest : public EachIsa {
 protected:
  template <class T>
  void check(int64_t m, int64_t n, int64_t k, Order oa, Order ob, Bias bias, double alpha = 1, double beta = 1) {
    Problem<T> problem(random_, m, n, k, oa, ob, bias);
    problem.shape.alpha = alpha;
    problem.shape.beta = beta;
    const std::string what = fmt::format("m={} n={} k={} a={} b={} bias={}", m, n, k, static_cast<int>(oa),
                                         static_cast<int>(ob), static_cast<int>(bias));
    const auto want = problem.expected();
    const auto direct = problem.run(false);
    expect_close(direct, want, k, what + " direct");
    const auto packed = problem.run(true);
    EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(packed)), std::as_bytes(std::span(direct))))
        << what << ": packed B differs";
  }
};

TEST_P(GemmTest, EverySmallSize) {
  for (int64_t m : {1, 2, 3, 5, 8, 13, 16}) {
    for (int64_t n = 1; n <= 36; ++n) {
      for (int64_t k : {1, 2, 7, 8, 33}) check<float>(m, n, k, Order::kRows, Order::kRows, Bias::kNone);
    }
  }
}

TEST_P(GemmTest, StridesAndBiases) {
  const int64_t sizes[][3] = {{1, 7, 5},  {4, 65, 9},  {27, 40, 31}, {1, 200, 64},
                              {3, 2, 70}, {2, 1, 257}, {14, 33, 300}};
  for (const auto& [m, n, k] : sizes) {
    for (Order oa : kOrders) {
      for (Order ob : kOrders) {
        for (Bias bias : kBiases) check<float>(m, n, k, oa, ob, bias, bias == Bias::kScalar ? 0.5 : 1, 1.5);
      }
    }
  }
}

TEST_P(GemmTest, ManyBlocksOfK) {
  for (Order oa : kOrders) {
    for (Order ob : kOrders) {
      for (Bias bias : {Bias::kNone, Bias::kRow, Bias::kInPlace}) check<float>(29, 67, 1300, oa, ob, bias);
    }
  }
}

TEST_P(GemmTest, OtherElementTypes) {
  const int64_t sizes[][3] = {{1, 5, 3}, {9, 17, 20}, {30, 18, 700}, {5, 1, 40}, {2, 2, 3}};
  for (const auto& [m, n, k] : sizes) {
    for (Order oa : kOrders) {
      for (Order ob : kOrders) {
        check<double>(m, n, k, oa, ob, Bias::kMatrix, 2, -1);
        check<int32_t>(m, n, k, oa, ob, Bias::kRow, -3, 2);
        check<uint32_t>(m, n, k, oa, ob, Bias::kNone);
        check<int64_t>(m, n, k, oa, ob, Bias::kInPlace);
        check<uint64_t>(m, n, k, oa, ob, Bias::kColumn);
      }
    }
  }
}

// Panels in float16 give the bits of f32 panels of the rounded B, for any rows, strides and biases, and for subnormal
// and the largest weights.
TEST_P(GemmTest, HalfPanelsAreRoundedWeights) {
  const int64_t sizes[][3] = {{1, 3, 5},  {1, 64, 64},  {1, 257, 70}, {2, 130, 33},   {3, 70, 9},    {4, 100, 8},
                              {5, 7, 21}, {13, 40, 31}, {16, 96, 64}, {29, 67, 1300}, {8, 200, 300}, {37, 140, 300}};
  for (const auto& [m, n, k] : sizes) {
    for (Order oa : kOrders) {
      for (Bias bias : kBiases) {
        Problem<float> problem(random_, m, n, k, oa, Order::kColumns, bias);
        problem.b[3] = 65504, problem.b[4] = -6e-8f, problem.b[5] = 3e-6f, problem.b[6] = -0.0f, problem.b[7] = 1e-9f;
        problem.shape.b_half = true;
        const auto half = problem.run(true);
        for (float& weight : problem.b) weight = half_to_float(float_to_half(weight));
        problem.shape.b_half = false;
        const auto rounded = problem.run(true);
        EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(half)), std::as_bytes(std::span(rounded))))
            << fmt::format("m={} n={} k={} a={} bias={}", m, n, k, static_cast<int>(oa), static_cast<int>(bias));
      }
    }
  }
}

TEST_P(GemmTest, HalfPanelsTakeHalfTheMemory) {
  GemmShape shape{.m = 1, .n = 512, .k = 128, .b_row = 1, .b_col = 128, .c_row = 512, .b_packed = true};
  const size_t whole = prepare_gemm(ComputeType::kF32, shape).packed_b_bytes;
  shape.b_half = true;
  EXPECT_EQ(prepare_gemm(ComputeType::kF32, shape).packed_b_bytes * 2, whole);
  EXPECT_EQ(prepare_gemm(ComputeType::kF64, shape).packed_b_bytes, whole * 2);
}

TEST_P(GemmTest, EmptySizes) {
  check<float>(0, 5, 5, Order::kRows, Order::kRows, Bias::kRow);
  check<float>(5, 0, 5, Order::kRows, Order::kRows, Bias::kRow);
  check<float>(5, 6, 0, Order::kRows, Order::kRows, Bias::kRow);
  check<float>(5, 6, 0, Order::kColumns, Order::kColumns, Bias::kNone);
  check<float>(5, 1, 0, Order::kRows, Order::kRows, Bias::kColumn);
}

// A row's result depends neither on how many rows run with it, nor on ranges, nor on strides of A.
template <class T>
void expect_rows_independent(std::mt19937& random, int64_t n, int64_t k, bool half = false) {
  constexpr int64_t kRows = 37;
  Problem<T> problem(random, kRows, n, k, Order::kRows, Order::kRows, Bias::kRow);
  problem.shape.b_half = half;
  const auto whole = problem.run(true);
  GemmShape s = problem.shape;
  s.b_packed = true;
  const GemmPlan plan = prepare_gemm(kTypeOf<T>, s);
  Scratch scratch(plan.scratch_bytes), panels(plan.packed_b_bytes);
  pack_b(plan, problem.b_data(), panels.get());
  const auto equal_rows = [&](const std::vector<T>& got, const char* what) {
    EXPECT_EQ(0, std::memcmp(got.data(), whole.data(), got.size() * sizeof(T))) << what << " n=" << n << " k=" << k;
  };
  for (int64_t step : {1, 2, 3, 4, 5, 8, 16}) {
    auto got = problem.c;
    for (int64_t i = 0; i < kRows; i += step) {
      run_gemm_rows(plan, std::min(step, kRows - i), problem.a_data() + i * s.a_row, panels.get(), problem.bias.data(),
                    got.data() + i * s.c_row, scratch.get());
    }
    equal_rows(got, "rows in parts");
  }
  for (int64_t step : {int64_t{plan.column_step}, int64_t{1}, int64_t{7}}) {
    auto got = problem.c;
    const GemmOperands operands{problem.a_data(), panels.get(), problem.bias.data(), got.data(), scratch.get()};
    for (int64_t j = 0; j < n; j += step) {
      run_gemm_range(plan, operands, {0, kRows / 2, j, std::min(j + step, n)});
      run_gemm_range(plan, operands, {kRows / 2, kRows, j, std::min(j + step, n)});
    }
    equal_rows(got, "columns in parts");
  }
  for (int64_t step : {1, 3, 5}) {
    auto got = problem.c;
    const GemmOperands operands{problem.a_data(), panels.get(), problem.bias.data(), got.data(), scratch.get(), nullptr,
                                /*backward=*/true};
    for (int64_t i = 0; i < kRows; i += step) {
      run_gemm_range(plan, operands, {i, std::min(i + step, kRows), 0, n / 3});
      run_gemm_range(plan, operands, {i, std::min(i + step, kRows), n / 3, n});
    }
    equal_rows(got, "backwards");
  }
}

TEST_P(GemmTest, GemvPerStepEqualsGemm) {
  for (int64_t n : {1, 2, 3, 8, 15, 31, 32, 33, 64, 100, 128, 256, 300}) {
    for (int64_t k : {1, 5, 64, 300, 1100}) {
      expect_rows_independent<float>(random_, n, k);
      expect_rows_independent<float>(random_, n, k, true);
      expect_rows_independent<double>(random_, n, k);
    }
  }
}

// Larger than the second-level cache, where tiles prefetch.
TEST_P(GemmTest, LargeMatrices) {
  for (int64_t m : {1, 2, 4, 5}) {
    check<float>(m, 700, 400, Order::kRows, Order::kRows, Bias::kMatrix);
    check<double>(m, 360, 400, Order::kRows, Order::kColumns, Bias::kRow);
  }
  expect_rows_independent<float>(random_, 1050, 512, true);
  expect_rows_independent<float>(random_, 1050, 512);
}

// Rows of A are copied a block at a time, and tiles prefetch the next panel.
TEST_P(GemmTest, ManyRowsOfManySteps) {
  const auto steps = static_cast<int64_t>(caches().second / 512);
  for (Bias bias : {Bias::kRow, Bias::kInPlace}) {
    check<float>(331, 270, steps, Order::kRows, Order::kRows, bias);
    check<float>(331, 270, steps, Order::kReversed, Order::kColumns, bias);
    check<float>(331, 270, steps, Order::kColumns, Order::kRows, bias);
  }
}

// B that is not packed is copied a group of panels at a time.
TEST_P(GemmTest, GroupsOfCopiedPanels) {
  for (Bias bias : {Bias::kNone, Bias::kMatrix, Bias::kInPlace}) {
    for (int64_t m : {1, 2, 3, 4, 7, 13, 23}) check<float>(m, 300, 150, Order::kRows, Order::kColumns, bias);
    check<float>(40, 700, 600, Order::kRows, Order::kRows, bias);
    check<double>(3, 300, 150, Order::kColumns, Order::kReversed, bias);
  }
}

// For a few rows, columns of unpacked B are transposed in registers, also if they are whole ways of a cache apart.
TEST_P(GemmTest, TransposedColumns) {
  for (Bias bias : {Bias::kNone, Bias::kRow, Bias::kInPlace}) {
    for (int64_t m : {1, 2, 3, 4}) {
      for (int64_t k : {3, 4, 31, 259, 1024}) check<float>(m, 117, k, Order::kRows, Order::kColumns, bias);
      check<float>(m, 40, 300, Order::kColumns, Order::kColumns, bias);
    }
  }
}

TEST_P(GemmTest, NotANumberAndInfinityFlow) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (int64_t n : {1, 5, 40}) {
    Problem<float> problem(random_, 7, n, 50, Order::kRows, Order::kRows, Bias::kNone);
    problem.a[static_cast<size_t>(problem.la.offset + 2 * problem.shape.a_row + 49)] = NAN;
    problem.a[static_cast<size_t>(problem.la.offset + 3 * problem.shape.a_row)] = kInfinity;
    const auto got = problem.run(true);
    for (int64_t i = 0; i < 7; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const float value = got[static_cast<size_t>(i * problem.shape.c_row + j)];
        EXPECT_EQ(i == 2, std::isnan(value)) << i << "," << j;
        EXPECT_EQ(i == 3, std::isinf(value)) << i << "," << j;
      }
    }
  }
}

TEST_P(GemmTest, UnalignedOperands) {
  Problem<float> problem(random_, 13, 70, 40, Order::kRows, Order::kRows, Bias::kNone);
  const auto want = problem.run(false);
  const GemmPlan plan = prepare_gemm(ComputeType::kF32, problem.shape);
  Scratch scratch(plan.scratch_bytes);
  const auto shifted = [](const std::vector<float>& values) {
    std::vector<std::byte> bytes(values.size() * sizeof(float) + 1);
    std::memcpy(bytes.data() + 1, values.data(), values.size() * sizeof(float));
    return bytes;
  };
  auto a = shifted(problem.a), b = shifted(problem.b), c = shifted(problem.c);
  run_gemm(plan, a.data() + 1 + problem.la.offset * 4, b.data() + 1 + problem.lb.offset * 4, nullptr, c.data() + 1,
           scratch.get());
  EXPECT_EQ(0, std::memcmp(c.data() + 1, want.data(), want.size() * sizeof(float)));
}

TREADLE_EACH_ISA(GemmTest);

// Bytes that scales turn into floats give the bits of these floats, for any rows, columns and strides.
TEST(Gemm, PanelsOfBytes) {
  std::mt19937 random(7);
  for (const uint8_t flipped : {0x00, 0x80}) {
    for (const int64_t n : {3, 16, 63, 64, 150}) {
      for (const int64_t k : {1, 37, 700}) {
        for (const bool transposed : {false, true}) {
          std::vector<uint8_t> bytes(static_cast<size_t>(n * k));
          for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
          const auto scales = random_values<float>(random, static_cast<size_t>(n));
          const int64_t scale_step = n % 2;
          GemmShape shape;
          shape.n = n, shape.k = k, shape.c_row = n, shape.a_row = k, shape.b_packed = true;
          shape.b_row = transposed ? 1 : n;
          shape.b_col = transposed ? k : 1;
          std::vector<float> floats(bytes.size());
          for (int64_t p = 0; p < k; ++p) {
            for (int64_t j = 0; j < n; ++j) {
              const auto at = static_cast<size_t>(p * shape.b_row + j * shape.b_col);
              floats[at] = static_cast<float>(static_cast<int8_t>(bytes[at] ^ flipped)) *
                           scales[static_cast<size_t>(j * scale_step)];
            }
          }
          for (const int64_t m : {1, 2, 3, 5, 6, 19, 40}) {
            shape.m = m;
            const auto a = random_values<float>(random, static_cast<size_t>(m * k));
            const auto product = [&](bool of_bytes) {
              shape.b_bytes = of_bytes;
              const GemmPlan plan = prepare_gemm(ComputeType::kF32, shape);
              const ByteColumns columns{bytes.data(), flipped, scales.data(), scale_step};
              std::vector<float> c(static_cast<size_t>(m * n)), packed(plan.packed_b_bytes / sizeof(float) + 1),
                  scratch(plan.scratch_bytes / sizeof(float) + 1);
              pack_b(plan, of_bytes ? static_cast<const void*>(&columns) : floats.data(), packed.data());
              run_gemm(plan, a.data(), packed.data(), nullptr, c.data(), scratch.data());
              return c;
            };
            EXPECT_EQ(product(true), product(false)) << m << " x " << k << " x " << n;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace treadle::kernels
