// Rows times stacks of matrices give the bits of the products that they stand for, in every shape of the kernel.
#include "kernels/stacked_rows.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/gemm.h"

namespace treadle::kernels {
namespace {

template <class T>
void check(ComputeType type, StackedRows s) {
  s.b_row = s.n + 3;
  s.a = s.k * s.a_col + 1;
  s.b = s.k * s.b_row + 5;
  s.c = s.n;
  const auto numbers = [](int64_t count, int64_t seed) {
    std::vector<T> values(static_cast<size_t>(count));
    for (T& v : values) v = static_cast<T>((seed = (seed * 1103515245 + 12345) % 65536)) / static_cast<T>(7);
    return values;
  };
  const auto a = numbers(s.count * s.a + 1, 3), b = numbers(s.count * s.b + 1, 5);
  std::vector<T> found(static_cast<size_t>(s.count * s.n + 1), T(77)), expected = found;
  stacked_rows(type)(s, a.data(), b.data(), found.data());
  GemmShape shape;
  shape.m = 1, shape.n = s.n, shape.k = s.k;
  shape.a_row = s.a, shape.a_col = s.a_col, shape.b_row = s.b_row, shape.c_row = s.n;
  const GemmPlan plan = prepare_gemm(type, shape);
  std::vector<std::byte> scratch(plan.scratch_bytes + 64);
  for (int64_t i = 0; i < s.count; ++i) {
    run_gemm(plan, a.data() + i * s.a, b.data() + i * s.b, nullptr, expected.data() + i * s.c, scratch.data());
  }
  EXPECT_EQ(found, expected) << s.count << " rows, k " << s.k << ", n " << s.n << ", a_col " << s.a_col;
}

TEST(StackedRows, AreProducts) {
  for (const int64_t count : {1, 2, 3, 4, 7, 8, 15}) {
    for (const int64_t n : {3, 8, 15, 16, 17, 31, 32, 33, 49, 64, 65, 127, 128, 200}) {
      for (const int64_t k : {0, 1, 5, 100}) {
        StackedRows s;
        s.count = count, s.n = n, s.k = k;
        s.a_col = k == 5 ? 2 : 1;
        check<float>(ComputeType::kF32, s);
        check<double>(ComputeType::kF64, s);
        check<uint32_t>(ComputeType::kU32, s);
        check<uint64_t>(ComputeType::kI64, s);
      }
    }
  }
}

}  // namespace
}  // namespace treadle::kernels
