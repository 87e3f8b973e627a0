// Every elementwise row against references in wider arithmetic or plain C++, on every instruction set.

#include <functional>

#include "kernels/dispatch.h"
#include "kernels/elementwise_ops.h"
#include "kernels/error.h"
#include "tests/kernels/rows.h"

namespace treadle::kernels::testing {
namespace {

using Op = ElementwiseOp;
using Wide = long double;

class RowsTest : public ::testing::TestWithParam<Isa> {
 protected:
  RowsTest() : scope_(GetParam()) {}

 private:
  ScopedIsa scope_;
};
INSTANTIATE_TEST_SUITE_P(, RowsTest, ::testing::ValuesIn(usable_isas()), isa_name);

struct UnaryCase {
  Op op;
  std::function<Wide(Wide, Wide, Wide)> reference;  // x, alpha, beta
  uint64_t float_ulps = 0;
  uint64_t double_ulps = 0;
  double alpha = 0;
  double beta = 0;
  double absolute = 0;  // allowed instead, if results cancel
};

Wide sigmoid(Wide x) {
  return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x));
}
Wide softplus(Wide x) {
  return (x > 0 ? x : 0) + log1pl(expl(-fabsl(x)));
}
Wide hard_sigmoid(Wide x, Wide alpha, Wide beta) {
  const Wide y = alpha * x + beta;
  return y < 0 ? 0 : y > 1 ? 1 : y;
}
Wide relu(Wide x) {
  return x < 0 ? 0 : x;
}

std::vector<UnaryCase> unary_cases() {
  const auto ignoring = [](Wide (*f)(Wide)) { return [f](Wide x, Wide, Wide) { return f(x); }; };
  const auto sign = [](Wide x, Wide, Wide) { return x > 0 ? 1 : x < 0 ? -1 : x; };
  return {
      {Op::kAbs, ignoring(fabsl)},
      {Op::kNeg, [](Wide x, Wide, Wide) { return -x; }},
      {Op::kSign, sign},
      {Op::kCeil, ignoring(ceill)},
      {Op::kFloor, ignoring(floorl)},
      {Op::kRound, ignoring(nearbyintl)},
      {Op::kSqrt, ignoring(sqrtl), 0, 1},
      {Op::kReciprocal, [](Wide x, Wide, Wide) { return 1 / x; }, 0, 1},
      {Op::kExp, ignoring(expl), 2, 2},
      {Op::kLog, ignoring(logl), 2, 2},
      {Op::kSin, ignoring(sinl), 2, 1, 0, 0, 2e-10},
      {Op::kCos, ignoring(cosl), 2, 1, 0, 0, 2e-10},
      {Op::kTan, ignoring(tanl), 3, 1},
      {Op::kAsin, ignoring(asinl), 2, 1},
      {Op::kAcos, ignoring(acosl), 2, 1},
      {Op::kAtan, ignoring(atanl), 2, 1},
      {Op::kSinh, ignoring(sinhl), 2, 2},
      {Op::kCosh, ignoring(coshl), 2, 2},
      {Op::kTanh, ignoring(tanhl), 3, 3},
      {Op::kAsinh, ignoring(asinhl), 2, 2},
      {Op::kAcosh, ignoring(acoshl), 2, 2},
      {Op::kAtanh, ignoring(atanhl), 2, 2},
      {Op::kErf, ignoring(erfl), 2, 1},
      {Op::kSigmoid, ignoring(sigmoid), 3, 3},
      {Op::kRelu, ignoring(relu)},
      {Op::kLeakyRelu, [](Wide x, Wide a, Wide) { return x < 0 ? a * x : x; }, 0, 0, 0.0625},
      {Op::kElu, [](Wide x, Wide a, Wide) { return x > 0 ? x : a * expm1l(x); }, 3, 3, 0.75},
      {Op::kSelu, [](Wide x, Wide a, Wide g) { return g * (x > 0 ? x : a * expm1l(x)); }, 4, 4, 1.75, 1.0625},
      {Op::kCelu, [](Wide x, Wide a, Wide) { return x > 0 ? x : a * expm1l(x / a); }, 4, 4, 1.5},
      {Op::kSoftplus, ignoring(softplus), 3, 3},
      {Op::kSoftsign, [](Wide x, Wide, Wide) { return std::isinf(x) ? NAN : x / (1 + fabsl(x)); }, 1, 1},
      {Op::kHardSigmoid, hard_sigmoid, 1, 1, 0.25, 0.5, 1e-7},
      {Op::kHardSwish, [](Wide x, Wide, Wide) { return x * hard_sigmoid(x, 1.0L / 6, 0.5L); }, 4, 4, 0, 0, 1e-6},
      {Op::kThresholdedRelu, [](Wide x, Wide a, Wide) { return x <= a ? 0 : x; }, 0, 0, 0.5},
      {Op::kThresholdedReluEqual, [](Wide x, Wide a, Wide) { return x < a ? 0 : x; }, 0, 0, 0.5},
      {Op::kShrink, [](Wide x, Wide l, Wide b) { return x < -l  ? x + b
                                                        : x > l ? x - b
                                                                : 0 * l; }, 0, 0, 1.5, 0.25},
      {Op::kMish, [](Wide x, Wide, Wide) { return x * tanhl(softplus(x)); }, 4, 4, 0, 0, 1e-36},
      {Op::kGeluErf, [](Wide x, Wide, Wide) { return 0.5L * x * (1 + erfl(x * sqrtl(0.5L))); }, 3, 3, 0, 0, 1e-6},
      {Op::kGeluTanh,
       [](Wide x, Wide, Wide) { return 0.5L * x * (1 + tanhl(sqrtl(2 / M_PIl) * (x + 0.044715L * x * x * x))); }, 4, 4,
       0, 0, 1e-6},
      {Op::kSwish, [](Wide x, Wide a, Wide) { return x * sigmoid(a * x); }, 4, 4, 1, 0, 1e-36},
      {Op::kAffine, [](Wide x, Wide a, Wide b) { return a * x + b; }, 1, 1, 0.5, 0.25, 1e-7},
      {Op::kScaledTanh, [](Wide x, Wide a, Wide b) { return a * tanhl(b * x); }, 4, 4, 1.5, 0.5},
  };
}

