#include <gtest/gtest.h>

#include <cmath>

#include "op/registry.h"
#include "opt/passes.h"

namespace treadle::opt {
namespace {

// Graphs of nodes on values of [1, 2, 4, 4].
class ConvolutionTest : public ::testing::Test {
 protected:
  ConvolutionTest() {
    x_ = graph_.new_value("x", image(), &graph_.top());
    other_ = graph_.new_value("other", image(), &graph_.top());
    graph_.top().inputs = {x_, other_};
  }

  static Type image(ElementType type = ElementType::kFloat) {
    return Type::tensor(type, {Dim(1), Dim(2), Dim(4), Dim(4)});
  }

  ir::Value* floats(Dims dims, std::vector<float> values) {
    Tensor t = Tensor::allocate(ElementType::kFloat, std::move(dims)).value();
    std::copy(values.begin(), values.end(), t.mutable_data<float>());
    return graph_.new_constant("c" + std::to_string(count_++), std::move(t));
  }

  ir::Value* node(const char* op, std::vector<ir::Value*> inputs, int version = 22) {
    const OpDef& def = require_op(op);
    ir::Node* made = graph_.new_node(&graph_.top(), &def, def.version_for(version), op + std::to_string(count_++));
    for (const AttributeDef& a : made->version->attributes) {
      if (a.has_default()) made->attributes.set(a.default_value);
    }
    for (ir::Value* v : inputs) graph_.add_input(made, v);
    return graph_.add_output(made, "v" + std::to_string(count_++), image());
  }

  // 1x1, each output channel twice its input channel.
  ir::Value* conv(ir::Value* x) { return node("Conv", {x, floats({2, 2, 1, 1}, {2, 0, 0, 2})}); }
  ir::Value* conv_with_bias(ir::Value* x) {
    return node("Conv", {x, floats({2, 2, 1, 1}, {2, 0, 0, 2}), floats({2}, {5, 7})});
  }

  void results(std::vector<ir::Value*> values) { graph_.top().outputs = std::move(values); }

  // The names of the operators that remain after `pass`.
  std::string after(void (*pass)(ir::Graph&, Remarks*)) {
    EXPECT_TRUE(ir::verify(graph_).ok());
    pass(graph_, nullptr);
    remove_dead_nodes(graph_);
    EXPECT_TRUE(ir::verify(graph_).ok());
    std::string names;
    for (const auto& n : graph_.top().nodes) names += (names.empty() ? "" : " ") + n->op->name;
    return names;
  }

  const ir::Node& last() const { return *graph_.top().nodes.back(); }

