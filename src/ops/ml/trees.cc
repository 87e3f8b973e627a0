// TreeEnsembleRegressor and TreeEnsembleClassifier: every tree leads a row to a leaf, the leaf's weights are summed up
// (averaged, ...) by target or class.

#include <cmath>
#include <limits>
#include <unordered_map>

#include "ops/ml/predict.h"

namespace treadle::ml {

namespace {

enum class Mode : uint8_t { kLessEqual, kLess, kGreaterEqual, kGreater, kEqual, kNotEqual, kLeaf };
enum class Aggregate : uint8_t { kSum, kAverage, kMin, kMax };

// Children of an inner node; a leaf's weights [yes, no).
struct TreeNode {
  double value = 0;
  uint32_t feature = 0, yes = 0, no = 0;
  Mode mode = Mode::kLeaf;
  bool missing_is_yes = false;
};
struct Weight {
  uint32_t target;
  double value;
};

Result<Mode> read_mode(std::string_view name) {
  constexpr std::pair<std::string_view, Mode> kNames[] = {{"BRANCH_LEQ", Mode::kLessEqual},
                                                          {"BRANCH_LT", Mode::kLess},
                                                          {"BRANCH_GTE", Mode::kGreaterEqual},
                                                          {"BRANCH_GT", Mode::kGreater},
                                                          {"BRANCH_EQ", Mode::kEqual},
                                                          {"BRANCH_NEQ", Mode::kNotEqual},
                                                          {"LEAF", Mode::kLeaf}};
  for (const auto& [known, mode] : kNames) {
    if (name == known) return mode;
  }
  return error(Code::kInvalidModel, "attribute nodes_modes holds '{}', expected BRANCH_* or LEAF", name);
}

// Floats of an attribute, or doubles of the attribute `name`_as_tensor.
std::vector<double> read_numbers(const ir::Attributes& attributes, const std::string& name) {
  std::vector<double> numbers;
  if (const ir::Attribute* tensor = attributes.find(name + "_as_tensor")) {
    const Tensor& t = tensor->as_tensor();
    for (int64_t i = 0; i < t.element_count(); ++i) numbers.push_back(t.double_at(i));
  } else {
    for (float f : attributes.get_floats(name)) numbers.push_back(static_cast<double>(f));
  }
  return numbers;
}

Result<Aggregate> read_aggregate(const ir::Attributes& attributes) {
  const std::string_view name = attributes.get_string("aggregate_function", "SUM");
  if (name == "SUM") return Aggregate::kSum;
  if (name == "AVERAGE") return Aggregate::kAverage;
  if (name == "MIN") return Aggregate::kMin;
  if (name == "MAX") return Aggregate::kMax;
  return error(Code::kInvalidModel, "attribute aggregate_function is '{}', expected SUM, AVERAGE, MIN or MAX", name);
}

struct NodeKey {
  int64_t tree, node;
  bool operator==(const NodeKey&) const = default;
};
struct NodeHash {
  size_t operator()(const NodeKey& k) const {
    return static_cast<size_t>(k.tree) * 0x9e3779b97f4a7c15u + static_cast<size_t>(k.node);
  }
};
using NodeIndex = std::unordered_map<NodeKey, uint32_t, NodeHash>;

struct Forest {
  std::vector<TreeNode> nodes;
  std::vector<uint32_t> roots;
  std::vector<Weight> weights;
  std::vector<double> base;
  Aggregate aggregate = Aggregate::kSum;
  PostTransform post = PostTransform::kNone;
  size_t raw = 1, columns = 1;
  int64_t least_features = 0;

