// Kernels that accept operands of any strides give the results for contiguous ones; single elements give the results of
// rows.
#include <gtest/gtest.h>

#include <numeric>

#include "kernels/convert.h"
#include "support/one_node.h"

namespace treadle {
namespace {

using ir::Attribute;
using testing_support::KernelRun;

template <class T>
std::vector<T> counting(size_t n) {
  std::vector<T> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = static_cast<T>(static_cast<int64_t>(i * 7 % 23) - 11);
  return values;
}

TEST(Strides, ElementwiseReadsTransposedAndReversed) {
  const auto a = counting<float>(12), b = counting<float>(12);
  std::vector<float> out(12);
  KernelRun run;
  run.input(ElementType::kFloat, {3, 4}, {1, 3}, a.data());         // a transposed
  run.input(ElementType::kFloat, {3, 4}, {-4, -1}, b.data() + 11);  // b from its end
  run.output(ElementType::kFloat, {3, 4}, out.data());
  ASSERT_EQ(run.run("Sub", 14).value(), 0u);
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < 4; ++j) EXPECT_EQ(out[i * 4 + j], a[i + j * 3] - b[11 - i * 4 - j]);
  }
}

template <class T>
void check_matmul(ElementType type) {
  // A [2,3,4] with rows 6 apart, as a part of something larger; B [4,5] transposed.
  const auto a = counting<float>(40), b = counting<float>(20);
  std::vector<T> stored_a(a.size()), stored_b(b.size()), out(30);
  kernels::cast(ElementType::kFloat, type, a.data(), stored_a.data(), a.size());
  kernels::cast(ElementType::kFloat, type, b.data(), stored_b.data(), b.size());
  KernelRun run;
  run.input(type, {2, 3, 4}, {20, 6, 1}, stored_a.data());
  run.input(type, {4, 5}, {1, 4}, stored_b.data());
  run.output(type, {2, 3, 5}, out.data());
  ASSERT_EQ(run.run("MatMul", 13).value(), 0u);
  std::vector<float> result(out.size());
  kernels::cast(type, ElementType::kFloat, out.data(), result.data(), out.size());
  for (size_t s = 0; s < 2; ++s) {
    for (size_t i = 0; i < 3; ++i) {
      for (size_t j = 0; j < 5; ++j) {
        float sum = 0;
        for (size_t k = 0; k < 4; ++k) sum += a[s * 20 + i * 6 + k] * b[j * 4 + k];
        EXPECT_EQ(result[(s * 3 + i) * 5 + j], sum) << s << " " << i << " " << j;
      }
    }
  }
}

TEST(Strides, MatMulReadsThem) {
  check_matmul<float>(ElementType::kFloat);
  check_matmul<double>(ElementType::kDouble);
  check_matmul<int32_t>(ElementType::kInt32);
  check_matmul<uint16_t>(ElementType::kFloat16);  // gathered, then widened
}

TEST(Strides, OneOperandIsCopiedByThem) {
  const auto a = counting<int64_t>(6);
  std::vector<int64_t> out(6);
  KernelRun run;
  run.input(ElementType::kInt64, {2, 3}, {1, 2}, a.data());
  run.output(ElementType::kInt64, {2, 3}, out.data());
  ASSERT_EQ(run.run("Max", 13).value(), 0u);
  EXPECT_EQ(out, (std::vector<int64_t>{a[0], a[2], a[4], a[1], a[3], a[5]}));
}

// A single element takes another path than two equal ones.
template <class T, class R = T>
void check_single(const char* op, ElementType type, T a, T b) {
  const T as[] = {a, a}, bs[] = {b, b};
  R one[1] = {}, two[2] = {};
  const ElementType result = sizeof(R) == 1 ? ElementType::kBool : type;
  KernelRun single, row;
  single.input(type, {}, {}, as);
  single.input(type, {}, {}, bs);
  single.output(result, {}, one);
  row.input(type, {2}, {1}, as);
  row.input(type, {2}, {1}, bs);
  row.output(result, {2}, two);
  ASSERT_EQ(single.run(op, 14).value(), 0u);
  ASSERT_EQ(row.run(op, 14).value(), 0u);
  EXPECT_EQ(one[0], two[0]) << op << " of " << a << " and " << b;
  EXPECT_EQ(two[0], two[1]);
}

TEST(SingleElement, EqualsTheResultOfARow) {
  for (const char* op : {"Add", "Sub", "Mul"}) {
    check_single<float>(op, ElementType::kFloat, 0.1f, -3.7f);
    check_single<double>(op, ElementType::kDouble, 0.1, 1e300);
    check_single<int32_t>(op, ElementType::kInt32, INT32_MAX, 2);  // wraps
    check_single<int64_t>(op, ElementType::kInt64, INT64_MIN, -1);
  }
  check_single<float>("Div", ElementType::kFloat, 1, 0);
  for (const char* op : {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"}) {
    for (const auto& [a, b] : {std::pair{1, 2}, {2, 1}, {2, 2}}) {
      check_single<int64_t, bool>(op, ElementType::kInt64, a, b);
      check_single<float, bool>(op, ElementType::kFloat, static_cast<float>(a), static_cast<float>(b));
    }
    check_single<float, bool>(op, ElementType::kFloat, __builtin_nanf(""), 1);
  }
  for (const char* op : {"And", "Or", "Xor", "Equal"}) {
    for (const bool a : {false, true}) {
      for (const bool b : {false, true}) check_single<bool, bool>(op, ElementType::kBool, a, b);
    }
  }
}

TEST(Failure, DivisionByZeroIsACode) {
  const int64_t a[] = {1, 2}, b[] = {1, 0};
  int64_t out[2];
  KernelRun run;
  run.input(ElementType::kInt64, {2}, {1}, a);
  run.input(ElementType::kInt64, {2}, {1}, b);
  run.output(ElementType::kInt64, {2}, out);
  EXPECT_EQ(run.run("Div", 14).value(), static_cast<uint32_t>(KernelError::kDivisionByZero));
  EXPECT_TRUE(require_op("Div").can_fail(ElementType::kInt64));
  EXPECT_FALSE(require_op("Div").can_fail(ElementType::kFloat));
}

}  // namespace
}  // namespace treadle
