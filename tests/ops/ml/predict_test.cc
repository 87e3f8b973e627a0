#include <gtest/gtest.h>

#include <cmath>

#include "op/registry.h"
#include "reference/interpreter.h"

namespace treadle {
namespace {

using ir::Attribute;

Result<std::vector<AnyValue>> run(const char* op, int version, std::vector<AnyValue> inputs, size_t outputs,
                                  std::vector<Attribute> attributes) {
  ir::NodeInfo node;
  node.op = &require_op(op, "ai.onnx.ml");
  node.version = node.op->version_for(version);
  node.input_count = static_cast<uint32_t>(inputs.size());
  node.output_count = static_cast<uint32_t>(outputs);
  for (const AttributeDef& a : node.version->attributes) {
    if (a.has_default()) node.attributes.set(a.default_value);
  }
  for (Attribute& a : attributes) node.attributes.set(std::move(a));
  if (Status status = parse_attributes(node); !status.ok()) return status;
  return reference::run_node(node, inputs);
}

Tensor floats(Dims dims, std::vector<float> values) {
  return Tensor::of_float(values).reshaped(std::move(dims));
}

template <class T>
std::vector<T> contents(const Result<std::vector<AnyValue>>& values, size_t i) {
  if (!values.ok()) {
    ADD_FAILURE() << values.error().to_string();
    return {};
  }
  const auto span = (*values)[i].tensor().span<T>();
  return {span.begin(), span.end()};
}

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;
using Strings = std::vector<std::string>;
using Texts = std::vector<String>;

// One tree: x[0] <= 1.5 ? 0.25 : (x[1] < 0 ? 0.5 : 0.75), a missing x[0] goes left.
std::vector<Attribute> tree() {
  return {Attribute::of("nodes_treeids", Ints{0, 0, 0, 0, 0}),
          Attribute::of("nodes_nodeids", Ints{0, 1, 2, 3, 4}),
          Attribute::of("nodes_featureids", Ints{0, 0, 1, 0, 0}),
          Attribute::of("nodes_modes", Strings{"BRANCH_LEQ", "LEAF", "BRANCH_LT", "LEAF", "LEAF"}),
          Attribute::of("nodes_values", Floats{1.5f, 0, 0, 0, 0}),
          Attribute::of("nodes_truenodeids", Ints{1, 0, 3, 0, 0}),
          Attribute::of("nodes_falsenodeids", Ints{2, 0, 4, 0, 0}),
          Attribute::of("nodes_missing_value_tracks_true", Ints{1, 0, 0, 0, 0})};
}

TEST(Trees, RegressorFollowsItsBranches) {
  auto attributes = tree();
  attributes.push_back(Attribute::of("target_treeids", Ints{0, 0, 0}));
  attributes.push_back(Attribute::of("target_nodeids", Ints{1, 3, 4}));
  attributes.push_back(Attribute::of("target_ids", Ints{0, 0, 0}));
  attributes.push_back(Attribute::of("target_weights", Floats{0.25f, 0.5f, 0.75f}));
  attributes.push_back(Attribute::of("n_targets", 1));
  attributes.push_back(Attribute::of("base_values", Floats{1}));
  const AnyValue x(floats({4, 2}, {1.5f, 9, 2, -1, 2, 0, NAN, 0}));
  EXPECT_EQ(contents<float>(run("TreeEnsembleRegressor", 1, {x}, 1, attributes), 0),
            (Floats{1.25f, 1.5f, 1.75f, 1.25f}));
  const auto narrow = run("TreeEnsembleRegressor", 1, {AnyValue(floats({1, 1}, {0}))}, 1, attributes);
  ASSERT_FALSE(narrow.ok());
  EXPECT_NE(narrow.error().message().find("at least 2 features"), std::string::npos);
}

TEST(Trees, ACircleIsAnError) {
  auto attributes = tree();
  attributes[6] = Attribute::of("nodes_falsenodeids", Ints{2, 0, 1, 0, 0});
  attributes.push_back(Attribute::of("n_targets", 1));
  const auto out = run("TreeEnsembleRegressor", 1, {AnyValue(floats({1, 2}, {0, 0}))}, 1, attributes);
  ASSERT_FALSE(out.ok());
  EXPECT_NE(out.error().message().find("two parents"), std::string::npos);
}

TEST(Trees, ClassifierWithOneScoreMakesTwoColumns) {
  auto attributes = tree();
  attributes.push_back(Attribute::of("class_treeids", Ints{0, 0, 0}));
  attributes.push_back(Attribute::of("class_nodeids", Ints{1, 3, 4}));
  attributes.push_back(Attribute::of("class_ids", Ints{0, 0, 0}));
  attributes.push_back(Attribute::of("class_weights", Floats{0.25f, 0.5f, 0.75f}));
  attributes.push_back(Attribute::of("classlabels_strings", Strings{"no", "yes"}));
  const AnyValue x(floats({2, 2}, {1, 0, 2, 0}));
  const auto out = run("TreeEnsembleClassifier", 1, {x}, 2, attributes);
  EXPECT_EQ(contents<String>(out, 0), (Texts{"no", "yes"}));
  EXPECT_EQ(contents<float>(out, 1), (Floats{0.75f, 0.25f, 0.25f, 0.75f}));
}

TEST(Linear, ClassifierChoosesTheLargestScore) {
  const AnyValue x(floats({2, 2}, {1, 0, 0, 1}));
  const auto out =
      run("LinearClassifier", 1, {x}, 2,
          {Attribute::of("coefficients", Floats{1, 2, 3, 1, 0, 0}), Attribute::of("intercepts", Floats{0, 0, 0.5f}),
           Attribute::of("classlabels_ints", Ints{7, 8, 9})});
  EXPECT_EQ(contents<int64_t>(out, 0), (Ints{8, 7}));
  EXPECT_EQ(contents<float>(out, 1), (Floats{1, 3, 0.5f, 2, 1, 0.5f}));
}

TEST(Svm, TheFirstClassWinsAPositiveDecision) {
  const AnyValue x(floats({2, 1}, {2, -2}));
  const auto out = run("SVMClassifier", 1, {x}, 2,
                       {Attribute::of("coefficients", Floats{1, -1}), Attribute::of("support_vectors", Floats{1, -1}),
                        Attribute::of("vectors_per_class", Ints{1, 1}), Attribute::of("rho", Floats{0}),
                        Attribute::of("classlabels_ints", Ints{4, 5})});
  EXPECT_EQ(contents<int64_t>(out, 0), (Ints{4, 5}));
}

TEST(Features, TablesByColumn) {
  const AnyValue x(floats({2, 2}, {1, 2, 3, -4}));
  EXPECT_EQ(
      contents<float>(
          run("Scaler", 1, {x}, 1, {Attribute::of("offset", Floats{1, 0}), Attribute::of("scale", Floats{2})}), 0),
      (Floats{0, 4, 4, -8}));
  EXPECT_EQ(contents<float>(run("Normalizer", 1, {x}, 1, {Attribute::of("norm", std::string("L1"))}), 0),
            (Floats{1.0f / 3, 2.0f / 3, 3.0f / 7, -4.0f / 7}));
  EXPECT_EQ(contents<float>(run("Binarizer", 1, {x}, 1, {Attribute::of("threshold", 1.5f)}), 0), (Floats{0, 1, 1, 0}));
  EXPECT_EQ(contents<float>(run("ArrayFeatureExtractor", 1, {x, AnyValue(Tensor::of_int64(Ints{1}))}, 1, {}), 0),
            (Floats{2, -4}));
  EXPECT_FALSE(run("ArrayFeatureExtractor", 1, {x, AnyValue(Tensor::of_int64(Ints{2}))}, 1, {}).ok());
}

TEST(Labels, UnknownKeysTakeTheDefault) {
  const AnyValue x(Tensor::of_int64(Ints{1, 2, 9}));
  EXPECT_EQ(contents<String>(
                run("LabelEncoder", 2, {x}, 1,
                    {Attribute::of("keys_int64s", Ints{1, 2}), Attribute::of("values_strings", Strings{"a", "b"})}),
                0),
            (Texts{"a", "b", "_Unused"}));
}

TEST(ZipMap, OneMapPerRow) {
  const auto out = run("ZipMap", 1, {AnyValue(floats({2, 2}, {1, 2, 3, 4}))}, 1,
                       {Attribute::of("classlabels_strings", Strings{"a", "b"})});
  ASSERT_TRUE(out.ok()) << out.error().to_string();
  ASSERT_EQ((*out)[0].sequence().size(), 2u);
  const Map& second = (*out)[0].sequence()[1].map();
  EXPECT_EQ(second.keys.data<String>()[1], "b");
  EXPECT_EQ(second.values.data<float>()[1], 4);
}

}  // namespace
}  // namespace treadle
