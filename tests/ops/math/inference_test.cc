// Inference of arithmetic, products, reductions and quantisation: symbolic sizes, contents of shapes, refused inputs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/one_node.h"

namespace treadle {
namespace {

using ir::Attribute;
using testing::HasSubstr;
using testing_support::infer;
using testing_support::Inferred;
using testing_support::Input;

Type floats(Shape shape) {
  return Type::tensor(ElementType::kFloat, std::move(shape));
}
Type int64s(Shape shape) {
  return Type::tensor(ElementType::kInt64, std::move(shape));
}
Dim symbol(const char* name) {
  return Dim::symbol(name);
}

TEST(Broadcasting, KeepsSymbols) {
  EXPECT_EQ(infer("Add", 14, {floats({symbol("N"), 1, 4}), floats({3, 1})}).to_string(), "tensor(float)[N,3,4]");
  EXPECT_EQ(infer("Add", 14, {floats({symbol("N")}), floats({symbol("M")})}).to_string(), "tensor(float)[?]");
  EXPECT_EQ(infer("Less", 13, {floats({2, 1}), floats({symbol("M")})}).to_string(), "tensor(bool)[2,M]");
  EXPECT_EQ(infer("Sum", 13, {floats({2, 1}), floats({3}), floats({5, 1, 1})}).to_string(), "tensor(float)[5,2,3]");
}

TEST(Broadcasting, UnknownRankStaysUnknown) {
  const Inferred r = infer("Mul", 14, {Type::tensor(ElementType::kFloat), floats({3})});
  ASSERT_TRUE(r.status.ok());
  EXPECT_FALSE(r.type.has_shape);
  EXPECT_EQ(r.type.element, ElementType::kFloat);
}

TEST(Broadcasting, ErrorsNameTheShapesOrTheOperand) {
  EXPECT_THAT(infer("Add", 14, {floats({2, 3}), floats({2, 4})}).to_string(), HasSubstr("[2,3] and [2,4]"));
  EXPECT_THAT(infer("PRelu", 16, {floats({2, 3}), floats({4, 2, 3})}).to_string(), HasSubstr("slope"));
}

TEST(Broadcasting, BeforeVersionSevenAlignsAtAnAxis) {
  const std::vector<Attribute> at_one = {Attribute::of("broadcast", 1), Attribute::of("axis", 1)};
  EXPECT_EQ(infer("Add", 6, {floats({2, 3, 4}), floats({3})}, at_one).to_string(), "tensor(float)[2,3,4]");
  EXPECT_THAT(infer("Add", 6, {floats({2, 3, 4}), floats({4})}, at_one).to_string(), HasSubstr("from axis 1 on"));
  EXPECT_THAT(infer("Add", 6, {floats({2, 3}), floats({3})}).to_string(), HasSubstr("attribute broadcast is not 1"));
}

TEST(ShapeArithmetic, RunsThroughIntegers) {
  const Shape a = {symbol("N"), 4}, b = {2};
  const auto symbols = [&](const char* op) {
    const Inferred r = infer(op, 14, {{int64s({2}), nullptr, &a}, {int64s({1}), nullptr, &b}});
    return r.has_symbols ? to_string(r.symbols) : "none";
  };
  EXPECT_EQ(symbols("Add"), "[N+2,6]");
  EXPECT_EQ(symbols("Sub"), "[N-2,2]");
  EXPECT_EQ(symbols("Mul"), "[2*N,8]");
  EXPECT_EQ(symbols("Max"), to_string(Shape{max(symbol("N"), Dim(int64_t{2})), 4}));
  EXPECT_EQ(symbols("Div"), to_string(Shape{floor_div(symbol("N"), Dim(int64_t{2})), 2}));
  EXPECT_EQ(symbols("Mod"), to_string(Shape{mod(symbol("N"), Dim(int64_t{2})), Dim(int64_t{0})}));
}

TEST(ShapeArithmetic, DividesAsIntegersDo) {
  const Shape a = {-7}, b = {2}, unknown = {Dim::unknown()};
  Inferred r = infer("Div", 14, {{int64s({1}), nullptr, &a}, {int64s({1}), nullptr, &b}});
  EXPECT_EQ(to_string(r.symbols), "[-3]");
  r = infer("Div", 14, {{int64s({1}), nullptr, &unknown}, {int64s({1}), nullptr, &b}});
  EXPECT_EQ(to_string(r.symbols), "[?]");  // could be negative
}

TEST(ShapeArithmetic, Int32Wraps) {
  const Shape a = {int64_t{1} << 30}, b = {4};
  const Type type = Type::tensor(ElementType::kInt32, {1});
  EXPECT_EQ(to_string(infer("Mul", 14, {{type, nullptr, &a}, {type, nullptr, &b}}).symbols), "[?]");
}

TEST(ShapeArithmetic, ChoosesByKnownSizes) {
  const Shape sizes = {symbol("N"), -1, Dim::unknown()}, minus = {-1};
  const Inferred equal = infer("Equal", 13, {{int64s({3}), nullptr, &sizes}, {int64s({}), nullptr, &minus}});
  EXPECT_EQ(to_string(equal.symbols), "[0,1,?]");  // a size is never -1
  const Shape ones = {1};
  const Inferred where = infer("Where", 16,
                               {{Type::tensor(ElementType::kBool, {3}), nullptr, &equal.symbols},
                                {int64s({1}), nullptr, &ones},
                                {int64s({3}), nullptr, &sizes}});
  EXPECT_EQ(to_string(where.symbols), "[N,1,?]");
}

TEST(ShapeArithmetic, PassesCastsAndReductions) {
  const Shape sizes = {symbol("N"), 3};
  const Inferred cast = infer("Cast", 13, {{int64s({2}), nullptr, &sizes}},
                              {Attribute::of("to", static_cast<int64_t>(ElementType::kInt32))});
  EXPECT_EQ(to_string(cast.symbols), "[N,3]");
  const Inferred product = infer("ReduceProd", 13, {{int64s({2}), nullptr, &sizes}}, {Attribute::of("keepdims", 0)});
  EXPECT_EQ(product.to_string(), "tensor(int64)[]");
  EXPECT_EQ(to_string(product.symbols), "[3*N]");
}

TEST(Products, BroadcastStacks) {
  const auto matmul = [](Shape a, Shape b) {
    return infer("MatMul", 13, {floats(std::move(a)), floats(std::move(b))}).to_string();
  };
  EXPECT_EQ(matmul({symbol("B"), 1, 3, 4}, {5, 4, symbol("M")}), "tensor(float)[B,5,3,M]");
  EXPECT_EQ(matmul({4}, {symbol("B"), 4, 6}), "tensor(float)[B,6]");
  EXPECT_EQ(matmul({2, 3, 4}, {4}), "tensor(float)[2,3]");
  EXPECT_EQ(matmul({4}, {4}), "tensor(float)[]");
  EXPECT_THAT(matmul({2, 3}, {4, 5}), HasSubstr("as many columns of A as rows of B, found 3 and 4"));
  EXPECT_THAT(matmul({}, {4}), HasSubstr("scalar"));
}

TEST(Products, GemmTransposes) {
  const Inferred r = infer("Gemm", 13, {floats({4, symbol("N")}), floats({5, 4}), floats({5})},
                           {Attribute::of("transA", 1), Attribute::of("transB", 1)});
  EXPECT_EQ(r.to_string(), "tensor(float)[N,5]");
  EXPECT_THAT(infer("Gemm", 13, {floats({3, 4}), floats({4, 5}), floats({4})}).to_string(),
              HasSubstr("C has shape [4]"));
  EXPECT_THAT(infer("Gemm", 13, {floats({3, 4, 1}), floats({4, 5})}).to_string(), HasSubstr("two dimensions"));
}

TEST(Products, EinsumReadsItsEquation) {
  const auto einsum = [](const char* equation, Shape a, Shape b) {
    return infer("Einsum", 12, {floats(std::move(a)), floats(std::move(b))},
                 {Attribute::of("equation", std::string(equation))})
        .to_string();
  };
  EXPECT_EQ(einsum("...ij,...jk->...ik", {symbol("B"), 3, 4}, {4, symbol("K")}), "tensor(float)[B,3,K]");
  EXPECT_EQ(einsum("ij,jk", {2, 3}, {3, 4}), "tensor(float)[2,4]");
  EXPECT_THAT(einsum("ij,jk", {2, 3}, {4, 4}),
              HasSubstr("input 1 has size 4 at axis 0, expected that of another input, 3"));
  EXPECT_THAT(einsum("ij->i", {2, 3}, {4, 4}), HasSubstr("2 terms"));
  EXPECT_THAT(einsum("ij,jk->ii", {2, 3}, {3, 4}), HasSubstr("twice"));
  EXPECT_THAT(einsum("ij,jk->il", {2, 3}, {3, 4}), HasSubstr("occurs in no input"));
}

TEST(Reductions, NeedTheirAxes) {
  EXPECT_EQ(infer("ReduceSum", 13, {floats({2, symbol("N")}), int64s({1})}).to_string(), "tensor(float)[?,?]");
  const Tensor axes = Tensor::of_int64(std::vector<int64_t>{-1});
  EXPECT_EQ(infer("ReduceSum", 13, {floats({2, symbol("N")}), {int64s({1}), &axes}}).to_string(), "tensor(float)[2,1]");
  const Tensor wrong = Tensor::of_int64(std::vector<int64_t>{2});
  EXPECT_THAT(infer("ReduceSum", 13, {floats({2, 3}), {int64s({1}), &wrong}}).to_string(),
              HasSubstr("axes is 2, expected -2 to 1"));
  EXPECT_THAT(infer("ArgMax", 13, {floats({0, 3})}).to_string(), HasSubstr("empty"));
}

TEST(Quantisation, ChecksScales) {
  const auto quantise = [](Shape scale, std::vector<Attribute> attributes) {
    return infer("QuantizeLinear", 21, {floats({4, 6}), floats(std::move(scale))}, std::move(attributes)).to_string();
  };
  EXPECT_EQ(quantise({6}, {}), "tensor(uint8)[4,6]");
  EXPECT_EQ(quantise({4, 3}, {Attribute::of("block_size", 2)}), "tensor(uint8)[4,6]");
  EXPECT_EQ(quantise({}, {Attribute::of("output_dtype", static_cast<int64_t>(ElementType::kInt4))}),
            "tensor(int4)[4,6]");
  EXPECT_THAT(quantise({5}, {}), HasSubstr("[5]"));
  EXPECT_THAT(quantise({4, 2}, {Attribute::of("block_size", 2)}), HasSubstr("blocks"));
}

}  // namespace
}  // namespace treadle