  ir::Graph graph_;
  ir::Value* x_;
  ir::Value* other_;
  int count_ = 0;
};

// A convolution that a rewrite replaced stays beside its replacement until dead nodes are removed.
TEST_F(ConvolutionTest, OneConvolutionThatIsReadKeepsChannelsSecond) {
  const Type large = Type::tensor(ElementType::kFloat, {Dim(1), Dim(16), Dim(112), Dim(112)});
  x_->type = large;
  const auto depthwise = [&] {
    ir::Value* y = node("Conv", {x_, floats({16, 1, 7, 7}, std::vector<float>(784, 1))});
    y->type = large;
    y->producer->attributes.set(ir::Attribute::of("group", 16));
    y->producer->attributes.set(ir::Attribute::of("pads", std::vector<int64_t>(4, 3)));
    return y;
  };
  depthwise();
  results({depthwise()});
  EXPECT_EQ(after(lay_channels_last), "Conv");
}

TEST_F(ConvolutionTest, TakesInWhatFollows) {
  results({node("Relu", {node("Add", {other_, conv_with_bias(x_)})})});
  EXPECT_EQ(after(fuse_convolutions), "FusedConv");
  ASSERT_EQ(last().inputs.size(), 4u);
  EXPECT_EQ(last().inputs[0], x_);
  EXPECT_EQ(last().inputs[3], other_);
  EXPECT_EQ(last().attributes.get_float("low", NAN), 0.0f);
  EXPECT_FALSE(last().attributes.has("high"));
}

TEST_F(ConvolutionTest, AConstantPerChannelIsABias) {
  results({node("Add", {conv(x_), floats({1, 2, 1, 1}, {3, 4})})});
  EXPECT_EQ(after(fuse_convolutions), "FusedConv");
  ASSERT_EQ(last().inputs.size(), 3u);
  EXPECT_EQ(last().inputs[2]->constant.dims(), Dims({2}));
  EXPECT_EQ(last().inputs[2]->constant.data<float>()[1], 4.0f);
}

TEST_F(ConvolutionTest, ClipWithConstantBounds) {
  results({node("Clip", {conv(x_), floats({}, {-1}), floats({}, {6})}, 13)});
  EXPECT_EQ(after(fuse_convolutions), "FusedConv");
  EXPECT_EQ(last().attributes.get_float("low"), -1.0f);
  EXPECT_EQ(last().attributes.get_float("high"), 6.0f);
}

TEST_F(ConvolutionTest, OldClipHasItsBoundsInAttributes) {
  ir::Value* clipped = node("Clip", {conv(x_)}, 6);
  clipped->producer->attributes.set(ir::Attribute::of("min", 0.5f));
  results({clipped});
  EXPECT_EQ(after(fuse_convolutions), "FusedConv");
  EXPECT_EQ(last().attributes.get_float("low"), 0.5f);
}

TEST_F(ConvolutionTest, NothingFollowsAClamp) {
  results({node("Add", {node("Relu", {conv(x_)}), other_})});
  EXPECT_EQ(after(fuse_convolutions), "FusedConv Add");
}

TEST_F(ConvolutionTest, ValuesThatOthersReadStay) {
  ir::Value* sums = conv(x_);
  results({node("Relu", {sums}), sums});
  EXPECT_EQ(after(fuse_convolutions), "Conv Relu");
}

TEST_F(ConvolutionTest, AnAddendMustHaveTheSizesOfTheResult) {
  other_->type = Type::tensor(ElementType::kFloat, {Dim(1), Dim(2), Dim(1), Dim(4)});
  results({node("Add", {conv(x_), other_})});
  EXPECT_EQ(after(fuse_convolutions), "Conv Add");
}

TEST_F(ConvolutionTest, AddendsOfHalfFloatsAreRoundedFirst) {
  ir::Value* sums = conv(x_);
  sums->type = other_->type = image(ElementType::kFloat16);
  results({node("Add", {sums, other_})});
  EXPECT_EQ(after(fuse_convolutions), "Conv Add");
}

TEST_F(ConvolutionTest, OneOfTwoConvolutionsTakesTheOther) {
  results({node("Relu", {node("Add", {conv(x_), conv(other_)})})});
  EXPECT_EQ(after(fuse_convolutions), "Conv FusedConv");
  EXPECT_EQ(last().inputs[3], graph_.top().nodes[0]->outputs[0]);
}

TEST_F(ConvolutionTest, BatchNormalizationGoesIntoTheWeights) {
  ir::Value* normal = node("BatchNormalization", {conv_with_bias(x_), floats({2}, {3, 1}), floats({2}, {10, 20}),
                                                  floats({2}, {1, 2}), floats({2}, {4, 1})});
  normal->producer->attributes.set(ir::Attribute::of("epsilon", 0.0f));
  results({node("Relu", {normal})});
  EXPECT_EQ(after(fold_batch_normalization), "Conv Relu");
  const ir::Node& folded = *graph_.top().nodes[0];
  ASSERT_EQ(folded.inputs.size(), 3u);
  const float* w = folded.inputs[1]->constant.data<float>();
  EXPECT_EQ(w[0], 3.0f);  // 2 * 3 / sqrt(4)
  EXPECT_EQ(w[3], 2.0f);
  EXPECT_EQ(folded.inputs[2]->constant.data<float>()[0], 16.0f);  // (5 - 1) * 3 / 2 + 10
  EXPECT_EQ(folded.inputs[2]->constant.data<float>()[1], 25.0f);
}

TEST_F(ConvolutionTest, StatisticsOfTheBatchAreNotFolded) {
  ir::Value* normal = node("BatchNormalization", {conv(x_), floats({2}, {3, 1}), floats({2}, {10, 20}),
                                                  floats({2}, {1, 2}), floats({2}, {4, 1})});
  normal->producer->attributes.set(ir::Attribute::of("training_mode", 1));
  results({normal});
  EXPECT_EQ(after(fold_batch_normalization), "Conv BatchNormalization");
}

}  // namespace
}  // namespace treadle::opt
