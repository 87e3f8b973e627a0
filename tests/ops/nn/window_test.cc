#include <gtest/gtest.h>

#include "reference/interpreter.h"
#include "support/one_node.h"

namespace treadle {
namespace {

using ir::Attribute;
using testing_support::infer;
using testing_support::make_node;

using Ints = std::vector<int64_t>;

Type image(Shape shape) {
  return Type::tensor(ElementType::kFloat, std::move(shape));
}

Tensor floats(Dims dims, std::vector<float> values) {
  return Tensor::of_float(values).reshaped(std::move(dims));
}

std::vector<float> run(const char* op, int version, std::vector<AnyValue> inputs, std::vector<Attribute> attributes) {
  const ir::NodeInfo node = make_node(op, version, inputs.size(), 1, std::move(attributes));
  const auto out = reference::run_node(node, inputs);
  if (!out.ok()) {
    ADD_FAILURE() << out.error().to_string();
    return {};
  }
  const auto span = (*out)[0].tensor().span<float>();
  return {span.begin(), span.end()};
}

TEST(ConvInference, SizesFollowSymbols) {
  const Shape x{Dim::symbol("N"), 3, Dim::symbol("L")}, w{8, 3, 5};
  EXPECT_EQ(infer("Conv", 22, {image(x), image(w)}).to_string(), "tensor(float)[N,8,L-4]");
  EXPECT_EQ(infer("Conv", 22, {image(x), image(w)}, {Attribute::of("auto_pad", std::string("SAME_UPPER"))}).to_string(),
            "tensor(float)[N,8,L]");
  EXPECT_EQ(infer("Conv", 1, {Type::tensor(ElementType::kFloat), image(w)}).to_string(), "tensor(float)[?,8,?]");
}

TEST(ConvInference, ErrorsNameTheWrongArgument) {
  const Type x = image({1, 3, 9}), w = image({8, 2, 5});
  EXPECT_NE(infer("Conv", 11, {x, w}).to_string().find("x has 3 channels"), std::string::npos);
  EXPECT_NE(infer("Conv", 11, {x, image({8, 3, 11})}).to_string().find("covers 11 elements"), std::string::npos);
  EXPECT_NE(infer("Conv", 11, {x, image({8, 3, 5})}, {Attribute::of("strides", Ints{0})}).to_string().find("strides"),
            std::string::npos);
  EXPECT_NE(infer("Conv", 11, {x, image({8, 3, 5}), image({7})}).to_string().find("expected [8]"), std::string::npos);
}

TEST(Conv, PadsStridesGroupsAndBias) {
  const Tensor x = floats({1, 2, 4}, {1, 2, 3, 4, 10, 20, 30, 40});
  const Tensor w = floats({2, 1, 3}, {1, 1, 1, 1, 0, -1});
  const Tensor b = floats({2}, {0.5f, 1});
  EXPECT_EQ(run("Conv", 22, {x, w, b},
                {Attribute::of("group", 2), Attribute::of("pads", Ints{1, 1}), Attribute::of("strides", Ints{2})}),
            (std::vector<float>{3.5f, 9.5f, -19, -19}));
}

TEST(Conv, SameLowerPutsTheOddPadFirst) {
  const Tensor x = floats({1, 1, 3}, {1, 2, 3}), w = floats({1, 1, 2}, {1, 10});
  EXPECT_EQ(run("Conv", 11, {x, w}, {Attribute::of("auto_pad", std::string("SAME_LOWER"))}),
            (std::vector<float>{10, 21, 32}));
  EXPECT_EQ(run("Conv", 11, {x, w}, {Attribute::of("auto_pad", std::string("SAME_UPPER"))}),
            (std::vector<float>{21, 32, 3}));
}

TEST(ConvTranspose, SpreadsAndCuts) {
  const Tensor x = floats({1, 1, 2}, {1, 2}), w = floats({1, 1, 3}, {1, 10, 100});
  EXPECT_EQ(run("ConvTranspose", 11, {x, w}, {Attribute::of("strides", Ints{2})}),
            (std::vector<float>{1, 10, 102, 20, 200}));
  EXPECT_EQ(run("ConvTranspose", 11, {x, w}, {Attribute::of("strides", Ints{2}), Attribute::of("pads", Ints{1, 0})}),
            (std::vector<float>{10, 102, 20, 200}));
  EXPECT_EQ(infer("ConvTranspose", 22, {image({1, 1, Dim::symbol("L")}), image({1, 4, 3})},
                  {Attribute::of("output_shape", Ints{10})})
                .to_string(),
            "tensor(float)[1,4,10]");
}

TEST(Pool, CeilLeavesOutWindowsBehindTheInput) {
  const Tensor x = floats({1, 1, 5}, {1, 5, 2, 4, 3});
  const std::vector<Attribute> window = {Attribute::of("kernel_shape", Ints{2}), Attribute::of("strides", Ints{2}),
                                         Attribute::of("ceil_mode", 1)};
  EXPECT_EQ(run("MaxPool", 22, {x}, window), (std::vector<float>{5, 4, 3}));
  EXPECT_EQ(run("AveragePool", 22, {x}, window), (std::vector<float>{3, 3, 3}));
  std::vector<Attribute> padded = window;
  padded.push_back(Attribute::of("pads", Ints{0, 1}));
  EXPECT_EQ(infer("MaxPool", 22, {image({1, 1, 5})}, padded).to_string(), "tensor(float)[1,1,3]");
}

TEST(Pool, PadsCountWhereAsked) {
  const Tensor x = floats({1, 1, 2}, {2, 4});
  std::vector<Attribute> window = {Attribute::of("kernel_shape", Ints{2}), Attribute::of("pads", Ints{1, 1})};
  EXPECT_EQ(run("AveragePool", 7, {x}, window), (std::vector<float>{2, 3, 4}));
  window.push_back(Attribute::of("count_include_pad", 1));
  EXPECT_EQ(run("AveragePool", 7, {x}, window), (std::vector<float>{1, 3, 2}));
}

TEST(Pool, GlobalFormsTakeTheWholePlane) {
  const Tensor x = floats({1, 2, 2}, {3, -4, 6, 8});
  EXPECT_EQ(run("GlobalMaxPool", 1, {x}, {}), (std::vector<float>{3, 8}));
  EXPECT_EQ(run("GlobalAveragePool", 1, {x}, {}), (std::vector<float>{-0.5f, 7}));
  EXPECT_EQ(run("GlobalLpPool", 2, {x}, {}), (std::vector<float>{5, 10}));
}

TEST(Dropout, IsTheIdentityUnlessTraining) {
  const Tensor x = floats({4}, {1, 2, 3, 4}), ratio = floats({}, {0.5f});
  EXPECT_EQ(run("Dropout", 7, {x}, {}), (std::vector<float>{1, 2, 3, 4}));
  const AnyValue training(Tensor::scalar(ElementType::kBool, true));
  for (float y : run("Dropout", 13, {x, ratio, training}, {Attribute::of("seed", 1)})) {
    EXPECT_TRUE(y == 0 || y == 2 || y == 4 || y == 6 || y == 8) << y;
  }
  const auto once = run("Dropout", 13, {x, ratio, training}, {Attribute::of("seed", 1)});
  EXPECT_EQ(run("Dropout", 13, {x, ratio, training}, {Attribute::of("seed", 1)}), once);
}

}  // namespace
}  // namespace treadle
