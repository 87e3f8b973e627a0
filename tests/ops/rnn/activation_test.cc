#include "ops/rnn/activation.h"

#include <gtest/gtest.h>

namespace treadle::rnn {
namespace {

using ir::Attribute;
using kernels::ElementwiseOp;

ir::Attributes attributes(std::vector<std::string> names, std::vector<float> alphas = {},
                          std::vector<float> betas = {}) {
  ir::Attributes list;
  list.set(Attribute::of("activations", std::move(names)));
  if (!alphas.empty()) list.set(Attribute::of("activation_alpha", std::move(alphas)));
  if (!betas.empty()) list.set(Attribute::of("activation_beta", std::move(betas)));
  return list;
}

TEST(Activations, DefaultsRepeatForEachDirection) {
  const auto list = read_activations({}, 2, {"Sigmoid", "Tanh"});
  ASSERT_TRUE(list.ok());
  ASSERT_EQ(list->size(), 4u);
  EXPECT_EQ((*list)[2].op, ElementwiseOp::kSigmoid);
  EXPECT_EQ((*list)[3].op, ElementwiseOp::kTanh);
}

TEST(Activations, OnlyFunctionsThatHaveAParameterTakeOne) {
  const auto list = read_activations(attributes({"RELU", "leakyrelu", "HardSigmoid", "Elu"}, {0.25f, 0.75f}, {0.125f}),
                                     2, {"Sigmoid", "Tanh"});
  ASSERT_TRUE(list.ok());
  EXPECT_EQ((*list)[1].alpha, 0.25f);
  EXPECT_EQ((*list)[2].alpha, 0.75f);
  EXPECT_EQ((*list)[2].beta, 0.125f);
  EXPECT_EQ((*list)[3].alpha, 1.0f);  // Elu's own: the list has run out
}

TEST(Activations, SurplusNamesAreIgnored) {
  const auto list = read_activations(attributes({"Relu", "no such function"}), 1, {"Tanh"});
  ASSERT_TRUE(list.ok());
  EXPECT_EQ(list->size(), 1u);
}

TEST(Activations, ThresholdedReluIsTheRecurrentOne) {
  const auto list = read_activations(attributes({"ThresholdedRelu"}), 1, {"Tanh"});
  ASSERT_TRUE(list.ok());
  EXPECT_EQ((*list)[0].op, ElementwiseOp::kThresholdedReluEqual);
}

TEST(Activations, ErrorsNameTheFunction) {
  EXPECT_NE(read_activations(attributes({"ScaledTanh"}, {1.0f}), 1, {"Tanh"}).error().message().find("ScaledTanh"),
            std::string::npos);
  EXPECT_NE(read_activations(attributes({"Gelu"}), 1, {"Tanh"}).error().message().find("'Gelu'"), std::string::npos);
  EXPECT_FALSE(read_activations(attributes({"Tanh"}), 2, {"Tanh"}).ok());
}

TEST(Activations, SurviveTheIterationThroughAttributes) {
  const auto list = read_activations(attributes({"Affine", "Softsign"}, {0.5f}, {2.0f}), 1, {"Sigmoid", "Tanh"});
  ASSERT_TRUE(list.ok());
  ir::Attributes carried;
  for (ir::Attribute& a : to_attributes(*list)) carried.set(std::move(a));
  const auto back = from_attributes(carried);
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0].op, ElementwiseOp::kAffine);
  EXPECT_EQ(back[0].alpha, 0.5f);
  EXPECT_EQ(back[0].beta, 2.0f);
  EXPECT_EQ(back[1].op, ElementwiseOp::kSoftsign);
}

}  // namespace
}  // namespace treadle::rnn
