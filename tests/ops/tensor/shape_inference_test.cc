// Sizes that are known, symbolic or unknown, and contents of small integer tensors from which sizes are computed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "op/registry.h"

namespace treadle {
namespace {

using ir::Attribute;
using testing::HasSubstr;

const Dim kN = Dim::symbol("N");
const Dim kM = Dim::symbol("M");

// One input: its type, and the known part of its contents.
struct Input {
  Type type;
  Tensor value;
  std::optional<Shape> symbols;
};

Input floats(Shape shape) {
  return {Type::tensor(ElementType::kFloat, std::move(shape)), {}, {}};
}
Input ints(std::initializer_list<int64_t> values) {
  const auto size = static_cast<int64_t>(values.size());
  return {Type::tensor(ElementType::kInt64, {Dim(size)}), Tensor::of_int64({values.begin(), values.size()}), {}};
}
Input dims(Shape values) {
  const auto size = static_cast<int64_t>(values.size());
  return {Type::tensor(ElementType::kInt64, {Dim(size)}), {}, std::move(values)};
}
Input scalar(Dim value) {
  return {Type::tensor(ElementType::kInt64, {}), {}, Shape{std::move(value)}};
}
Input unknown_ints(Shape shape) {
  return {Type::tensor(ElementType::kInt64, std::move(shape)), {}, {}};
}

struct Inferred {
  Status status;
  std::vector<Type> types;
  std::vector<std::string> symbols;  // "" for unknown elements