template <class T>
constexpr ComputeType kComputeTypeOf = std::is_same_v<T, float>      ? ComputeType::kF32
                                       : std::is_same_v<T, double>   ? ComputeType::kF64
                                       : std::is_same_v<T, int32_t>  ? ComputeType::kI32
                                       : std::is_same_v<T, int64_t>  ? ComputeType::kI64
                                       : std::is_same_v<T, uint32_t> ? ComputeType::kU32
                                       : std::is_same_v<T, uint64_t> ? ComputeType::kU64
                                                                     : ComputeType::kBool;

template <class T>
void check_unary(const UnaryCase& c) {
  const std::vector<T> x = float_samples<T>(20000, 7);
  std::vector<T> y(x.size());
  const ElementwiseParams params{c.alpha, c.beta};
  ASSERT_EQ(elementwise_rows(c.op, kComputeTypeOf<T>).vv(x.data(), nullptr, y.data(), x.size(), &params), kOk);
  const uint64_t bound = sizeof(T) == 4 ? c.float_ulps : c.double_ulps;
  uint64_t worst = 0;
  size_t worst_at = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const Wide exact = c.reference(x[i], c.alpha, c.beta);
    const T expected = static_cast<T>(exact);
    const uint64_t distance = ulps(y[i], expected);
    const double allowed = c.absolute *
                           (sizeof(T) == 4       ? 1
                            : c.absolute < 1e-30 ? 1e-264
                                                 : 1e-6) *
                           std::fmax(1, std::fmin(std::fabs(x[i]), 10));
    if (distance <= worst || std::fabs(static_cast<double>(y[i]) - static_cast<double>(exact)) <= allowed) continue;
    worst = distance;
    worst_at = i;
  }
  EXPECT_LE(worst, bound) << info(c.op).name << "(" << x[worst_at] << ") = " << y[worst_at] << ", expected "
                          << static_cast<T>(c.reference(x[worst_at], c.alpha, c.beta));
}

