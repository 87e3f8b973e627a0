// TreeEnsembleRegressor and TreeEnsembleClassifier: each tree leads a row to a leaf, whose weights are summed up
// (averaged, ...) by target or class.

#include <algorithm>

#include "op/axis_rules.h"
#include "ops/ml/ensembles.h"

namespace treadle::ml {

namespace {

constexpr uint8_t kLeafMode = UINT8_MAX;

// A Mode, or kLeafMode.
Result<uint8_t> read_mode(std::string_view name) {
  constexpr std::pair<std::string_view, Mode> kNames[] = {
      {"BRANCH_LEQ", Mode::kLessEqual}, {"BRANCH_LT", Mode::kLess},  {"BRANCH_GTE", Mode::kGreaterEqual},
      {"BRANCH_GT", Mode::kGreater},    {"BRANCH_EQ", Mode::kEqual}, {"BRANCH_NEQ", Mode::kNotEqual}};
  if (name == "LEAF") return kLeafMode;
  for (const auto& [known, mode] : kNames) {
    if (name == known) return static_cast<uint8_t>(mode);
  }
  return error(Code::kInvalidModel, "attribute nodes_modes holds '{}', expected BRANCH_* or LEAF", name);
}

// The floats of an attribute, or the doubles of the attribute `name`_as_tensor.
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

// Finds nodes by the numbers of their tree and of the node. Nearly all models list trees one after the other, and
// number the nodes of a tree from 0 on.
class NodeIndex {
 public:
  Status read(std::span<const int64_t> trees, std::span<const int64_t> ids) {
    for (size_t i = 0; i < trees.size(); ++i) keys_.push_back({trees[i], ids[i], static_cast<uint32_t>(i)});
    const auto less = [](const Key& a, const Key& b) { return a.tree != b.tree ? a.tree < b.tree : a.node < b.node; };
    if (!std::is_sorted(keys_.begin(), keys_.end(), less)) std::sort(keys_.begin(), keys_.end(), less);
    for (size_t i = 0; i < keys_.size(); ++i) {
      if (i == 0 || keys_[i].tree != keys_[i - 1].tree) runs_.push_back(i);
      if (i > 0 && !less(keys_[i - 1], keys_[i])) {
        return error(Code::kInvalidModel, "tree {} has two nodes {}, expected one of each number", keys_[i].tree,
                     keys_[i].node);
      }
    }
    runs_.push_back(keys_.size());
    return {};
  }

  // The node's position in the attributes nodes_*.
  Result<uint32_t> find(int64_t tree, int64_t node) {
    if (keys_.empty() || keys_[runs_[run_]].tree != tree) {
      const auto first = [&](size_t run) { return keys_[run].tree; };
      const auto at = std::lower_bound(runs_.begin(), runs_.end() - 1, tree,
                                       [&](size_t run, int64_t wanted) { return first(run) < wanted; });
      if (at == runs_.end() - 1 || first(*at) != tree) return missing(tree, node);
      run_ = static_cast<size_t>(at - runs_.begin());
    }
    const auto begin = keys_.begin() + static_cast<std::ptrdiff_t>(runs_[run_]);
    const auto end = keys_.begin() + static_cast<std::ptrdiff_t>(runs_[run_ + 1]);
    if (node >= 0 && node < end - begin && begin[node].node == node) return begin[node].position;
    const auto at = std::lower_bound(begin, end, node, [](const Key& k, int64_t wanted) { return k.node < wanted; });
    if (at == end || at->node != node) return missing(tree, node);
    return at->position;
  }

 private:
  struct Key {
    int64_t tree, node;
    uint32_t position;
  };
  static Status missing(int64_t tree, int64_t node) {
    return error(Code::kInvalidModel, "tree {} has no node {}, which an attribute names: expected one of its own", tree,
                 node);
  }
  std::vector<Key> keys_;
  std::vector<size_t> runs_;  // beginnings of the trees, and the end of the last
  size_t run_ = 0;            // of the tree that was looked for last
};

Status check_length(const char* name, size_t found, size_t expected) {
  if (found == expected) return {};
  return error(Code::kInvalidModel, "attribute {} has {} entries, expected {}", name, found, expected);
}

// Reads the attributes nodes_* and target_* or class_* into a forest.
class ForestReader {
 public:
  // `prefix`: "target" or "class".
  ForestReader(const ir::Attributes& attributes, std::string prefix) : a_(attributes), prefix_(std::move(prefix)) {}

