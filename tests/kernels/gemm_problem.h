#pragma once
// Random matrix products for tests: operands in several layouts, and what a plain loop makes of them.

#include <cstdint>
#include <random>
#include <type_traits>
#include <vector>

#include "kernels/gemm.h"
#include "kernels/kernel_test_util.h"

namespace treadle::kernels {

template <class T>
inline constexpr ComputeType kTypeOf = std::is_same_v<T, float>      ? ComputeType::kF32
                                       : std::is_same_v<T, double>   ? ComputeType::kF64
                                       : std::is_same_v<T, int32_t>  ? ComputeType::kI32
                                       : std::is_same_v<T, uint32_t> ? ComputeType::kU32
                                       : std::is_same_v<T, int64_t>  ? ComputeType::kI64
                                                                     : ComputeType::kU64;

enum class Order { kRows, kColumns, kEveryOther, kReversed };
inline constexpr Order kOrders[] = {Order::kRows, Order::kColumns, Order::kEveryOther, Order::kReversed};

struct Layout {
  int64_t row, col, offset, size;
};
inline Layout layout(Order order, int64_t rows, int64_t cols) {
  switch (order) {
    case Order::kRows:
      return {cols + 3, 1, 1, rows * (cols + 3) + 1};
    case Order::kColumns:
      return {1, rows + 1, 3, cols * (rows + 1) + 3};
    case Order::kEveryOther:
      return {2 * cols + 1, 2, 0, rows * (2 * cols + 1) + 2};
    default:
      return {-cols, -1, rows * cols, rows * cols + 1};
  }
}

enum class Bias { kNone, kRow, kColumn, kScalar, kMatrix, kStrided, kInPlace };
inline constexpr Bias kBiases[] = {Bias::kNone,   Bias::kRow,     Bias::kColumn, Bias::kScalar,
                                   Bias::kMatrix, Bias::kStrided, Bias::kInPlace};

template <class T>
struct Problem {
  GemmShape shape;
  std::vector<T> a, b, bias, c;
  Layout la{}, lb{};
  bool in_place = false;

  Problem(std::mt19937& random, int64_t m, int64_t n, int64_t k, Order order_a, Order order_b, Bias bias_kind) {
    la = layout(order_a, m, k);
    lb = layout(order_b, k, n);
    a = random_values<T>(random, static_cast<size_t>(la.size));
    b = random_values<T>(random, static_cast<size_t>(lb.size));
    shape.m = m, shape.n = n, shape.k = k;
    shape.a_row = la.row, shape.a_col = la.col;
    shape.b_row = lb.row, shape.b_col = lb.col;
    shape.c_row = n + 5;
    c = random_values<T>(random, static_cast<size_t>(m * shape.c_row));
    set_bias(random, bias_kind);
  }

  void set_bias(std::mt19937& random, Bias kind) {
    const auto strides = [&](int64_t row, int64_t col) { shape.bias_row = row, shape.bias_col = col; };
    switch (kind) {
      case Bias::kNone:
        return;
      case Bias::kRow:
        strides(0, 1);
        break;
      case Bias::kColumn:
        strides(1, 0);
        break;
      case Bias::kScalar:
        strides(0, 0);
        break;
      case Bias::kMatrix:
        strides(shape.n, 1);
        break;
      case Bias::kStrided:
        strides(1, shape.m);
        break;
      case Bias::kInPlace:
        strides(shape.c_row, 1);
        in_place = true;
        return;
    }
    bias = random_values<T>(random, static_cast<size_t>(shape.m * shape.n + shape.m + shape.n + 1));
  }

  const T* a_data() const { return a.data() + la.offset; }
  const T* b_data() const { return b.data() + lb.offset; }

  // The old C with its guard columns, and the product computed in double (floats) or modulo 2^w.
  std::vector<T> expected() const {
    using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
    std::vector<T> out = c;
    for (int64_t i = 0; i < shape.m; ++i) {
      for (int64_t j = 0; j < shape.n; ++j) {
        Wide sum = 0;
        for (int64_t p = 0; p < shape.k; ++p) {
          sum += static_cast<Wide>(a_data()[i * shape.a_row + p * shape.a_col]) *
                 static_cast<Wide>(b_data()[p * shape.b_row + j * shape.b_col]);
        }
        sum *= static_cast<Wide>(static_cast<T>(shape.alpha));
        const T* addend = bias_of(c);
        if (addend != nullptr) {
          sum += static_cast<Wide>(static_cast<T>(shape.beta)) *
                 static_cast<Wide>(addend[i * shape.bias_row + j * shape.bias_col]);
        }
        out[static_cast<size_t>(i * shape.c_row + j)] = static_cast<T>(sum);
      }
    }
    return out;
  }

  std::vector<T> run(bool packed) const {
    GemmShape s = shape;
    s.b_packed = packed;
    const GemmPlan plan = prepare_gemm(kTypeOf<T>, s);
    Scratch scratch(plan.scratch_bytes), panels(packed ? plan.packed_b_bytes : 0);
    if (packed) pack_b(plan, b_data(), panels.get());
    std::vector<T> out = c;
    run_gemm(plan, a_data(), packed ? panels.get() : b_data(), bias_of(out), out.data(), scratch.get());
    return out;
  }

  // The bias that a run which writes to `out` is given.
  const T* bias_of(const std::vector<T>& out) const {
    return in_place ? out.data() : bias.empty() ? nullptr : bias.data();
  }
};

}  // namespace treadle::kernels