// Infinite arguments where the definition itself gives infinity times zero are left to the equations.
TEST_P(RowsTest, UnaryFloat) {
  for (const UnaryCase& c : unary_cases()) check_unary<float>(c);
}
TEST_P(RowsTest, UnaryDouble) {
  for (const UnaryCase& c : unary_cases()) check_unary<double>(c);
}

TEST_P(RowsTest, EveryFloatUnaryOperationHasACase) {
  std::vector<bool> covered(kElementwiseOpCount);
  for (const UnaryCase& c : unary_cases()) covered[static_cast<int>(c.op)] = true;
  for (int i = 0; i < kElementwiseOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    if (info(op).inputs == 1 && !info(op).bool_result && has_rows(op, ComputeType::kF32)) {
      EXPECT_TRUE(covered[i]) << info(op).name;
    }
  }
}

template <class T>
void check_classes() {
  const std::vector<T> x = float_samples<T>(2000, 3);
  std::vector<uint8_t> y(x.size());
  elementwise_rows(Op::kIsNaN, kComputeTypeOf<T>).vv(x.data(), nullptr, y.data(), x.size(), nullptr);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], std::isnan(x[i]) ? 1 : 0) << x[i];
  for (int mode = 0; mode < 4; ++mode) {
    const ElementwiseParams params{mode & 1 ? 1.0 : 0.0, mode & 2 ? 1.0 : 0.0};
    elementwise_rows(Op::kIsInf, kComputeTypeOf<T>).vv(x.data(), nullptr, y.data(), x.size(), &params);
    for (size_t i = 0; i < x.size(); ++i) {
      const bool expected = std::isinf(x[i]) && (x[i] < 0 ? mode & 1 : mode & 2);
      ASSERT_EQ(y[i], expected ? 1 : 0) << x[i] << " mode " << mode;
    }
  }
}

TEST_P(RowsTest, IsNanIsInf) {
  check_classes<float>();
  check_classes<double>();
}

// --- integers, binary operations: plain C++ on one element ---

template <class T>
using Unsigned = std::make_unsigned_t<T>;

template <class T>
T reference_unary(Op op, T x, double alpha, double beta) {
  switch (op) {
    case Op::kAbs:
      return x < 0 ? static_cast<T>(Unsigned<T>(0) - static_cast<Unsigned<T>>(x)) : x;
    case Op::kNeg:
      return static_cast<T>(Unsigned<T>(0) - static_cast<Unsigned<T>>(x));
    case Op::kSign:
      return x > 0 ? 1 : x < 0 ? static_cast<T>(-1) : 0;
    case Op::kRelu:
      return x < 0 ? 0 : x;
    case Op::kBitwiseNot:
      return ~x;
    case Op::kShrink: {
      const double v = static_cast<double>(x);
      return v < -alpha ? static_cast<T>(v + beta) : v > alpha ? static_cast<T>(v - beta) : 0;
    }
    default:
      ADD_FAILURE() << info(op).name;
      return 0;
  }
}

template <class T>
void check_unary_integers() {
  for (int i = 0; i < kElementwiseOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    if (info(op).inputs != 1 || !has_rows(op, kComputeTypeOf<T>)) continue;
    std::vector<T> x = samples<T>(300, 5);
    // A double holds the results of Shrink exactly for these only.
    if (op == Op::kShrink)
      std::erase_if(x, [](T v) { return v > 1000000 || (std::is_signed_v<T> && v + 1 < -999999 + 0 * v); });
    std::vector<T> y(x.size());
    const ElementwiseParams params{1.5, 1};
    elementwise_rows(op, kComputeTypeOf<T>).vv(x.data(), nullptr, y.data(), x.size(), &params);
    for (size_t k = 0; k < x.size(); ++k) {
      ASSERT_EQ(y[k], reference_unary(op, x[k], 1.5, 1)) << info(op).name << " " << x[k];
    }
  }
}

TEST_P(RowsTest, UnaryIntegers) {
  check_unary_integers<int32_t>();
  check_unary_integers<int64_t>();
  check_unary_integers<uint32_t>();
  check_unary_integers<uint64_t>();
}