  Result<Forest> read(size_t targets) {
    Forest forest;
    TREADLE_TRY(read_nodes());
    TREADLE_TRY(link());
    TREADLE_TRY(read_weights(targets));
    TREADLE_TRY(forest.build(splits_, roots_, std::move(first_weight_), std::move(weights_), targets));
    forest.base = read_numbers(a_, "base_values");
    return forest;
  }

 private:
  Status read_nodes() {
    trees_ = a_.get_ints("nodes_treeids");
    const auto ids = a_.get_ints("nodes_nodeids"), features = a_.get_ints("nodes_featureids");
    const auto modes = a_.get_strings("nodes_modes");
    const auto missing = a_.get_ints("nodes_missing_value_tracks_true");
    const std::vector<double> values = read_numbers(a_, "nodes_values");
    TREADLE_TRY(check_length("nodes_nodeids", ids.size(), trees_.size()));
    TREADLE_TRY(check_length("nodes_featureids", features.size(), trees_.size()));
    TREADLE_TRY(check_length("nodes_modes", modes.size(), trees_.size()));
    TREADLE_TRY(check_length("nodes_values", values.size(), trees_.size()));
    if (!missing.empty()) {
      TREADLE_TRY(check_length("nodes_missing_value_tracks_true", missing.size(), trees_.size()));
    }
    for (size_t i = 0; i < trees_.size(); ++i) {
      TREADLE_ASSIGN(const uint8_t mode, read_mode(modes[i]));
      if (mode == kLeafMode) {
        branches_.push_back({true, leaves_++});
        continue;
      }
      if (features[i] < 0 || features[i] > INT32_MAX) {
        return error(Code::kInvalidModel, "attribute nodes_featureids holds {}, expected at least 0", features[i]);
      }
      branches_.push_back({false, static_cast<uint32_t>(splits_.size())});
      const bool missing_is_yes = !missing.empty() && missing[i] != 0;
      splits_.push_back(
          {static_cast<Mode>(mode), missing_is_yes, static_cast<uint32_t>(features[i]), values[i], {}, {}, {}});
    }
    return index_.read(trees_, ids);
  }

  // Checks that every node has at most one parent, and roots none.
  Status link() {
    const auto yes = a_.get_ints("nodes_truenodeids"), no = a_.get_ints("nodes_falsenodeids");
    TREADLE_TRY(check_length("nodes_truenodeids", yes.size(), trees_.size()));
    TREADLE_TRY(check_length("nodes_falsenodeids", no.size(), trees_.size()));
    std::vector<uint8_t> has_parent(trees_.size());
    for (size_t i = 0; i < trees_.size(); ++i) {
      if (branches_[i].leaf) continue;
      for (const bool side : {true, false}) {
        const int64_t id = side ? yes[i] : no[i];
        TREADLE_ASSIGN(const uint32_t child, index_.find(trees_[i], id));
        if (has_parent[child]++) {
          return error(Code::kInvalidModel, "node {} of tree {} has two parents, expected one at most", id, trees_[i]);
        }
        Split& split = splits_[branches_[i].index];
        (side ? split.yes : split.no) = branches_[child];
      }
    }
    for (size_t i = 0; i < trees_.size(); ++i) {
      if (!has_parent[i]) roots_.push_back(branches_[i]);
    }
    return {};
  }

