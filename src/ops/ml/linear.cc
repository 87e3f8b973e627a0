// LinearRegressor and LinearClassifier.

#include "op/axis_rules.h"
#include "ops/ml/predict.h"

namespace treadle::ml {

namespace {

// scores = coefficients · x + intercepts, coefficients [raw, features].
struct Linear {
  std::vector<double> coefficients, intercepts;
  size_t raw = 1, columns = 1;
  int64_t least_features = 0;
  PostTransform post = PostTransform::kNone;

  Status read(const ir::Attributes& attributes, size_t rows) {
    const auto weights = attributes.get_floats("coefficients"), offsets = attributes.get_floats("intercepts");
    TREADLE_ASSIGN(post, read_post_transform(attributes));
    if (rows == 0 || weights.empty() || weights.size() % rows != 0) {
      return error(Code::kInvalidModel, "attribute coefficients has {} entries, expected a multiple of {}",
                   weights.size(), rows);
    }
    if (!offsets.empty() && offsets.size() != rows) {
      return error(Code::kInvalidModel, "attribute intercepts has {} entries, expected {}", offsets.size(), rows);
    }
    coefficients.assign(weights.begin(), weights.end());
    intercepts.assign(offsets.begin(), offsets.end());
    intercepts.resize(rows);
    raw = columns = rows;
    least_features = static_cast<int64_t>(weights.size() / rows);
    return {};
  }
  double row_ns() const { return static_cast<double>(coefficients.size()); }
  template <class T>
  void evaluate(const T* x, size_t rows, size_t features, double* scores, size_t stride) const {
    const size_t terms = std::min(coefficients.size() / raw, features);
    StopPoll stop;
    for (size_t r = 0; r < rows && !stop.after(row_ns()); ++r, x += features, scores += stride) {
      for (size_t i = 0; i < raw; ++i) {
        const double* c = coefficients.data() + i * terms;
        double sum = 0;
        for (size_t j = 0; j < terms; ++j) sum += static_cast<double>(x[j]) * c[j];
        scores[i] = sum + intercepts[i];
      }
    }
  }
};

struct LinearRegression : Linear {
  size_t finish(double* scores) const {
    transform(post, {scores, columns});
    return 0;
  }
};

Result<LinearRegression> read_regression(const ir::NodeInfo& node) {
  const int64_t targets = node.attributes.get_int("targets", 1);
  if (targets < 1) return error(Code::kInvalidModel, "attribute targets is {}, expected at least 1", targets);
  LinearRegression m;
  TREADLE_TRY(m.read(node.attributes, static_cast<size_t>(targets)));
  return m;
}

// One row of coefficients tells two classes apart: the sign of its score decides for the second class.
struct LinearClassification : Linear {
  Labels labels;

  size_t finish(double* scores) const {
    if (raw > 1) {
      const size_t label = largest({scores, raw});
      transform(post, {scores, raw});
      return label;
    }
    const size_t label = scores[0] > 0 ? 1 : 0;
    if (columns == 2) spread_score(post == PostTransform::kNone || is_of_probabilities(post), scores);
    transform(post, {scores, columns});
    return label;
  }
};

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