  std::string shape(size_t i = 0) const {
    if (!status.ok()) return status.message();
    return types[i].has_shape ? to_string(types[i].shape) : "no shape";
  }
};

Inferred infer(const char* op, int version, std::vector<Input> inputs, std::vector<Attribute> attributes = {},
               size_t outputs = 1) {
  ir::NodeInfo node;
  node.op = &require_op(op);
  node.version = node.op->version_for(version);
  node.input_count = static_cast<uint32_t>(inputs.size());
  node.output_count = static_cast<uint32_t>(outputs);
  for (Attribute& a : attributes) node.attributes.set(std::move(a));
  std::vector<const Type*> types;
  std::vector<const Tensor*> values;
  std::vector<const Shape*> symbols;
  for (const Input& in : inputs) {
    types.push_back(in.type.is_known() ? &in.type : nullptr);
    values.push_back(in.value.defined() ? &in.value : nullptr);
    symbols.push_back(in.symbols ? &*in.symbols : nullptr);
  }
  Inferred result;
  result.types.resize(outputs);
  std::vector<Shape> found(outputs);
  auto known = std::make_unique<bool[]>(outputs);
  InferContext context{node, types, values, symbols, result.types, found, {known.get(), outputs}};
  result.status = node.op->infer(context);
  for (size_t i = 0; i < outputs; ++i) result.symbols.push_back(known[i] ? to_string(found[i]) : "");
  return result;
}

std::string reshaped(Shape from, Shape to, int allowzero = 0) {
  return infer("Reshape", 14, {floats(std::move(from)), dims(std::move(to))}, {Attribute::of("allowzero", allowzero)})
      .shape();
}

TEST(ReshapeInference, DeducesOneSize) {
  EXPECT_EQ(reshaped({2, 3, 4}, {-1, 6}), "[4,6]");
  EXPECT_EQ(reshaped({kN, 3, 4}, {0, -1}), "[N,12]");
  EXPECT_EQ(reshaped({kN, kM, 4}, {kM, -1}), "[M,4*N]");
  EXPECT_EQ(reshaped({kN, 6}, {-1, 3}), "[2*N,3]");
  EXPECT_EQ(reshaped({kN, 4}, {2, -1, 2}), "[2,N,2]");
  EXPECT_EQ(reshaped({Dim(), 4}, {-1, 4}), "[?,4]");
  EXPECT_EQ(reshaped({2, 3}, {Dim(), 3}), "[2,3]");
}

TEST(ReshapeInference, TakesZeroForTheInputsSizeUnlessAllowed) {
  EXPECT_EQ(reshaped({2, 3}, {0, 3}), "[2,3]");
  EXPECT_EQ(reshaped({0, 3}, {0, 5}, 1), "[0,5]");
  EXPECT_THAT(reshaped({2, 3}, {0, 5}, 1), HasSubstr("cannot become"));
  EXPECT_THAT(reshaped({0, 3}, {0, -1}), HasSubstr("any size would fit"));
}

TEST(ReshapeInference, RefusesWhatDoesNotFit) {
  EXPECT_THAT(reshaped({2, 3}, {4, 2}), HasSubstr("shape [2,3] has 6 elements"));
  EXPECT_THAT(reshaped({2, 3}, {-1, 4}), HasSubstr("multiple of 4"));
  EXPECT_THAT(reshaped({2, 3}, {-1, -1}), HasSubstr("shape holds -1 more than once"));
  EXPECT_THAT(reshaped({2, 3}, {-2, 3}), HasSubstr("-2"));
  EXPECT_THAT(reshaped({2, 3}, {2, 3, 0}), HasSubstr("position 2"));
}

TEST(ReshapeInference, KnowsTheRankFromTheLengthOfTheShape) {
  EXPECT_EQ(infer("Reshape", 14, {floats({2, 3}), unknown_ints({3})}).shape(), "[?,?,?]");
  EXPECT_EQ(infer("Reshape", 14, {floats({2, 3}), unknown_ints({kN})}).shape(), "no shape");
}

std::string sliced(Dim size, Input starts, Input ends, int64_t step = 1) {
  return infer("Slice", 13, {floats({std::move(size), 7}), starts, ends, ints({0}), ints({step})}).shape();
}

TEST(SliceInference, KnownSizes) {
  EXPECT_EQ(sliced(5, ints({1}), ints({-1})), "[3,7]");
  EXPECT_EQ(sliced(5, ints({-2}), ints({INT64_MAX})), "[2,7]");
  EXPECT_EQ(sliced(5, ints({0}), ints({5}), 2), "[3,7]");
  EXPECT_EQ(sliced(5, ints({-1}), ints({INT64_MIN}), -2), "[3,7]");
  EXPECT_EQ(sliced(5, ints({4}), ints({2})), "[0,7]");
  EXPECT_EQ(sliced(5, ints({9}), ints({-9}), INT64_MIN), "[1,7]");
  EXPECT_EQ(sliced(0, ints({0}), ints({3})), "[0,7]");
  EXPECT_THAT(sliced(5, ints({0}), ints({3}), 0), HasSubstr("steps holds 0"));
}

TEST(SliceInference, SymbolicSizesAndBounds) {
  EXPECT_EQ(sliced(kN, ints({0}), ints({INT64_MAX})), "[N,7]");
  EXPECT_EQ(sliced(kN + 3, ints({1}), ints({INT64_MAX})), "[N+2,7]");
  EXPECT_EQ(sliced(kN + 3, ints({0}), ints({-1})), "[N+2,7]");
  EXPECT_EQ(sliced(kN + 3, ints({-2}), ints({INT64_MAX})), "[2,7]");
  EXPECT_EQ(sliced(kN, ints({-1}), ints({INT64_MIN}), -1), "[N,7]");
  EXPECT_EQ(sliced(kN + kM, dims({kN}), dims({kN + kM})), "[M,7]");
  EXPECT_EQ(sliced(kN + 1, dims({kN}), dims({kN + 1})), "[1,7]");
  EXPECT_EQ(sliced(kN, ints({0}), unknown_ints({1})), "[?,7]");
  // A size is never negative, even if its expression could be.
  EXPECT_EQ(sliced(kN - 3, ints({0}), ints({INT64_MAX})), "[N-3,7]");
  EXPECT_EQ(sliced(kN - 3, dims({0}), ints({4})), "[min(4,N-3),7]");
}

TEST(SliceInference, PicksContents) {
  const Inferred r = infer("Slice", 13, {dims({kN, 2, kM}), ints({-1}), ints({INT64_MIN}), ints({0}), ints({-2})});
  EXPECT_EQ(r.shape(), "[2]");
  EXPECT_EQ(r.symbols[0], "[M,N]");
}

TEST(ContentsInference, FlowFromAShapeToAnother) {
  const Inferred shape = infer("Shape", 15, {floats({kN, 3, kM})}, {Attribute::of("start", -2)});
  EXPECT_EQ(shape.symbols[0], "[3,M]");
  EXPECT_EQ(infer("Size", 13, {floats({kN, 3})}).symbols[0], "[3*N]");
  EXPECT_EQ(infer("Gather", 13, {dims({kN, 3, kM}), ints({-1})}).symbols[0], "[M]");
  EXPECT_EQ(infer("Unsqueeze", 13, {scalar(kN), ints({0})}).symbols[0], "[N]");
  EXPECT_EQ(infer("Squeeze", 13, {dims({kN}), ints({0})}).symbols[0], "[N]");
  const auto joined = infer("Concat", 13, {dims({kN}), ints({4}), unknown_ints({1})}, {Attribute::of("axis", 0)});
  EXPECT_EQ(joined.symbols[0], "[N,4,?]");
  const auto split = infer("Split", 13, {dims({kN, kM, 2}), ints({1, 2})}, {}, 2);
  EXPECT_EQ(split.symbols[1], "[M,2]");
  EXPECT_EQ(infer("Expand", 13, {dims({kN}), ints({2})}).symbols[0], "[N,N]");
  EXPECT_EQ(infer("Range", 11, {scalar(kN), scalar(kN + 2), scalar(1)}).symbols[0], "[N,N+1]");
}

TEST(ContentsInference, GiveTheSizesOfOutputs) {
  EXPECT_EQ(infer("ConstantOfShape", 9, {dims({kN, 2})}).shape(), "[N,2]");
  EXPECT_EQ(infer("Expand", 13, {floats({kN, 1}), dims({1, kM})}).shape(), "[N,M]");
  EXPECT_EQ(infer("Tile", 13, {floats({kN, 3}), dims({2, kM})}).shape(), "[2*N,3*M]");
  EXPECT_EQ(infer("Range", 11, {scalar(0), scalar(kN), scalar(1)}).shape(), "[N]");
  EXPECT_EQ(infer("Pad", 13, {floats({kN, 3}), ints({1, 0, 2, 1})}).shape(), "[N+3,4]");
  EXPECT_EQ(infer("OneHot", 11, {floats({kN}), scalar(kM), ints({0, 1})}, {Attribute::of("axis", -1)}).shape(),
            "[N,M]");
  EXPECT_EQ(infer("Resize", 13, {floats({kN, 3}), {}, {}, dims({kM, 6})}).shape(), "[M,6]");
}

TEST(SizeInference, OfTheOtherOperators) {
  EXPECT_EQ(infer("Concat", 13, {floats({kN, 2}), floats({kM, Dim()})}, {Attribute::of("axis", 0)}).shape(), "[M+N,2]");
  EXPECT_EQ(infer("Gather", 13, {floats({5, kN}), unknown_ints({kM, 2})}).shape(), "[M,2,N]");
  EXPECT_EQ(
      infer("GatherND", 13, {floats({kN, 3, 4}), unknown_ints({kN, kM, 1})}, {Attribute::of("batch_dims", 1)}).shape(),
      "[N,M,4]");
  EXPECT_EQ(infer("Flatten", 13, {floats({kN, 2, kM})}, {Attribute::of("axis", -1)}).shape(), "[2*N,M]");
  EXPECT_EQ(infer("TopK", 11, {floats({kN, 9}), unknown_ints({1})}, {Attribute::of("axis", 1)}, 2).shape(1), "[N,?]");
  const auto split = infer("Split", 18, {floats({7})}, {Attribute::of("num_outputs", 3)}, 3);
  EXPECT_EQ(split.shape(0) + split.shape(1) + split.shape(2), "[3][3][1]");
  const auto halves = infer("Split", 13, {floats({kN * 2})}, {}, 2);
  EXPECT_EQ(halves.shape(0) + halves.shape(1), "[N][N]");
  EXPECT_EQ(infer("Squeeze", 13, {floats({1, kN})}).shape(), "no shape");
  EXPECT_EQ(infer("NonZero", 13, {floats({kN, 2})}).shape(), "[2,?]");
}

TEST(SizeInference, RefusesWhatCannotRun) {
  const Attribute axis = Attribute::of("axis", 0);
  EXPECT_THAT(infer("Concat", 13, {floats({2, 3}), floats({2, 4})}, {axis}).shape(), HasSubstr("3 and 4 along axis 1"));
  EXPECT_THAT(infer("Concat", 13, {floats({2, 3}), floats({2})}, {axis}).shape(), HasSubstr("ranks 2 and 1"));
  EXPECT_THAT(infer("Split", 13, {floats({7})}, {}, 2).shape(), HasSubstr("2 equal parts"));
  EXPECT_THAT(infer("Split", 13, {floats({7}), ints({3, 3})}, {}, 2).shape(), HasSubstr("add up to 6"));
  EXPECT_THAT(infer("Squeeze", 13, {floats({2}), ints({0})}).shape(), HasSubstr("size 2"));
  EXPECT_THAT(infer("Unsqueeze", 13, {floats({2}), ints({0, -3})}).shape(), HasSubstr("axis 0 twice"));
  EXPECT_THAT(infer("TopK", 11, {floats({3}), ints({4})}, {}, 2).shape(), HasSubstr("expected 0 to 3"));
  EXPECT_THAT(infer("Tile", 13, {floats({3}), ints({-1})}).shape(), HasSubstr("repeats[0] is -1"));
  EXPECT_THAT(infer("ConstantOfShape", 9, {ints({-1})}).shape(), HasSubstr("negative size"));
  EXPECT_THAT(infer("Pad", 13, {floats({3}), ints({-2, -2})}).shape(),
              HasSubstr("more elements off axis 0 than it has, expected at most 3"));
}

}  // namespace
}  // namespace treadle