template <class T>
T reference_pow(T base, T exponent) {
  if constexpr (std::is_floating_point_v<T>) {
    if (exponent == 3) return base * base * base;
    if (exponent == -1) return 1 / base;
    if (exponent == T(0.5) && base >= 0) return std::abs(std::sqrt(base));
    if (exponent == T(-0.5) && base >= 0) return 1 / std::abs(std::sqrt(base));  // for -0: as for 0
    return std::pow(base, exponent);
  } else {
    if (exponent < 0) return base == 1 ? 1 : base == static_cast<T>(-1) ? (exponent & 1 ? static_cast<T>(-1) : 1) : 0;
    Unsigned<T> result = 1;
    Unsigned<T> square = static_cast<Unsigned<T>>(base);
    for (Unsigned<T> e = static_cast<Unsigned<T>>(exponent); e; e /= 2, square *= square) {
      if (e % 2) result *= square;
    }
    return static_cast<T>(result);
  }
}

template <class T>
T reference_mod(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    const T rest = std::fmod(a, b);
    if (rest == 0) return std::copysign(rest, b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
  } else if constexpr (std::is_signed_v<T>) {
    return b == -1 ? 0 : static_cast<T>((a % b != 0 && (a % b < 0) != (b < 0)) ? a % b + b : a % b);
  } else {
    return a % b;
  }
}

template <class T>
T reference_binary(Op op, T a, T b) {
  constexpr bool kFloat = std::is_floating_point_v<T>;
  if constexpr (!kFloat) {
    using U = Unsigned<T>;
    constexpr bool kSigned = std::is_signed_v<T>;
    const U ua = static_cast<U>(a);
    const U ub = static_cast<U>(b);
    switch (op) {
      case Op::kAdd:
        return static_cast<T>(ua + ub);
      case Op::kSub:
        return static_cast<T>(ua - ub);
      case Op::kMul:
        return static_cast<T>(ua * ub);
      case Op::kDiv:
        return kSigned && b == static_cast<T>(-1) ? static_cast<T>(U(0) - ua) : static_cast<T>(a / b);
      case Op::kFmod:
        return kSigned && b == static_cast<T>(-1) ? 0 : static_cast<T>(a % b);
      case Op::kPRelu:
        return a < 0 ? static_cast<T>(ua * ub) : a;
      case Op::kAnd:
      case Op::kBitwiseAnd:
        return a & b;
      case Op::kOr:
      case Op::kBitwiseOr:
        return a | b;
      case Op::kXor:
      case Op::kBitwiseXor:
        return a ^ b;
      case Op::kShiftLeft:
        return ub < sizeof(T) * 8 ? static_cast<T>(ua << ub) : 0;
      case Op::kShiftRight:
        return ub < sizeof(T) * 8 ? static_cast<T>(a >> ub) : static_cast<T>(a < 0 ? -1 : 0);
      default:
        break;
    }
  } else {
    switch (op) {
      case Op::kAdd:
        return a + b;
      case Op::kSub:
        return a - b;
      case Op::kMul:
        return a * b;
      case Op::kDiv:
        return a / b;
      case Op::kFmod:
        return std::fmod(a, b);
      case Op::kPRelu:
        return a < 0 ? a * b : a;
      default:
        break;
    }
  }
  switch (op) {
    case Op::kMin:
      return a != a ? a : b != b ? b : std::min(a, b);
    case Op::kMax:
      return a != a ? a : b != b ? b : std::max(a, b);
    case Op::kPow:
      return reference_pow(a, b);
    case Op::kMod:
      return reference_mod(a, b);
    default:
      ADD_FAILURE() << info(op).name;
      return 0;
  }
}

template <class T>
bool reference_comparison(Op op, T a, T b) {
  switch (op) {
    case Op::kEqual:
      return a == b;
    case Op::kLess:
      return a < b;
    case Op::kGreater:
      return a > b;
    case Op::kLessOrEqual:
      return a <= b;
    case Op::kGreaterOrEqual:
      return a >= b;
    default:
      ADD_FAILURE() << info(op).name;
      return false;
  }
}

template <class T>
bool same(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a == b || (std::isnan(a) && std::isnan(b));
  return a == b;
}

