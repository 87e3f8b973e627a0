// TreeEnsemble: comparisons and leaves in separate lists, set membership, scores in X's type.

#include <cmath>

#include "op/axis_rules.h"
#include "ops/ml/ensembles.h"

namespace treadle::ml {

namespace {

Status check_length(const char* name, int64_t found, size_t expected) {
  if (found == static_cast<int64_t>(expected)) return {};
  return error(Code::kInvalidModel, "attribute {} has {} entries, expected {}", name, found, expected);
}

class Reader {
 public:
  explicit Reader(const ir::Attributes& attributes)
      : a_(attributes), features_(a_.get_ints("nodes_featureids")), leaf_targets_(a_.get_ints("leaf_targetids")) {}

  Result<Forest> read(size_t targets) {
    TREADLE_TRY(read_splits());
    TREADLE_TRY(read_members());
    TREADLE_TRY(read_branches());
    const Tensor& values = a_.find("leaf_weights")->as_tensor();
    TREADLE_TRY(check_length("leaf_weights", values.element_count(), leaf_targets_.size()));
    std::vector<Weight> weights;
    std::vector<uint32_t> first_weight = {0};
    for (size_t i = 0; i < leaf_targets_.size(); ++i) {
      const int64_t target = leaf_targets_[i];
      if (target < 0 || target >= static_cast<int64_t>(targets)) {
        return error(Code::kInvalidModel, "attribute leaf_targetids holds {}, expected 0 to {}", target, targets - 1);
      }
      weights.push_back({static_cast<uint32_t>(target), values.double_at(static_cast<int64_t>(i))});
      first_weight.push_back(static_cast<uint32_t>(weights.size()));
    }
    std::vector<Branch> roots;
    for (const int64_t root : a_.get_ints("tree_roots")) {
      if (root < 0 || root >= static_cast<int64_t>(splits_.size())) {
        return error(Code::kInvalidModel, "attribute tree_roots holds {}, expected 0 to {}", root, splits_.size() - 1);
      }
      roots.push_back({false, static_cast<uint32_t>(root)});
    }
    Forest forest;
    TREADLE_TRY(forest.build(splits_, roots, std::move(first_weight), std::move(weights), targets));
    return forest;
  }

 private:
  Status read_splits() {
    const Tensor& modes = a_.find("nodes_modes")->as_tensor();
    const Tensor& thresholds = a_.find("nodes_splits")->as_tensor();
    const auto missing = a_.get_ints("nodes_missing_value_tracks_true");
    if (features_.empty())
      return error(Code::kInvalidModel, "attribute nodes_featureids is empty, expected an entry for each node");
    TREADLE_TRY(check_length("nodes_modes", modes.element_count(), features_.size()));
    TREADLE_TRY(check_length("nodes_splits", thresholds.element_count(), features_.size()));
    if (!missing.empty()) {
      TREADLE_TRY(
          check_length("nodes_missing_value_tracks_true", static_cast<int64_t>(missing.size()), features_.size()));
    }
    for (size_t i = 0; i < features_.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      const int64_t mode = modes.int64_at(at);
      if (mode < 0 || mode > static_cast<int64_t>(Mode::kMember)) {
        return error(Code::kInvalidModel, "attribute nodes_modes holds {}, expected 0 to 6", mode);
      }
      if (features_[i] < 0 || features_[i] > INT32_MAX) {
        return error(Code::kInvalidModel, "attribute nodes_featureids holds {}, expected at least 0", features_[i]);
      }
      splits_.push_back({static_cast<Mode>(mode),
                         !missing.empty() && missing[i] != 0,
                         static_cast<uint32_t>(features_[i]),
                         thresholds.double_at(at),
                         {},
                         {},
                         {}});
    }
    return {};
  }

  // One list for all sets, in the order of their nodes; NaN ends each set.
  Status read_members() {
    const ir::Attribute* attribute = a_.find("membership_values");
    int64_t at = 0;
    for (Split& split : splits_) {
      if (split.mode != Mode::kMember) continue;
      if (!attribute || at >= attribute->as_tensor().element_count()) {
        return error(Code::kInvalidModel,
                     "attribute membership_values has too few sets, expected one for each node of mode BRANCH_MEMBER");
      }
      const Tensor& members = attribute->as_tensor();
      for (; at < members.element_count() && !std::isnan(members.double_at(at)); ++at) {
        split.members.push_back(members.double_at(at));
      }
      ++at;
    }
    return {};
  }

  Status read_branches() {
    for (const bool side : {true, false}) {
      const char* const ids_name = side ? "nodes_truenodeids" : "nodes_falsenodeids";
      const char* const leafs_name = side ? "nodes_trueleafs" : "nodes_falseleafs";
      const auto ids = a_.get_ints(ids_name), leafs = a_.get_ints(leafs_name);
      TREADLE_TRY(check_length(ids_name, static_cast<int64_t>(ids.size()), splits_.size()));
      TREADLE_TRY(check_length(leafs_name, static_cast<int64_t>(leafs.size()), splits_.size()));
      for (size_t i = 0; i < splits_.size(); ++i) {
        const size_t count = leafs[i] ? leaf_targets_.size() : splits_.size();
        if (ids[i] < 0 || ids[i] >= static_cast<int64_t>(count)) {
          return error(Code::kInvalidModel, "attribute {} holds {}, expected at least 0 and less than {}", ids_name,
                       ids[i], count);
        }
        (side ? splits_[i].yes : splits_[i].no) = {leafs[i] != 0, static_cast<uint32_t>(ids[i])};
      }
    }
    return {};
  }