  Status read_nodes(const ir::Attributes& attributes, NodeIndex& index);
  Status link(const ir::Attributes& attributes, const NodeIndex& index);
  // `prefix`: "target" or "class".
  Status read_weights(const ir::Attributes& attributes, const std::string& prefix, const NodeIndex& index);
  Status read(const ir::Attributes& attributes, const std::string& prefix, size_t targets);
  const TreeNode& leaf(uint32_t root, const double* x) const;
  void evaluate(const double* x, int64_t features, double* scores) const;
};

Status check_length(const char* name, size_t found, size_t expected) {
  if (found == expected) return {};
  return error(Code::kInvalidModel, "attribute {} has {} entries, expected {}", name, found, expected);
}

Status Forest::read_nodes(const ir::Attributes& attributes, NodeIndex& index) {
  const auto trees = attributes.get_ints("nodes_treeids"), ids = attributes.get_ints("nodes_nodeids");
  const auto features = attributes.get_ints("nodes_featureids");
  const auto modes = attributes.get_strings("nodes_modes");
  const auto missing = attributes.get_ints("nodes_missing_value_tracks_true");
  const std::vector<double> values = read_numbers(attributes, "nodes_values");
  TREADLE_TRY(check_length("nodes_nodeids", ids.size(), trees.size()));
  TREADLE_TRY(check_length("nodes_featureids", features.size(), trees.size()));
  TREADLE_TRY(check_length("nodes_modes", modes.size(), trees.size()));
  TREADLE_TRY(check_length("nodes_values", values.size(), trees.size()));
  if (!missing.empty()) {
    TREADLE_TRY(check_length("nodes_missing_value_tracks_true", missing.size(), trees.size()));
  }
  nodes.resize(trees.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    TREADLE_ASSIGN(nodes[i].mode, read_mode(modes[i]));
    nodes[i].value = values[i];
    nodes[i].missing_is_yes = !missing.empty() && missing[i] != 0;
    if (nodes[i].mode != Mode::kLeaf) {
      if (features[i] < 0 || features[i] > INT32_MAX) {
        return error(Code::kInvalidModel, "attribute nodes_featureids holds {}", features[i]);
      }
      nodes[i].feature = static_cast<uint32_t>(features[i]);
      least_features = std::max(least_features, features[i] + 1);
    }
    if (!index.emplace(NodeKey{trees[i], ids[i]}, static_cast<uint32_t>(i)).second) {
      return error(Code::kInvalidModel, "tree {} has two nodes {}", trees[i], ids[i]);
    }
  }
  return {};
}

// Every node has at most one parent and roots have none, so that no path runs in a circle.
Status Forest::link(const ir::Attributes& attributes, const NodeIndex& index) {
  const auto trees = attributes.get_ints("nodes_treeids");
  const auto yes = attributes.get_ints("nodes_truenodeids"), no = attributes.get_ints("nodes_falsenodeids");
  TREADLE_TRY(check_length("nodes_truenodeids", yes.size(), trees.size()));
  TREADLE_TRY(check_length("nodes_falsenodeids", no.size(), trees.size()));
  std::vector<uint8_t> has_parent(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].mode == Mode::kLeaf) continue;
    for (const bool side : {true, false}) {
      const int64_t id = side ? yes[i] : no[i];
      const auto child = index.find({trees[i], id});
      if (child == index.end()) return error(Code::kInvalidModel, "tree {} has no node {}", trees[i], id);
      if (has_parent[child->second]++) {
        return error(Code::kInvalidModel, "node {} of tree {} has two parents", id, trees[i]);
      }
      (side ? nodes[i].yes : nodes[i].no) = child->second;
    }
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!has_parent[i]) roots.push_back(static_cast<uint32_t>(i));
  }
  return {};
}

Status Forest::read_weights(const ir::Attributes& attributes, const std::string& prefix, const NodeIndex& index) {
  const auto trees = attributes.get_ints(prefix + "_treeids"), ids = attributes.get_ints(prefix + "_nodeids");
  const auto targets = attributes.get_ints(prefix + "_ids");
  const std::vector<double> values = read_numbers(attributes, prefix + "_weights");
  if (ids.size() != trees.size() || targets.size() != trees.size() || values.size() != trees.size()) {
    return error(Code::kInvalidModel, "attributes {0}_treeids, {0}_nodeids, {0}_ids and {0}_weights differ in length",
                 prefix);
  }
  std::vector<std::vector<Weight>> by_node(nodes.size());
  for (size_t i = 0; i < trees.size(); ++i) {
    const auto node = index.find({trees[i], ids[i]});
    if (node == index.end()) return error(Code::kInvalidModel, "tree {} has no node {}", trees[i], ids[i]);
    if (targets[i] < 0 || targets[i] >= static_cast<int64_t>(raw)) {
      return error(Code::kInvalidModel, "attribute {}_ids holds {}, expected 0 to {}", prefix, targets[i], raw - 1);
    }
    by_node[node->second].push_back({static_cast<uint32_t>(targets[i]), values[i]});
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].mode != Mode::kLeaf) continue;
    nodes[i].yes = static_cast<uint32_t>(weights.size());
    weights.insert(weights.end(), by_node[i].begin(), by_node[i].end());
    nodes[i].no = static_cast<uint32_t>(weights.size());
  }
  return {};
}