template <class T>
void check_binary(Op op, const std::vector<T>& a, const std::vector<T>& b) {
  const ElementwiseRows& rows = elementwise_rows(op, kComputeTypeOf<T>);
  const size_t n = a.size();
  std::vector<T> y(n);
  std::vector<uint8_t> flags(n);
  void* out = info(op).bool_result ? static_cast<void*>(flags.data()) : y.data();
  const auto check = [&](size_t i, T p, T q, const char* form) {
    if (info(op).bool_result) {
      ASSERT_EQ(flags[i], reference_comparison(op, p, q) ? 1 : 0) << info(op).name << form << " " << p << " " << q;
    } else {
      ASSERT_TRUE(same(y[i], reference_binary(op, p, q))) << info(op).name << form << " " << p << " " << q << " = "
                                                          << y[i] << ", expected " << reference_binary(op, p, q);
    }
  };
  ASSERT_EQ(rows.vv(a.data(), b.data(), out, n, nullptr), kOk);
  for (size_t i = 0; i < n; ++i) check(i, a[i], b[i], " vv");
  for (size_t k = 0; k < std::min<size_t>(n, 30); ++k) {
    ASSERT_EQ(rows.vs(a.data(), &b[k], out, n, nullptr), kOk);
    for (size_t i = 0; i < n; ++i) check(i, a[i], b[k], " vs");
    ASSERT_EQ(rows.sv(&a[k], b.data(), out, n, nullptr), kOk);
    for (size_t i = 0; i < n; ++i) check(i, a[k], b[i], " sv");
  }
}

template <class T>
void check_binaries() {
  for (int i = 0; i < kElementwiseOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    if (info(op).inputs != 2 || !has_rows(op, kComputeTypeOf<T>)) continue;
    std::vector<T> a = samples<T>(301, 5);
    std::vector<T> b = samples<T>(301, 6);
    std::shuffle(b.begin(), b.end(), std::mt19937(1));
    if (info(op).can_fail && std::is_integral_v<T>) {
      for (T& v : b) v = v == 0 ? 1 : v;
    }
    check_binary<T>(op, a, b);
  }
}

TEST_P(RowsTest, BinaryFloat) {
  check_binaries<float>();
}
TEST_P(RowsTest, BinaryDouble) {
  check_binaries<double>();
}
TEST_P(RowsTest, BinaryInteger) {
  check_binaries<int32_t>();
  check_binaries<int64_t>();
  check_binaries<uint32_t>();
  check_binaries<uint64_t>();
}
TEST_P(RowsTest, BinaryBool) {
  check_binaries<uint8_t>();
}

TEST_P(RowsTest, Not) {
  const uint8_t x[] = {0, 1, 1, 0};
  uint8_t y[4];
  elementwise_rows(Op::kNot, ComputeType::kBool).vv(x, nullptr, y, 4, nullptr);
  EXPECT_EQ(std::vector<uint8_t>(y, y + 4), (std::vector<uint8_t>{1, 0, 0, 1}));
}

TEST_P(RowsTest, IntegerDivisionByZeroIsAnError) {
  const int32_t a[] = {1, 2, 3};
  const int32_t b[] = {1, 0, 2};
  int32_t y[3];
  for (Op op : {Op::kDiv, Op::kMod, Op::kFmod}) {
    EXPECT_EQ(elementwise_rows(op, ComputeType::kI32).vv(a, b, y, 3, nullptr), kDivisionByZero);
    EXPECT_EQ(elementwise_rows(op, ComputeType::kI32).vv(a, b, y, 1, nullptr), kOk);
    EXPECT_EQ(elementwise_rows(op, ComputeType::kI32).vs(a, b + 1, y, 0, nullptr), kOk);
  }
}

TEST_P(RowsTest, Clip) {
  const float x[] = {-5, 0.5, 7, NAN, -INFINITY, INFINITY};
  const float bounds[] = {-1, 2};
  float y[6];
  elementwise_rows(Op::kClip, ComputeType::kF32).vs(x, bounds, y, 6, nullptr);
  const float expected[] = {-1, 0.5, 2, NAN, -1, 2};
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(same(y[i], expected[i])) << i;
}

