// TreeEnsemble, TreeEnsembleRegressor, TreeEnsembleClassifier (ops/ml/forest.h): nodes and weights are tables.

#include <limits>

#include "c/predict.h"
#include "op/op_def.h"
#include "ops/ml/ensembles.h"

namespace treadle::c {

namespace {

using ml::PostTransform;

std::string type_of_trees(Functions& f, ElementType type) {
  return f.get(fmt::format("trees_{}", suffix(type)), [&](Text& text, const std::string& name) {
    text.line(
        "/* A row goes to node left[k] if its feature is at most the threshold, else to the node behind it; bit 31");
    text.line("   of `feature` says that a NaN goes left. Leaves have `left` before themselves. */");
    text.line("typedef struct {{ const {} *threshold; const uint32_t *feature, *left, *leaf; }} {};", stored(type),
              name);
  });
}

// f(trees, node, x): the leaf that row x reaches from a node on.
std::string walk_function(Functions& f, ElementType type) {
  const std::string trees = type_of_trees(f, type);
  return f.get(fmt::format("leaf_of_{}", suffix(type)), [&](Text& text, const std::string& name) {
    text.open("static uint32_t {}(const {} *trees, uint32_t k, const {} *x)", name, trees, stored(type));
    text.open("while (trees->left[k] != k - 1)");
    text.line("const uint32_t feature = trees->feature[k];");
    text.line("const {} v = x[feature & 0x7fffffffu];", stored(type));
    text.line("const int left = v <= trees->threshold[k] || (v != v && feature >> 31 != 0);");
    text.line("k = trees->left[k] + (left ? 0u : 1u);");
    text.close();
    text.line("return trees->leaf[k];");
    text.close();
  });
}

template <class T>
std::string declare_trees(Prediction& p, const ml::Forest& forest, ElementType type) {
  Writer& w = p.writer();
  std::vector<T> thresholds;
  std::vector<uint32_t> features, left, leaves;
  for (const auto& node : forest.nodes<T>()) {
    thresholds.push_back(node.threshold);
    features.push_back(node.feature), left.push_back(node.left), leaves.push_back(node.leaf);
  }
  const auto numbers = [&](const char* name, const std::vector<uint32_t>& list) {
    return w.table(name, ElementType::kUint32, list.data(), list.size());
  };
  const std::string name = w.variable("trees");
  p.text().line("static const {} {} = {{{}, {}, {}, {}}};", type_of_trees(w.functions(), type), name,
                w.table("threshold", type, thresholds.data(), thresholds.size()), numbers("feature", features),
                numbers("left", left), numbers("leaf", leaves));
  return name;
}

// The scores of a row: what the leaves of all trees say, in the order of the trees.
void write_forest_scores(Prediction& p, const ml::Forest& forest) {
  Writer& w = p.writer();
  Text& text = p.text();
  const bool extremes = forest.aggregate == ml::Aggregate::kMin || forest.aggregate == ml::Aggregate::kMax;
  const ElementType type = p.type() == ElementType::kFloat ? ElementType::kFloat : ElementType::kDouble;
  const std::string trees =
      type == ElementType::kFloat ? declare_trees<float>(p, forest, type) : declare_trees<double>(p, forest, type);
  std::string row = "x";
  if (p.type() != type) {
    row = fmt::format("(double *)(void *){}", w.scratch(static_cast<size_t>(p.features()) * sizeof(double)));
    text.line("for (ptrdiff_t j = 0; j < {}; ++j) ({})[j] = {};", p.features(), row, p.feature("j"));
  }
  std::vector<uint32_t> roots, targets;
  std::vector<double> values;
  for (const auto& tree : forest.trees()) roots.push_back(tree.root);
  for (const ml::Weight& weight : forest.weights()) targets.push_back(weight.target), values.push_back(weight.value);
  if (values.empty()) targets.push_back(0), values.push_back(0);
  const auto numbers = [&](const char* name, std::span<const uint32_t> list) {
    return w.table(name, ElementType::kUint32, list.data(), list.size());
  };
  text.line("for (ptrdiff_t i = 0; i < {}; ++i) s[i] = {};", forest.targets(), extremes ? "0.0 / 0.0" : "0");
  if (!roots.empty()) {
    const std::string first = numbers("first_weight", forest.first_weight()), target = numbers("target", targets),
                      value = w.table("values", ElementType::kDouble, values.data(), values.size());
    text.open("for (ptrdiff_t i = 0; i < {}; ++i)", roots.size());
    text.line("const uint32_t at = {}(&{}, {}[i], {});", walk_function(w.functions(), type), trees,
              numbers("roots", roots), row);
    text.open("for (uint32_t k = {0}[at]; k < {0}[at + 1]; ++k)", first);
    text.line("double *const to = s + {}[k];", target);
    if (extremes) {
      text.line("if (*to != *to || {0}[k] {1} *to) *to = {0}[k];", value,
                forest.aggregate == ml::Aggregate::kMin ? "<" : ">");
    } else {
      text.line("*to = *to + {}[k];", value);
    }
    text.close();
    text.close();
  } else {
    text.line("(void){};", trees);
  }
  if (extremes) text.line("for (ptrdiff_t i = 0; i < {}; ++i) s[i] = s[i] != s[i] ? 0 : s[i];", forest.targets());
  if (forest.aggregate == ml::Aggregate::kAverage && roots.size() > 1) {
    text.line("for (ptrdiff_t i = 0; i < {}; ++i) s[i] = s[i] / {}.0;", forest.targets(), roots.size());
  }
  if (!forest.base.empty()) {
    text.line("for (ptrdiff_t i = 0; i < {}; ++i) s[i] = s[i] + {}[i];", forest.targets(),
              w.table("base", ElementType::kDouble, forest.base.data(), forest.base.size()));
  }
}

template <class Model>
void write_regressor(const Call& call, std::string& why) {
  const auto& model = call.node.parsed_as<Model>();
  Prediction p(call, model.columns);
  p.open();
  write_forest_scores(p, model.forest);
  if (!p.transform(model.post, model.columns)) why = kTransformOfLibrary;
  p.store_scores(0, model.columns);
  p.close();
}

void write_classifier(const Call& call, std::string& why) {
  const auto& model = call.node.parsed_as<ml::TreeClassification>();
  Prediction p(call, model.columns);
  p.open();
  write_forest_scores(p, model.forest);
  if (model.one_score) p.spread(model.spreads_probability());
  p.choose_label(model.columns);
  if (!p.transform(model.post, model.columns)) why = kTransformOfLibrary;
  p.store_scores(1, model.columns);
  p.store_label(model.labels);
  p.close();
}

constexpr std::string_view kDomain = "ai.onnx.ml";
constexpr OperatorRow kRows[] = {
    {"TreeEnsemble", kDomain, write_regressor<ml::TreeScores>},
    {"TreeEnsembleRegressor", kDomain, write_regressor<ml::TreeRegression>},
    {"TreeEnsembleClassifier", kDomain, write_classifier},
};

}  // namespace

std::span<const OperatorRow> tree_operators() {
  return kRows;
}

}  // namespace treadle::c