Status Forest::read(const ir::Attributes& attributes, const std::string& prefix, size_t targets) {
  NodeIndex index;
  raw = columns = targets;
  TREADLE_ASSIGN(aggregate, read_aggregate(attributes));
  TREADLE_ASSIGN(post, read_post_transform(attributes));
  TREADLE_TRY(read_nodes(attributes, index));
  TREADLE_TRY(link(attributes, index));
  TREADLE_TRY(read_weights(attributes, prefix, index));
  base = read_numbers(attributes, "base_values");
  return {};
}

const TreeNode& Forest::leaf(uint32_t root, const double* x) const {
  const TreeNode* node = &nodes[root];
  while (node->mode != Mode::kLeaf) {
    const double v = x[node->feature];
    bool yes = false;
    switch (node->mode) {
      case Mode::kLessEqual:
        yes = v <= node->value;
        break;
      case Mode::kLess:
        yes = v < node->value;
        break;
      case Mode::kGreaterEqual:
        yes = v >= node->value;
        break;
      case Mode::kGreater:
        yes = v > node->value;
        break;
      case Mode::kEqual:
        yes = v == node->value;
        break;
      default:
        yes = v != node->value;
    }
    yes |= node->missing_is_yes && std::isnan(v);
    node = &nodes[yes ? node->yes : node->no];
  }
  return *node;
}

void Forest::evaluate(const double* x, int64_t, double* scores) const {
  const bool extremes = aggregate == Aggregate::kMin || aggregate == Aggregate::kMax;
  std::fill_n(scores, raw, extremes ? std::numeric_limits<double>::quiet_NaN() : 0.0);
  for (uint32_t root : roots) {
    const TreeNode& end = leaf(root, x);
    for (uint32_t w = end.yes; w < end.no; ++w) {
      double& score = scores[weights[w].target];
      const double value = weights[w].value;
      if (!extremes) {
        score += value;
      } else if (std::isnan(score) || (aggregate == Aggregate::kMin ? value < score : value > score)) {
        score = value;
      }
    }
  }
  for (size_t i = 0; i < raw; ++i) {
    if (aggregate == Aggregate::kAverage) scores[i] /= static_cast<double>(std::max<size_t>(1, roots.size()));
    if (extremes && std::isnan(scores[i])) scores[i] = 0;
    if (base.size() == raw) scores[i] += base[i];
  }
}

struct TreeRegression : Forest {
  static int64_t column_count(const ir::Attributes& attributes) { return attributes.get_int("n_targets", 1); }
  static Result<TreeRegression> read(const ir::Attributes& attributes) {
    const int64_t targets = column_count(attributes);
    if (targets < 1 || targets > INT32_MAX) {
      return error(Code::kInvalidModel, "attribute n_targets is {}, expected at least 1", targets);
    }
    TreeRegression m;
    TREADLE_TRY(m.Forest::read(attributes, "target", static_cast<size_t>(targets)));
    return m;
  }
  size_t finish(double* scores) const {
    transform(post, {scores, columns});
    return 0;
  }
};

// Two classes whose leaves name only one: its score alone decides. With weights that are never negative it is a
// probability, otherwise its sign counts.
struct TreeClassification : Forest {
  static constexpr const char* kIntegerLabels = "classlabels_int64s";
  bool one_score = false, probability = true;
  size_t scored = 0;

  static int64_t column_count(const ir::Attributes& attributes) {
    return static_cast<int64_t>(read_labels(attributes, kIntegerLabels).size());
  }
  static Result<TreeClassification> read(const ir::Attributes& attributes) {
    const int64_t classes = column_count(attributes);
    if (classes < 1) return error(Code::kInvalidModel, "no class labels are given");
    TreeClassification m;
    TREADLE_TRY(m.Forest::read(attributes, "class", static_cast<size_t>(classes)));
    m.one_score = classes == 2 && !m.weights.empty();
    for (const Weight& w : m.weights) {
      m.one_score &= w.target == m.weights[0].target;
      m.probability &= w.value >= 0;
    }
    if (m.one_score) {
      m.scored = m.weights[0].target;
      if (m.base.size() == 1) m.base = {m.base[0], m.base[0]};
    }
    return m;
  }
  size_t finish(double* scores) const {
    if (!one_score) {
      const size_t label = largest({scores, columns});
      transform(post, {scores, columns});
      return label;
    }
    const double score = scores[scored];
    const size_t label = score > (probability ? 0.5 : 0.0) ? 1 : 0;
    scores[0] = probability ? 1 - score : -score;
    scores[1] = score;
    if (post == PostTransform::kProbit || (post == PostTransform::kLogistic && !probability)) {
      transform(post, {scores, 2});
    }
    return label;
  }
};

}  // namespace

}  // namespace treadle::ml