// --- results do not depend on the place in a row; nothing outside is written; in place works ---

// To the bit, but for NaN: which operand's sign and payload it has is up to the compiler. `width` 1: results are bools.
template <class T>
bool same_row(const std::byte* found, const std::byte* expected, size_t n, size_t width) {
  for (size_t i = 0; i < n * width; i += width) {
    if (std::memcmp(found + i, expected + i, width) == 0) continue;
    if (width != sizeof(T)) return false;
    T a, b;
    std::memcpy(&a, found + i, width);
    std::memcpy(&b, expected + i, width);
    if (a == a || b == b) return false;
  }
  return true;
}

template <class T>
void check_places(Op op) {
  const size_t kMax = 70;
  const ElementwiseParams params{1.25, 0.5};
  const ElementwiseRows& rows = elementwise_rows(op, kComputeTypeOf<T>);
  const bool unary = info(op).inputs == 1;
  const bool clip = op == Op::kClip;
  std::vector<T> a = samples<T>(kMax, 11);
  std::vector<T> b = samples<T>(kMax, 12);
  if (std::is_integral_v<T>) {
    for (T& v : b) v = v == 0 ? 1 : v;
  }
  const T bounds[] = {T(0), T(1)};
  const size_t width = info(op).bool_result ? 1 : sizeof(T);
  std::vector<std::byte> single(kMax * width);
  const Row row = clip ? rows.vs : rows.vv;
  for (size_t i = 0; i < kMax; ++i) {
    row(&a[i], clip ? static_cast<const void*>(bounds) : &b[i], &single[i * width], 1, &params);
  }
  std::vector<std::byte> memory_a((kMax + 8) * sizeof(T));
  std::vector<std::byte> memory_b((kMax + 8) * sizeof(T));
  for (size_t n = 0; n <= kMax; ++n) {
    const size_t shift = n % 8 * sizeof(T);  // aligned to elements only
    const size_t out_shift = n % 8 * width;
    std::memcpy(memory_a.data() + shift, a.data(), kMax * sizeof(T));
    std::memcpy(memory_b.data() + shift, b.data(), kMax * sizeof(T));
    const void* second = clip ? static_cast<const void*>(bounds) : memory_b.data() + shift;
    std::vector<std::byte> out((kMax + 10) * width, std::byte{0x5a});
    row(memory_a.data() + shift, second, out.data() + out_shift, n, &params);
    ASSERT_TRUE(same_row<T>(out.data() + out_shift, single.data(), n, width)) << info(op).name << " n " << n;
    for (size_t i = n * width + out_shift; i < out.size(); ++i) ASSERT_EQ(out[i], std::byte{0x5a}) << info(op).name;
    if (width != sizeof(T)) continue;
    row(memory_a.data() + shift, second, memory_a.data() + shift, n, &params);
    ASSERT_TRUE(same_row<T>(memory_a.data() + shift, single.data(), n, width)) << info(op).name << " in place " << n;
    if (unary || clip) continue;
    std::memcpy(memory_a.data() + shift, a.data(), kMax * sizeof(T));
    row(memory_a.data() + shift, memory_b.data() + shift, memory_b.data() + shift, n, &params);
    ASSERT_TRUE(same_row<T>(memory_b.data() + shift, single.data(), n, width)) << info(op).name << " in place " << n;
  }
}

template <class T>
void check_all_places() {
  for (int i = 0; i < kElementwiseOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    if (op != Op::kWhere && has_rows(op, kComputeTypeOf<T>)) check_places<T>(op);
  }
}

TEST_P(RowsTest, PlaceInRowFloat) {
  check_all_places<float>();
}
TEST_P(RowsTest, PlaceInRowDouble) {
  check_all_places<double>();
}
TEST_P(RowsTest, PlaceInRowIntegers) {
  check_all_places<int32_t>();
  check_all_places<int64_t>();
  check_all_places<uint32_t>();
  check_all_places<uint64_t>();
}
TEST_P(RowsTest, PlaceInRowBool) {
  check_all_places<uint8_t>();
}

}  // namespace
}  // namespace treadle::kernels::testing
