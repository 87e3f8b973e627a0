// LinearRegressor and LinearClassifier.

#include "ops/ml/linear.h"

#include "op/axis_rules.h"

namespace treadle::ml {

namespace {

Result<LinearRegression> read_regression(const ir::NodeInfo& node) {
  const int64_t targets = node.attributes.get_int("targets", 1);
  if (targets < 1) return error(Code::kInvalidModel, "attribute targets is {}, expected at least 1", targets);
  LinearRegression m;
  TREADLE_TRY(m.read(node.attributes, static_cast<size_t>(targets)));
  return m;
}

Result<LinearClassification> read_classification(const ir::NodeInfo& node) {
  LinearClassification m;
  m.labels = read_labels(node.attributes, "classlabels_ints");
  const size_t intercepts = node.attributes.get_floats("intercepts").size();
  const size_t rows = intercepts ? intercepts : std::max<size_t>(1, m.labels.size());
  TREADLE_TRY(m.read(node.attributes, rows));
  // Rows with fewer features than each class has coefficients: the first class uses the first of them, as many as there
  // are features, and the next class those behind. The specification does not cover this, but the model logreg_iris of
  // onnxruntime's manual, with which many programs begin, needs it.
  m.least_features = 0;
  if (rows == 1 && m.labels.size() == 2) m.columns = 2;
  return m;
}

}  // namespace

}  // namespace treadle::ml

TREADLE_OP(LinearRegressor, "ai.onnx.ml") {
  op.since(1)
      .in("X", "T")
      .out("Y", "tensor(float)")
      .optional("coefficients", ir::AttributeKind::kFloats)
      .optional("intercepts", ir::AttributeKind::kFloats)
      .attr("post_transform", "NONE")
      .attr("targets", 1)
      .type("T", types::kMlNumbers);
  op.parse<ml::read_regression>()
      .infer(ml::infer_regressor<ml::LinearRegression>)
      .prepare(ml::prepare_regressor<ml::LinearRegression>)
      .axes(axes::rows_of_table);
}

TREADLE_OP(LinearClassifier, "ai.onnx.ml") {
  op.since(1)
      .in("X", "T1")
      .out("Y", "T2")
      .out("Z", "tensor(float)")
      .optional("classlabels_ints", ir::AttributeKind::kInts)
      .optional("classlabels_strings", ir::AttributeKind::kStrings)
      .required("coefficients", ir::AttributeKind::kFloats)
      .optional("intercepts", ir::AttributeKind::kFloats)
      .attr("multi_class", 0)
      .attr("post_transform", "NONE")
      .type("T1", types::kMlNumbers)
      .type("T2", types::kInt64OrString);
  op.parse<ml::read_classification>()
      .infer(ml::infer_classifier<ml::LinearClassification>)
      .prepare(ml::prepare_classifier<ml::LinearClassification>)
      .compute(ml::compute_classifier<ml::LinearClassification>)
      .axes(axes::rows_of_table);
}