TREADLE_OP(TreeEnsembleRegressor, "ai.onnx.ml") {
  op.since(1)
      .in("X", "T")
      .out("Y", "tensor(float)")
      .attr("aggregate_function", "SUM")
      .optional("base_values", ir::AttributeKind::kFloats)
      .optional("n_targets", ir::AttributeKind::kInt)
      .optional("nodes_falsenodeids", ir::AttributeKind::kInts)
      .optional("nodes_featureids", ir::AttributeKind::kInts)
      .optional("nodes_hitrates", ir::AttributeKind::kFloats)
      .optional("nodes_missing_value_tracks_true", ir::AttributeKind::kInts)
      .optional("nodes_modes", ir::AttributeKind::kStrings)
      .optional("nodes_nodeids", ir::AttributeKind::kInts)
      .optional("nodes_treeids", ir::AttributeKind::kInts)
      .optional("nodes_truenodeids", ir::AttributeKind::kInts)
      .optional("nodes_values", ir::AttributeKind::kFloats)
      .attr("post_transform", "NONE")
      .optional("target_ids", ir::AttributeKind::kInts)
      .optional("target_nodeids", ir::AttributeKind::kInts)
      .optional("target_treeids", ir::AttributeKind::kInts)
      .optional("target_weights", ir::AttributeKind::kFloats)
      .type("T", types::kMlNumbers);
  op.since(3)
      .optional("base_values_as_tensor", ir::AttributeKind::kTensor)
      .optional("nodes_hitrates_as_tensor", ir::AttributeKind::kTensor)
      .optional("nodes_values_as_tensor", ir::AttributeKind::kTensor)
      .optional("target_weights_as_tensor", ir::AttributeKind::kTensor);
  op.since(5).deprecated();
  op.infer(ml::infer_regressor<ml::TreeRegression>).prepare(ml::prepare_regressor<ml::TreeRegression>);
}

TREADLE_OP(TreeEnsembleClassifier, "ai.onnx.ml") {
  op.since(1)
      .in("X", "T1")
      .out("Y", "T2")
      .out("Z", "tensor(float)")
      .optional("base_values", ir::AttributeKind::kFloats)
      .optional("class_ids", ir::AttributeKind::kInts)
      .optional("class_nodeids", ir::AttributeKind::kInts)
      .optional("class_treeids", ir::AttributeKind::kInts)
      .optional("class_weights", ir::AttributeKind::kFloats)
      .optional("classlabels_int64s", ir::AttributeKind::kInts)
      .optional("classlabels_strings", ir::AttributeKind::kStrings)
      .optional("nodes_falsenodeids", ir::AttributeKind::kInts)
      .optional("nodes_featureids", ir::AttributeKind::kInts)
      .optional("nodes_hitrates", ir::AttributeKind::kFloats)
      .optional("nodes_missing_value_tracks_true", ir::AttributeKind::kInts)
      .optional("nodes_modes", ir::AttributeKind::kStrings)
      .optional("nodes_nodeids", ir::AttributeKind::kInts)
      .optional("nodes_treeids", ir::AttributeKind::kInts)
      .optional("nodes_truenodeids", ir::AttributeKind::kInts)
      .optional("nodes_values", ir::AttributeKind::kFloats)
      .attr("post_transform", "NONE")
      .type("T1", types::kMlNumbers)
      .type("T2", types::kInt64OrString);
  op.since(3)
      .optional("base_values_as_tensor", ir::AttributeKind::kTensor)
      .optional("class_weights_as_tensor", ir::AttributeKind::kTensor)
      .optional("nodes_hitrates_as_tensor", ir::AttributeKind::kTensor)
      .optional("nodes_values_as_tensor", ir::AttributeKind::kTensor);
  op.since(5).deprecated();
  op.infer(ml::infer_classifier<ml::TreeClassification>)
      .prepare(ml::prepare_classifier<ml::TreeClassification>)
      .compute(ml::compute_classifier<ml::TreeClassification>);
}