  // Weights of nodes that are not leaves are never used.
  Status read_weights(size_t targets) {
    const auto trees = a_.get_ints(prefix_ + "_treeids"), ids = a_.get_ints(prefix_ + "_nodeids");
    const auto numbers = a_.get_ints(prefix_ + "_ids");
    const std::vector<double> values = read_numbers(a_, prefix_ + "_weights");
    if (ids.size() != trees.size() || numbers.size() != trees.size() || values.size() != trees.size()) {
      return error(Code::kInvalidModel,
                   "attributes {0}_treeids, {0}_nodeids, {0}_ids and {0}_weights differ in length, expected one",
                   prefix_);
    }
    std::vector<uint32_t> leaf_of(trees.size(), UINT32_MAX);
    first_weight_.assign(leaves_ + 1, 0);
    for (size_t i = 0; i < trees.size(); ++i) {
      TREADLE_ASSIGN(const uint32_t node, index_.find(trees[i], ids[i]));
      if (numbers[i] < 0 || numbers[i] >= static_cast<int64_t>(targets)) {
        return error(Code::kInvalidModel, "attribute {}_ids holds {}, expected 0 to {}", prefix_, numbers[i],
                     targets - 1);
      }
      if (!branches_[node].leaf) continue;
      leaf_of[i] = branches_[node].index;
      ++first_weight_[leaf_of[i] + 1];
    }
    for (size_t leaf = 0; leaf < leaves_; ++leaf) first_weight_[leaf + 1] += first_weight_[leaf];
    weights_.resize(first_weight_.back());
    std::vector<uint32_t> next(first_weight_.begin(), first_weight_.end() - 1);
    for (size_t i = 0; i < trees.size(); ++i) {
      if (leaf_of[i] == UINT32_MAX) continue;
      weights_[next[leaf_of[i]]++] = {static_cast<uint32_t>(numbers[i]), values[i]};
    }
    return {};
  }

  const ir::Attributes& a_;
  const std::string prefix_;
  std::span<const int64_t> trees_;
  std::vector<Branch> branches_;  // by position in nodes_*
  std::vector<Split> splits_;
  std::vector<Branch> roots_;
  NodeIndex index_;
  uint32_t leaves_ = 0;
  std::vector<uint32_t> first_weight_;
  std::vector<Weight> weights_;
};

}  // namespace

Status Trees::read(const ir::Attributes& attributes, const std::string& prefix, size_t targets) {
  TREADLE_ASSIGN(const Aggregate aggregate, read_aggregate(attributes));
  TREADLE_ASSIGN(post, read_post_transform(attributes));
  TREADLE_ASSIGN(forest, ForestReader(attributes, prefix).read(targets));
  forest.aggregate = aggregate;
  raw = columns = targets;
  least_features = forest.features();
  return {};
}

namespace {

Result<TreeRegression> read_regression(const ir::NodeInfo& node) {
  const int64_t targets = node.attributes.get_int("n_targets", 1);
  if (targets < 1 || targets > INT32_MAX) {
    return error(Code::kInvalidModel, "attribute n_targets is {}, expected at least 1", targets);
  }
  TreeRegression m;
  TREADLE_TRY(m.read(node.attributes, "target", static_cast<size_t>(targets)));
  TREADLE_TRY(m.forest.check_base());
  return m;
}

Result<TreeClassification> read_classification(const ir::NodeInfo& node) {
  TreeClassification m;
  m.labels = read_labels(node.attributes, "classlabels_int64s");
  const size_t classes = m.labels.size();
  if (classes < 1)
    return error(Code::kInvalidModel,
                 "no class labels are given, expected attribute classlabels_int64s or classlabels_strings");
  TREADLE_TRY(m.read(node.attributes, "class", classes));
  const std::span<const Weight> weights = m.forest.weights();
  m.one_score = classes == 2 && !weights.empty();
  for (const Weight& w : weights) {
    m.one_score &= w.target == 0;
    m.probability &= w.value >= 0;
  }
  if (m.one_score && m.forest.base.size() == 1) m.forest.base.push_back(0);
  TREADLE_TRY(m.forest.check_base());
  return m;
}

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
  op.parse<ml::read_regression>()
      .infer(ml::infer_regressor<ml::TreeRegression>)
      .prepare(ml::prepare_regressor<ml::TreeRegression>)
      .axes(axes::rows_of_table);
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
  op.parse<ml::read_classification>()
      .infer(ml::infer_classifier<ml::TreeClassification>)
      .prepare(ml::prepare_classifier<ml::TreeClassification>)
      .compute(ml::compute_classifier<ml::TreeClassification>)
      .axes(axes::rows_of_table);
}