  const ir::Attributes& a_;
  const std::span<const int64_t> features_, leaf_targets_;
  std::vector<Split> splits_;
};

Result<TreeScores> read_tree_ensemble(const ir::NodeInfo& node) {
  const ir::Attributes& a = node.attributes;
  const int64_t aggregate = a.get_int("aggregate_function", 1), post = a.get_int("post_transform", 0);
  const int64_t targets = a.get_int("n_targets", 1);
  if (aggregate < 0 || aggregate > static_cast<int64_t>(Aggregate::kMax)) {
    return error(Code::kInvalidModel, "attribute aggregate_function is {}, expected 0 to 3", aggregate);
  }
  if (post < 0 || post > static_cast<int64_t>(PostTransform::kProbit)) {
    return error(Code::kInvalidModel, "attribute post_transform is {}, expected 0 to 4", post);
  }
  if (targets < 1 || targets > INT32_MAX) {
    return error(Code::kInvalidModel, "attribute n_targets is {}, expected at least 1", targets);
  }
  TreeScores m;
  TREADLE_ASSIGN(m.forest, Reader(a).read(static_cast<size_t>(targets)));
  m.forest.aggregate = static_cast<Aggregate>(aggregate);
  m.post = static_cast<PostTransform>(post);
  m.raw = m.columns = static_cast<size_t>(targets);
  m.least_features = m.forest.features();
  return m;
}

Status infer_tree_ensemble(InferContext& ctx) {
  const Shape* x = ctx.shape(0);
  const auto& model = ctx.node.parsed_as<TreeScores>();
  if (x) TREADLE_TRY(check_rows(*x, model.least_features));
  const auto columns = static_cast<int64_t>(model.columns);
  ctx.set_output(0, ctx.element(0), {x ? row_count(*x) : Dim::unknown(), Dim(columns)});
  return {};
}

struct EnsembleState {
  Predictor<TreeScores> predictor;
  kernels::TileConverter narrow;
  size_t row_bytes;
};

uint32_t run_tree_ensemble(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const EnsembleState*>(state);
  auto* y = static_cast<std::byte*>(slots[operands[1]]);
  const auto store = [&](int64_t row, const double* scores) {
    kernels::convert(s.narrow, scores, y + static_cast<size_t>(row) * s.row_bytes, s.predictor.model->columns);
  };
  s.predictor.run(slots[operands[0]], static_cast<double*>(slots[operands[2]]), store, [](int64_t, size_t) {});
  return 0;
}

Status prepare_tree_ensemble(PrepareContext& ctx) {
  const Operand& x = ctx.inputs[0];
  TREADLE_ASSIGN(auto predictor, make_predictor(ctx.node.parsed_as<TreeScores>(), x.type, x.dims));
  ctx.scratch_bytes = predictor.scratch_doubles() * sizeof(double);
  const size_t row_bytes = predictor.model->columns * byte_width(x.type);
  ctx.set_kernel(run_tree_ensemble, ctx.make_state<EnsembleState>(EnsembleState{
                                        predictor, kernels::make_converter(ElementType::kDouble, x.type), row_bytes}));
  return {};
}

}  // namespace

}  // namespace treadle::ml

TREADLE_OP(TreeEnsemble, "ai.onnx.ml") {
  op.since(5)
      .in("X", "T")
      .out("Y", "T")
      .attr("aggregate_function", 1)
      .required("leaf_targetids", ir::AttributeKind::kInts)
      .required("leaf_weights", ir::AttributeKind::kTensor)
      .optional("membership_values", ir::AttributeKind::kTensor)
      .optional("n_targets", ir::AttributeKind::kInt)
      .required("nodes_falseleafs", ir::AttributeKind::kInts)
      .required("nodes_falsenodeids", ir::AttributeKind::kInts)
      .required("nodes_featureids", ir::AttributeKind::kInts)
      .optional("nodes_hitrates", ir::AttributeKind::kTensor)
      .optional("nodes_missing_value_tracks_true", ir::AttributeKind::kInts)
      .required("nodes_modes", ir::AttributeKind::kTensor)
      .required("nodes_splits", ir::AttributeKind::kTensor)
      .required("nodes_trueleafs", ir::AttributeKind::kInts)
      .required("nodes_truenodeids", ir::AttributeKind::kInts)
      .attr("post_transform", 0)
      .required("tree_roots", ir::AttributeKind::kInts)
      .type("T", tensors(ElementType::kFloat, ElementType::kDouble, ElementType::kFloat16));
  op.parse<ml::read_tree_ensemble>()
      .infer(ml::infer_tree_ensemble)
      .prepare(ml::prepare_tree_ensemble)
      .axes(axes::rows_of_table);
}
