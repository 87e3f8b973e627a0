// Every walk of products on the shapes that it fits, against a plain loop that gives the same bits; and that each is
// chosen somewhere.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>

#include "base/caches.h"
#include "base/float_formats.h"
#include "kernels/gemm.h"
#include "kernels/gemm_problem.h"
#include "kernels/kernel_test_util.h"

namespace treadle::kernels {
namespace {

enum class Panels { kNone, kOwn, kHalf, kBytes };  // how B is packed

class GemmWalksTest : public EachIsa {
 protected:
  int64_t pick(std::initializer_list<int64_t> values) {
    return values.begin()[std::uniform_int_distribution<size_t>(0, values.size() - 1)(random_)];
  }
  Order pick_order() { return kOrders[pick({0, 0, 1, 2, 3})]; }

  template <class T>
  T mul_add(T a, T b, T sum) const {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<U>(a) * static_cast<U>(b) + static_cast<U>(sum));
    } else {
#if defined(__ARM_FEATURE_FMA)
      constexpr bool kBaselineFuses = true;
#else
      constexpr bool kBaselineFuses = false;
#endif
      return kBaselineFuses || GetParam() != Isa::kBaseline ? std::fma(a, b, sum) : a * b + sum;
    }
  }

  // The bits that every walk has to give: each element is one chain over k.
  template <class T>
  std::vector<T> chains(const Problem<T>& p) const {
    const GemmShape& s = p.shape;
    std::vector<T> out = p.c;
    const T* const bias = p.bias_of(p.c);
    for (int64_t i = 0; i < s.m; ++i) {
      for (int64_t j = 0; j < s.n; ++j) {
        T sum = 0;
        for (int64_t step = 0; step < s.k; ++step) {
          sum = mul_add(p.a_data()[i * s.a_row + step * s.a_col], p.b_data()[step * s.b_row + j * s.b_col], sum);
        }
        if (bias != nullptr) sum += bias[i * s.bias_row + j * s.bias_col];
        out[static_cast<size_t>(i * s.c_row + j)] = sum;
      }
    }
    return out;
  }

  // The whole product in one range, or in several, from the last to the first.
  template <class T>
  static std::vector<T> run(const Problem<T>& problem, const GemmPlan& plan, const void* b, int64_t row_step,
                            int64_t column_step, bool backward) {
    Scratch scratch(plan.scratch_bytes);
    std::vector<T> out = problem.c;
    const GemmShape& s = plan.shape;
    const GemmOperands operands{problem.a_data(), b,       problem.bias_of(out), out.data(), scratch.get(),
                                nullptr,          backward};
    for (int64_t i = (s.m - 1) / row_step * row_step; i >= 0; i -= row_step) {
      for (int64_t j = (s.n - 1) / column_step * column_step; j >= 0; j -= column_step) {
        run_gemm_range(plan, operands, {i, std::min(i + row_step, s.m), j, std::min(j + column_step, s.n)});
      }
    }
    return out;
  }

  // Whether the walk that is asked for computes it.
  template <class T>
  bool check(Problem<T>& problem, Panels panels, std::string_view walk, const std::vector<T>& want) {
    const ScopedGemmWalk wanted(walk);
    GemmShape& s = problem.shape;
    s.b_packed = panels != Panels::kNone;
    s.b_half = panels == Panels::kHalf;
    s.b_bytes = panels == Panels::kBytes;
    const GemmPlan plan = prepare_gemm(kTypeOf<T>, s);
    if (plan.walk != walk) return false;
    Scratch packed(s.b_packed ? plan.packed_b_bytes : 0);
    if (s.b_bytes) {
      const ByteColumns columns{bytes_.data(), 0, scales_.data(), 1};
      pack_b(plan, &columns, packed.get());
    } else if (s.b_packed) {
      pack_b(plan, problem.b_data(), packed.get());
    }
    const void* const b = s.b_packed ? packed.get() : problem.b_data();
    const int64_t third = std::max<int64_t>((s.m + 2) / 3, 1), step = std::max(plan.column_step, 1);
    expect(run(problem, plan, b, s.m, s.n, false), want, problem, walk, "whole");
    expect(run(problem, plan, b, s.m, s.n, true), want, problem, walk, "backward");
    expect(run(problem, plan, b, third, (s.n + 1) / 2, false), want, problem, walk, "in ranges");
    expect(run(problem, plan, b, s.m, step, true), want, problem, walk, "by column steps");
    return true;
  }

  template <class T>
  void expect(const std::vector<T>& found, const std::vector<T>& want, const Problem<T>& problem, std::string_view walk,
              const char* how) {
    const GemmShape& s = problem.shape;
    const auto equal = [&](T x, T y) {
      if constexpr (!std::is_integral_v<T>) {
        // Products of one or two columns are sums in another order.
        if (walk == "dots") return std::abs(x - y) <= std::numeric_limits<T>::epsilon() * static_cast<T>(s.k + 8);
      }
      return std::memcmp(&x, &y, sizeof x) == 0;
    };
    EXPECT_TRUE(std::ranges::equal(found, want, equal))
        << walk << " " << how
        << fmt::format(": m={} n={} k={} a=({}, {}) b=({}, {}){}{}{}{}", s.m, s.n, s.k, s.a_row, s.a_col, s.b_row,
                       s.b_col, s.b_packed ? " packed" : "", s.b_half ? " half" : "", s.b_bytes ? " bytes" : "",
                       problem.in_place ? " in place" : "");
  }

