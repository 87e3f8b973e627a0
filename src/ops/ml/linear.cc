// LinearRegressor and LinearClassifier.

#include "ops/ml/predict.h"

namespace treadle::ml {

namespace {

// scores = coefficients · x + intercepts, coefficients [rows, features].
struct Linear {
  std::span<const float> coefficients, intercepts;
  size_t raw = 1, columns = 1;
  int64_t least_features = 0;
  PostTransform post = PostTransform::kNone;

  static Result<Linear> read(const ir::Attributes& attributes, size_t rows) {
    Linear m;
    m.coefficients = attributes.get_floats("coefficients");
    m.intercepts = attributes.get_floats("intercepts");
    TREADLE_ASSIGN(m.post, read_post_transform(attributes));
    if (rows == 0 || m.coefficients.empty() || m.coefficients.size() % rows != 0) {
      return error(Code::kInvalidModel, "attribute coefficients has {} entries, expected a multiple of {}",
                   m.coefficients.size(), rows);
    }
    if (!m.intercepts.empty() && m.intercepts.size() != rows) {
      return error(Code::kInvalidModel, "attribute intercepts has {} entries, expected {}", m.intercepts.size(), rows);
    }
    m.raw = m.columns = rows;
    m.least_features = static_cast<int64_t>(m.coefficients.size() / rows);
    return m;
  }
  void evaluate(const double* x, int64_t, double* scores) const {
    const auto features = static_cast<size_t>(least_features);
    for (size_t i = 0; i < raw; ++i) {
      double sum = 0;
      for (size_t j = 0; j < features; ++j) sum += x[j] * static_cast<double>(coefficients[i * features + j]);
      scores[i] = intercepts.empty() ? sum : sum + static_cast<double>(intercepts[i]);
    }
  }
};

struct LinearRegression : Linear {
  static int64_t column_count(const ir::Attributes& attributes) { return attributes.get_int("targets", 1); }
  static Result<LinearRegression> read(const ir::Attributes& attributes) {
    const int64_t targets = column_count(attributes);
    if (targets < 1) return error(Code::kInvalidModel, "attribute targets is {}, expected at least 1", targets);
    TREADLE_ASSIGN(Linear m, Linear::read(attributes, static_cast<size_t>(targets)));
    return LinearRegression{m};
  }
  size_t finish(double* scores) const {
    transform(post, {scores, columns});
    return 0;
  }
};

// One row of coefficients tells two classes apart: its score is that of the second, by its sign.
struct LinearClassification : Linear {
  static constexpr const char* kIntegerLabels = "classlabels_ints";

  static size_t row_count_of(const ir::Attributes& attributes) {
    const size_t intercepts = attributes.get_floats("intercepts").size();
    return intercepts ? intercepts : std::max<size_t>(1, read_labels(attributes, kIntegerLabels).size());
  }
  static int64_t column_count(const ir::Attributes& attributes) {
    const size_t rows = row_count_of(attributes);
    const bool second = rows == 1 && read_labels(attributes, kIntegerLabels).size() == 2;
    return static_cast<int64_t>(second ? 2 : rows);
  }
  static Result<LinearClassification> read(const ir::Attributes& attributes) {
    TREADLE_ASSIGN(Linear m, Linear::read(attributes, row_count_of(attributes)));
    m.columns = static_cast<size_t>(column_count(attributes));
    return LinearClassification{m};
  }
  size_t finish(double* scores) const {
    if (raw > 1) {
      const size_t label = largest({scores, raw});
      transform(post, {scores, raw});
      return label;
    }
    const size_t label = scores[0] > 0 ? 1 : 0;
    if (post == PostTransform::kLogistic || post == PostTransform::kProbit) {
      transform(post, {scores, 1});  // a softmax of one score means nothing
    }
    if (columns == 2) {
      scores[1] = scores[0];
      scores[0] = 1 - scores[1];
    }
    return label;
  }
};

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
  op.infer(ml::infer_regressor<ml::LinearRegression>).prepare(ml::prepare_regressor<ml::LinearRegression>);
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
  op.infer(ml::infer_classifier<ml::LinearClassification>)
      .prepare(ml::prepare_classifier<ml::LinearClassification>)
      .compute(ml::compute_classifier<ml::LinearClassification>);
}
