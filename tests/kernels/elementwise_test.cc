// The driver around the rows: broadcasting, strides, conversion, compared with one element at a time.

#include "kernels/elementwise.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "kernels/convert.h"
#include "kernels/dispatch.h"
#include "support/own_process.h"
#include "tests/kernels/rows.h"

namespace treadle::kernels::testing {
namespace {

using Op = ElementwiseOp;
using Type = ElementType;

class ElementwiseTest : public ::testing::TestWithParam<Isa> {
 protected:
  ElementwiseTest() : scope_(GetParam()) {}

 private:
  ScopedIsa scope_;
};
INSTANTIATE_TEST_SUITE_P(, ElementwiseTest, ::testing::ValuesIn(usable_isas()), isa_name);

// An operand with random strides over [dims], in memory of its own.
struct Operand {
  Type type;
  std::vector<int64_t> strides;
  std::vector<std::byte> memory;
  size_t first = 0;  // element of index 0

  std::byte* at(int64_t offset) {
    return memory.data() + (static_cast<int64_t>(first) + offset) * static_cast<int64_t>(byte_width(type));
  }
};

struct Random {
  std::mt19937_64 engine;
  int64_t below(int64_t n) { return static_cast<int64_t>(engine() % static_cast<uint64_t>(n)); }
};

// Broadcast dimensions, permuted order, gaps and negative steps, as far as `output` allows them.
Operand make_operand(Type type, const std::vector<int64_t>& dims, bool output, bool scalar, Random& random) {
  Operand operand{type, std::vector<int64_t>(dims.size(), 0), {}};
  std::vector<size_t> order(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) order[d] = d;
  if (random.below(3) == 0) std::shuffle(order.begin(), order.end(), random.engine);
  int64_t stride = random.below(4) == 0 ? 2 : 1;
  int64_t lowest = 0;
  for (size_t k = dims.size(); k-- > 0;) {
    const size_t d = order[k];
    if (scalar || (!output && random.below(4) == 0)) continue;
    const bool negative = random.below(6) == 0;
    operand.strides[d] = negative ? -stride : stride;
    if (negative) lowest += stride * (dims[d] - 1);
    stride *= dims[d];
  }
  operand.first = static_cast<size_t>(lowest);
  const size_t elements = static_cast<size_t>(stride) + 2;
  operand.memory.resize(elements * byte_width(type));
  // Values that stay exact in every type: small integers.
  for (size_t i = 0; i < elements; ++i) {
    const int32_t value = static_cast<int32_t>(type == Type::kBool ? random.below(2) : random.below(7) + 1);
    cast(Type::kInt32, type, &value, operand.memory.data() + i * byte_width(type), 1);
  }
  return operand;
}

ElementwiseOperand view(const Operand& operand) {
  return {operand.type, operand.strides};
}

// Reads the element as its compute type, calls the row for n = 1, writes the result back.
void naive(Op op, const std::vector<int64_t>& dims, std::vector<Operand>& in, Operand& out,
           const ElementwiseParams& params) {
  const Type first = in[op == Op::kWhere ? 1 : 0].type;
  static constexpr Type kStored[] = {Type::kFloat,  Type::kDouble, Type::kInt32, Type::kInt64,
                                     Type::kUint32, Type::kUint64, Type::kBool};
  std::vector<int64_t> index(dims.size(), 0);
  size_t count = 1;
  for (int64_t d : dims) count *= static_cast<size_t>(d);
  for (size_t e = 0; e < count; ++e) {
    std::byte* elements[3] = {};
    for (size_t i = 0; i < in.size(); ++i) {
      int64_t offset = 0;
      for (size_t d = 0; d < dims.size(); ++d) offset += index[d] * in[i].strides[d];
      elements[i] = in[i].at(offset);
    }
    int64_t offset = 0;
    for (size_t d = 0; d < dims.size(); ++d) offset += index[d] * out.strides[d];
    if (op == Op::kWhere) {
      std::memcpy(out.at(offset), *elements[0] != std::byte{0} ? elements[1] : elements[2], byte_width(out.type));
    } else {
      const ComputeType compute = compute_type(first);
      const Type stored = kStored[static_cast<int>(compute)];
      const size_t width = byte_width(stored);
      std::byte values[3][16];
      for (size_t i = 0; i < in.size(); ++i) cast(in[i].type, stored, elements[i], values[i], 1);
      std::byte pair[16];
      if (op == Op::kClip) {
        std::memcpy(pair, values[1], width);
        std::memcpy(pair + width, values[2], width);
      }
      std::byte result[8];
      const ElementwiseRows& rows = elementwise_rows(op, compute);
      if (op == Op::kClip) {
        rows.vs(values[0], pair, result, 1, &params);
      } else {
        rows.vv(values[0], values[1], result, 1, &params);
      }
      cast(info(op).bool_result ? Type::kBool : stored, out.type, result, out.at(offset), 1);
    }
    for (size_t d = dims.size(); d-- > 0;) {
      if (++index[d] < dims[d]) break;
      index[d] = 0;
    }
  }
}

TEST_P(ElementwiseTest, RandomShapesStridesAndTypes) {
  Random random{std::mt19937_64(17)};
  const Type types[] = {Type::kFloat, Type::kFloat16, Type::kDouble,   Type::kInt64,  Type::kInt8,
                        Type::kUint8, Type::kInt32,   Type::kBfloat16, Type::kUint64, Type::kBool};
  int ran = 0;
  for (int round = 0; round < 3000; ++round) {
    const Op op = static_cast<Op>(random.below(kElementwiseOpCount));
    const Type type = types[random.below(std::size(types))];
    if (!has_rows(op, compute_type(type))) continue;
    std::vector<int64_t> dims(static_cast<size_t>(random.below(5)));
    for (int64_t& d : dims) d = 1 + random.below(6);
    if (random.below(8) == 0) {  // several tiles
      dims.resize(std::min<size_t>(dims.size(), 1));
      dims.push_back(600 + random.below(600));
    }
    if (random.below(40) == 0) dims.push_back(0);
    std::vector<Operand> in;
    for (int i = 0; i < info(op).inputs; ++i) {
      const bool condition = op == Op::kWhere && i == 0;
      const bool bound = op == Op::kClip && i > 0;
      in.push_back(make_operand(condition ? Type::kBool : type, dims, false, bound, random));
    }
    Type out_type = info(op).bool_result ? Type::kBool : type;
    if (op != Op::kWhere && random.below(8) == 0) out_type = Type::kDouble;
    Operand out = make_operand(out_type, dims, true, false, random);
    Operand expected = out;
    const ElementwiseParams params{1.5, 0.5};
    naive(op, dims, in, expected, params);

    std::vector<ElementwiseOperand> views;
    const void* pointers[3] = {};
    for (size_t i = 0; i < in.size(); ++i) {
      views.push_back(view(in[i]));
      pointers[i] = in[i].at(0);
    }
    ElementwisePlan plan;
    const Status status = prepare_elementwise(&plan, op, dims, views, view(out), params);
    ASSERT_TRUE(status.ok()) << status.to_string();
    ASSERT_EQ(plan(pointers, out.at(0)), kOk) << info(op).name;
    ASSERT_EQ(out.memory, expected.memory) << info(op).name << " " << name(type) << " round " << round;
    ++ran;
  }
  EXPECT_GT(ran, 1500);
}

// Long enough to be cut along both dimensions.
TEST_P(ElementwiseTest, WhatTakesLongIsDoneInPieces) {
  constexpr int64_t kRows = 3, kColumns = 1'000'000;
  const auto columns = static_cast<size_t>(kColumns);
  std::vector<float> x(kRows * columns), exponents{0.5f, 2.0f, -1.5f}, y(x.size()), row(columns);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 997 + 1) / 64;
  const int64_t dims[] = {kRows, kColumns}, dense[] = {kColumns, 1}, by_row[] = {1, 0};
  const ElementwiseOperand operands[] = {{Type::kFloat, dense}, {Type::kFloat, by_row}};
  ElementwisePlan plan, of_row;
  ASSERT_TRUE(prepare_elementwise(&plan, Op::kPow, dims, operands, {Type::kFloat, dense}).ok());
  ASSERT_GT(plan.ns, kStopCheckNs);
  const void* inputs[] = {x.data(), exponents.data()};
  ASSERT_EQ(plan(inputs, y.data()), kOk);
  ASSERT_TRUE(prepare_elementwise(&of_row, Op::kPow, Type::kFloat, columns, 2).ok());
  for (size_t r = 0; r < kRows; ++r) {
    const void* of_this[] = {x.data() + r * columns, &exponents[r]};
    ASSERT_EQ(of_row(of_this, row.data()), kOk);
    EXPECT_TRUE(std::equal(row.begin(), row.end(), y.begin() + static_cast<std::ptrdiff_t>(r * columns)));
  }
}

TEST_P(ElementwiseTest, ClipBoundsMayBeAbsent) {
  const int64_t x[] = {-5, 0, 5, 99};
  const int64_t high = 7;
  int64_t y[4];
  const int64_t dims[] = {4};
  const int64_t dense[] = {1};
  const ElementwiseOperand inputs[] = {{Type::kInt64, dense}, {Type::kUndefined, {}}, {Type::kInt64, {}}};
  ElementwisePlan plan;
  ASSERT_TRUE(prepare_elementwise(&plan, Op::kClip, dims, inputs, {Type::kInt64, dense}).ok());
  const void* in[] = {x, nullptr, &high};
  ASSERT_EQ(plan(in, y), kOk);
  EXPECT_EQ(std::vector<int64_t>(y, y + 4), (std::vector<int64_t>{-5, 0, 5, 7}));
}

TEST_P(ElementwiseTest, PowOfMixedTypes) {
  const float base[] = {2, 3, 4};
  const int64_t exponent[] = {10, 2, -1};
  float y[3];
  const int64_t dims[] = {3};
  const int64_t dense[] = {1};
  const ElementwiseOperand inputs[] = {{Type::kFloat, dense}, {Type::kInt64, dense}};
  ElementwisePlan plan;
  ASSERT_TRUE(prepare_elementwise(&plan, Op::kPow, dims, inputs, {Type::kFloat, dense}).ok());
  const void* in[] = {base, exponent};
  ASSERT_EQ(plan(in, y), kOk);
  EXPECT_EQ(std::vector<float>(y, y + 3), (std::vector<float>{1024, 9, 0.25f}));
}

TEST_P(ElementwiseTest, ErrorsAndRefusals) {
  ElementwisePlan plan;
  EXPECT_EQ(prepare_elementwise(&plan, Op::kExp, Type::kInt32, 4, 0).code(), Code::kNotImplemented);
  EXPECT_EQ(prepare_elementwise(&plan, Op::kAdd, Type::kString, 4, 0).code(), Code::kNotImplemented);
  ASSERT_TRUE(prepare_elementwise(&plan, Op::kDiv, Type::kInt8, 3, 2).ok());
  const int8_t a[] = {1, 2, 3};
  const int8_t zero = 0;
  int8_t y[3];
  const void* in[] = {a, &zero};
  EXPECT_EQ(plan(in, y), kDivisionByZero);
}

TEST_P(ElementwiseTest, InPlace) {
  std::vector<float> x(1000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) * 0.01f;
  std::vector<float> expected(x.size());
  ElementwisePlan plan;
  ASSERT_TRUE(prepare_elementwise(&plan, Op::kTanh, Type::kFloat, x.size(), 0).ok());
  const void* in[] = {x.data()};
  plan(in, expected.data());
  plan(in, x.data());
  EXPECT_EQ(x, expected);
}

TEST(Dispatch, EnvironmentVariableForcesTheInstructionSet) {
  const char* wanted = std::getenv("TREADLE_ISA");
  if (wanted == nullptr) {
    EXPECT_EQ(active_isa(), widest_isa());
  } else {
    EXPECT_EQ(name(active_isa()), wanted);
  }
  // In new processes, because the variable is read once.
  for (Isa isa : usable_isas()) {
    EXPECT_EXIT(
        {
          setenv("TREADLE_ISA", std::string(name(isa)).c_str(), 1);
          treadle::test::become_test("Dispatch.ChildReportsItsInstructionSet");
        },
        ::testing::ExitedWithCode(0), "")
        << name(isa);
  }
}

TEST(Dispatch, ChildReportsItsInstructionSet) {
  const char* wanted = std::getenv("TREADLE_ISA");
  if (wanted == nullptr) GTEST_SKIP() << "run by the test before, with TREADLE_ISA set";
  EXPECT_EQ(name(active_isa()), wanted);
  EXPECT_EQ(&kernels(), &kernels_for(active_isa()));
}

TEST(Dispatch, InstructionSetsHaveCodeOfTheirOwn) {
  std::vector<Row> rows;
  for (Isa isa : usable_isas()) {
    const ScopedIsa scope(isa);
    rows.push_back(elementwise_rows(Op::kExp, ComputeType::kF32).vv);
  }
  for (size_t i = 1; i < rows.size(); ++i) EXPECT_NE(rows[i], rows[i - 1]);
}

// About as long as one piece takes. Times of parts are rounded, so the sum of the parts may seem short.
TEST_P(ElementwiseTest, PlansThatTakeAboutOnePiece) {
  for (int64_t n = 1; n <= 300; ++n) {
    std::vector<float> x(static_cast<size_t>(3 * n)), out(x.size(), -1);
    std::iota(x.begin(), x.end(), 0.f);
    ElementwisePlan plan;
    const std::vector<int64_t> dims{n, 3}, down{1, n}, dense{3, 1};
    const std::vector<ElementwiseOperand> inputs{{Type::kFloat, down}};
    ASSERT_TRUE(prepare_elementwise(&plan, Op::kNeg, dims, inputs, {Type::kFloat, dense}).ok());
    for (const double ns : {kShortNs, std::nextafter(kShortNs, 1e9), kShortNs * 1.001}) {
      plan.ns = ns;
      const void* operands[] = {x.data()};
      ASSERT_EQ(plan(operands, out.data()), 0u);
      for (int64_t i = 0; i < 3 * n; ++i) {
        ASSERT_EQ(out[static_cast<size_t>(i)], -static_cast<float>(i / 3 + i % 3 * n)) << n;
      }
    }
  }
}

}  // namespace
}  // namespace treadle::kernels::testing