  template <class T>
  void check_all(Problem<T> problem, std::map<std::string_view, int>& checked) {
    const auto want = chains(problem);
    for (const std::string_view walk : gemm_walks()) {
      for (const Panels panels : {Panels::kNone, Panels::kOwn}) checked[walk] += check(problem, panels, walk, want);
    }
  }

  // B of weights that float16 holds, and B of bytes with scales.
  void check_narrow(Problem<float> problem, std::map<std::string_view, int>& checked) {
    for (float& weight : problem.b) weight = half_to_float(float_to_half(weight));
    check_panels(problem, Panels::kHalf, checked);
    bytes_.resize(problem.b.size() - static_cast<size_t>(problem.lb.offset));
    for (int8_t& byte : bytes_) byte = static_cast<int8_t>(random_());
    scales_ = random_values<float>(random_, static_cast<size_t>(problem.shape.n));
    const GemmShape& s = problem.shape;
    for (int64_t p = 0; p < s.k; ++p) {
      for (int64_t j = 0; j < s.n; ++j) {
        const auto at = static_cast<size_t>(p * s.b_row + j * s.b_col);
        problem.b[static_cast<size_t>(problem.lb.offset) + at] =
            static_cast<float>(bytes_[at]) * scales_[static_cast<size_t>(j)];
      }
    }
    check_panels(problem, Panels::kBytes, checked);
  }
  void check_panels(Problem<float>& problem, Panels panels, std::map<std::string_view, int>& checked) {
    const auto want = chains(problem);
    for (const std::string_view walk : gemm_walks()) checked[walk] += check(problem, panels, walk, want);
  }

  std::vector<int8_t> bytes_;
  std::vector<float> scales_;
};

TEST_P(GemmWalksTest, EachGivesTheBitsOfAPlainLoop) {
  std::map<std::string_view, int> checked;
  for (int round = 0; round < 150; ++round) {
    const int64_t m = pick({1, 1, 2, 3, 4, 5, 6, 7, 12, 13, 23, 24, 30, 40}),
                  n = pick({1, 2, 3, 16, 17, 33, 48, 100, 190}), k = pick({0, 1, 3, 4, 31, 64, 100, 259, 700});
    const Order a = pick_order(), b = pick({0, 1}) == 0 ? Order::kColumns : pick_order();
    const Bias bias = kBiases[pick({0, 1, 2, 3, 4, 5, 6, 6})];
    check_all(Problem<float>(random_, m, n, k, a, b, bias), checked);
    if (n > kGemmDotColumns) {
      check_narrow(Problem<float>(random_, m, n, k, a, pick({0, 1}) == 0 ? Order::kRows : Order::kColumns, bias),
                   checked);
    }
    if (round % 3 == 0) check_all(Problem<double>(random_, m, n, k, a, b, bias), checked);
    if (round % 6 == 1) check_all(Problem<int32_t>(random_, m, n, k, a, b, bias), checked);
    if (round % 6 == 2) check_all(Problem<int64_t>(random_, m, n, k, a, b, bias), checked);
  }
  for (const std::string_view walk : gemm_walks()) EXPECT_GE(checked[walk], 10) << walk;
}

// More steps than a tile takes at a time, with partial sums in C and in scratch; blocks of rows that are copied.
TEST_P(GemmWalksTest, LargeProducts) {
  std::map<std::string_view, int> checked;
  for (const Bias bias : {Bias::kRow, Bias::kInPlace}) {
    for (const Order b : {Order::kRows, Order::kColumns}) {
      check_all(Problem<float>(random_, 2, 17, 70000, Order::kRows, b, bias), checked);
    }
  }
  const auto rows = static_cast<int64_t>(caches().second / 2 / 512 / sizeof(float)) + 1;
  for (const Order a : {Order::kRows, Order::kColumns, Order::kEveryOther}) {
    check_all(Problem<float>(random_, rows, 270, 512, a, Order::kColumns, Bias::kNone), checked);
  }
}

TEST_P(GemmWalksTest, EachIsChosenSomewhere) {
  std::set<std::string_view> chosen;
  for (const int64_t m : {1, 4, 5, 30, 100}) {
    for (const int64_t n : {1, 100}) {
      for (const Order b : {Order::kRows, Order::kColumns}) {
        const Problem<float> problem(random_, m, n, 300, Order::kRows, b, Bias::kNone);
        GemmShape s = problem.shape;
        chosen.insert(prepare_gemm(ComputeType::kF32, s).walk);
        s.b_packed = true;
        chosen.insert(prepare_gemm(ComputeType::kF32, s).walk);
        s.b_half = true;
        chosen.insert(prepare_gemm(ComputeType::kF32, s).walk);
      }
    }
  }
  for (const std::string_view walk : gemm_walks()) EXPECT_TRUE(chosen.contains(walk)) << walk;
}

TEST_P(GemmWalksTest, AWalkThatDoesNotFitIsNotTaken) {
  const ScopedGemmWalk wanted("copied");
  GemmShape s{.m = 4, .n = 40, .k = 30, .a_row = 30, .b_row = 40, .c_row = 40};
  EXPECT_EQ(prepare_gemm(ComputeType::kF32, s).walk, "copied");
  s.b_packed = true;
  EXPECT_EQ(prepare_gemm(ComputeType::kF32, s).walk, "direct");
  s.n = 2;
  EXPECT_EQ(prepare_gemm(ComputeType::kF32, s).walk, "dots");
}

TREADLE_EACH_ISA(GemmWalksTest);

}  // namespace
}  // namespace treadle::kernels
