// SVMRegressor and SVMClassifier.

#include "ops/ml/svm.h"

#include <cmath>

#include "kernels/dispatch.h"
#include "op/axis_rules.h"
#include "ops/costs.h"

namespace treadle::ml {

void KernelFunction::apply(double* out, size_t count) const {
  using kernels::ElementwiseOp;
  const auto row = [&](ElementwiseOp op) {
    kernels::elementwise_rows(op, ComputeType::kF64).vv(out, nullptr, out, count, nullptr);
  };
  switch (kind) {
    case SvmKernel::kLinear:
      return;
    case SvmKernel::kPoly:
      for (size_t v = 0; v < count; ++v) out[v] = std::pow(gamma * out[v] + offset, degree);
      return;
    case SvmKernel::kRbf:
      for (size_t v = 0; v < count; ++v) out[v] *= -gamma;
      return row(ElementwiseOp::kExp);
    case SvmKernel::kSigmoid:
      for (size_t v = 0; v < count; ++v) out[v] = gamma * out[v] + offset;
      return row(ElementwiseOp::kTanh);
  }
}

namespace {

Result<KernelFunction> read_kernel(const ir::Attributes& attributes) {
  KernelFunction k;
  const std::string_view name = attributes.get_string("kernel_type", "LINEAR");
  const auto params = attributes.get_floats("kernel_params");
  if (name == "POLY") {
    k.kind = SvmKernel::kPoly;
  } else if (name == "RBF") {
    k.kind = SvmKernel::kRbf;
  } else if (name == "SIGMOID") {
    k.kind = SvmKernel::kSigmoid;
  } else if (name != "LINEAR") {
    return error(Code::kInvalidModel, "attribute kernel_type is '{}', expected LINEAR, POLY, RBF or SIGMOID", name);
  }
  if (params.empty()) return k;
  if (params.size() != 3) {
    return error(Code::kInvalidModel, "attribute kernel_params has {} entries, expected 3", params.size());
  }
  k.gamma = static_cast<double>(params[0]);
  k.offset = static_cast<double>(params[1]);
  k.degree = static_cast<double>(params[2]);
  return k;
}

std::vector<double> read_doubles(const ir::Attributes& attributes, const char* name) {
  const auto floats = attributes.get_floats(name);
  return {floats.begin(), floats.end()};
}

}  // namespace

Status SvmBase::read(const ir::Attributes& attributes, int64_t support_count, size_t rows) {
  coefficients = read_doubles(attributes, "coefficients");
  rho = read_doubles(attributes, "rho");
  TREADLE_ASSIGN(kernel, read_kernel(attributes));
  TREADLE_ASSIGN(post, read_post_transform(attributes));
  if (rho.empty()) return error(Code::kInvalidModel, "attribute rho is empty, expected at least one number");
  if (support_count < 0 || support_count > INT32_MAX) {
    return error(Code::kInvalidModel, "there are {} support vectors, expected at least 0", support_count);
  }
  supports = static_cast<size_t>(support_count);
  if (!supports) kernel = {};  // a linear machine; the attribute with the kernel's name has no effect
  const auto numbers = supports ? read_doubles(attributes, "support_vectors") : coefficients;
  count = supports ? supports : rows;
  if (count == 0 || numbers.empty() || numbers.size() % count != 0) {
    return error(Code::kInvalidModel, "attribute {} has {} numbers, expected a multiple of the {} vectors",
                 supports ? "support_vectors" : "coefficients", numbers.size(), count);
  }
  features = numbers.size() / count;
  least_features = static_cast<int64_t>(features);
  vectors.resize(numbers.size());
  for (size_t v = 0; v < count; ++v) {
    for (size_t j = 0; j < features; ++j) vectors[j * count + v] = numbers[v * features + j];
  }
  return {};
}

namespace {

Result<SvmRegression> read_regression(const ir::NodeInfo& node) {
  SvmRegression m;
  TREADLE_TRY(m.read(node.attributes, node.attributes.get_int("n_supports", 0), 1));
  m.one_class = node.attributes.get_int("one_class", 0) != 0;
  m.raw = m.count;
  if (m.supports && m.coefficients.size() < m.supports) {
    return error(Code::kInvalidModel,
                 "attribute coefficients has {} entries, expected one for each of the {} support vectors",
                 m.coefficients.size(), m.supports);
  }
  return m;
}

}  // namespace

Status SvmClassification::check() const {
  if (per_class.size() != classes || classes < 2) {
    return error(Code::kInvalidModel,
                 "attribute vectors_per_class has {} entries, expected one for each of {} classes, at least 2",
                 per_class.size(), classes);
  }
  if (coefficients.size() != (classes - 1) * supports || rho.size() < pairs()) {
    return error(Code::kInvalidModel,
                 "attributes coefficients and rho have {} and {} entries, expected {} and at least {}",
                 coefficients.size(), rho.size(), (classes - 1) * supports, pairs());
  }
  if (!prob_a.empty() && (prob_a.size() != pairs() || prob_b.size() != pairs())) {
    return error(Code::kInvalidModel, "attributes prob_a and prob_b have {} and {} entries, expected {}", prob_a.size(),
                 prob_b.size(), pairs());
  }
  return {};
}

namespace {

Result<SvmClassification> read_classification(const ir::NodeInfo& node) {
  const ir::Attributes& a = node.attributes;
  SvmClassification m;
  m.labels = read_labels(a, "classlabels_ints");
  m.classes = std::max<size_t>(1, m.labels.size());
  const auto per_class = a.get_ints("vectors_per_class");
  m.per_class.assign(per_class.begin(), per_class.end());
  m.prob_a = read_doubles(a, "prob_a");
  m.prob_b = read_doubles(a, "prob_b");
  int64_t supports = 0;
  for (int64_t n : m.per_class) {
    if (n < 0 || n > INT32_MAX)
      return error(Code::kInvalidModel, "attribute vectors_per_class holds {}, expected at least 0", n);
    supports += n;
  }
  TREADLE_TRY(m.read(a, supports, m.classes));
  const bool decisions = !m.per_class.empty() && m.prob_a.empty() && m.classes > 2;
  m.columns = decisions ? m.pairs() : m.classes;
  m.raw = m.supports ? m.scratch() : m.classes;
  if (m.supports) TREADLE_TRY(m.check());
  return m;
}

}  // namespace

// Scores: one decision per pair, then the votes per class. Linear: one score per class.
template <class T>
void SvmClassification::decide(const T* x, double* scores) const {
  if (supports == 0) {
    kernel(x, vectors.data(), features, count, scores);
    for (size_t c = 0; c < classes; ++c) scores[c] += rho[0];
    return;
  }
  // Each support vector is used in every pair with its class, so the kernels are computed once.
  double* votes = scores + pairs();
  double* responses = votes + classes;
  kernel(x, vectors.data(), features, count, responses);
  std::fill_n(votes, classes, 0.0);
  size_t pair = 0, i_begin = 0;
  for (size_t i = 0; i < classes; ++i) {
    const size_t i_end = i_begin + static_cast<size_t>(per_class[i]);
    size_t j_begin = i_end;
    for (size_t j = i + 1; j < classes; ++j, ++pair) {
      const size_t j_end = j_begin + static_cast<size_t>(per_class[j]);
      double sum = rho[pair];
      const auto add = [&](size_t row, size_t begin, size_t end) {
        for (size_t v = begin; v < end; ++v) sum += coefficients[row * supports + v] * responses[v];
      };
      add(j - 1, i_begin, i_end);
      add(i, j_begin, j_end);
      scores[pair] = sum;
      votes[sum > 0 ? i : j] += 1;
      j_begin = j_end;
    }
    i_begin = i_end;
  }
}

template void SvmClassification::decide(const float*, double*) const;
template void SvmClassification::decide(const double*, double*) const;

// Class probabilities from pairwise ones: Wu, Lin and Weng, "Probability estimates for multi-class classification by
// pairwise coupling" (2004), second method.
void SvmClassification::couple(double* scores) const {
  const size_t n = classes;
  double* const r = scores + pairs() + classes + supports;
  double* const q = r + n * n;
  double* const p = q + n * n;
  double* const qp = p + n;
  std::fill_n(q, n * n, 0.0);
  std::fill_n(p, n, 1 / static_cast<double>(n));
  for (size_t i = 0, pair = 0; i < n; ++i) {
    for (size_t j = i + 1; j < n; ++j, ++pair) {
      const double margin = scores[pair] * prob_a[pair] + prob_b[pair];
      r[i * n + j] = std::clamp(logistic(-margin), 1e-7, 1 - 1e-7);
      r[j * n + i] = 1 - r[i * n + j];
    }
  }
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) {
      if (i == j) continue;
      q[i * n + i] += r[j * n + i] * r[j * n + i];
      q[i * n + j] = -r[j * n + i] * r[i * n + j];
    }
  }
  const size_t iterations = std::max<size_t>(100, n);
  for (size_t iteration = 0; iteration < iterations; ++iteration) {
    double pqp = 0, worst = 0;
    for (size_t i = 0; i < n; ++i) {
      qp[i] = 0;
      for (size_t j = 0; j < n; ++j) qp[i] += q[i * n + j] * p[j];
      pqp += p[i] * qp[i];
    }
    for (size_t i = 0; i < n; ++i) worst = std::max(worst, std::abs(qp[i] - pqp));
    if (worst < 0.005 / static_cast<double>(n)) break;
    for (size_t i = 0; i < n; ++i) {
      const double step = (pqp - qp[i]) / q[i * n + i];
      p[i] += step;
      pqp = (pqp + step * (step * q[i * n + i] + 2 * qp[i])) / ((1 + step) * (1 + step));
      for (size_t j = 0; j < n; ++j) {
        qp[j] = (qp[j] + step * q[i * n + j]) / (1 + step);
        p[j] /= 1 + step;
      }
    }
  }
  std::copy_n(p, n, scores);
}

size_t SvmClassification::finish(double* scores) const {
  const size_t winner = largest({supports ? scores + pairs() : scores, classes});
  if (supports && !prob_a.empty()) couple(scores);
  if (supports == 0 || !prob_a.empty() || classes > 2) {
    transform(post, {scores, columns});
    return winner;
  }
  spread_score(is_of_probabilities(post), scores);  // the decision of the only pair
  transform(post, {scores, columns});
  return winner;
}

}  // namespace treadle::ml

TREADLE_OP(SVMRegressor, "ai.onnx.ml") {
  op.since(1)
      .in("X", "T")
      .out("Y", "tensor(float)")
      .optional("coefficients", ir::AttributeKind::kFloats)
      .optional("kernel_params", ir::AttributeKind::kFloats)
      .attr("kernel_type", "LINEAR")
      .attr("n_supports", 0)
      .attr("one_class", 0)
      .attr("post_transform", "NONE")
      .optional("rho", ir::AttributeKind::kFloats)
      .optional("support_vectors", ir::AttributeKind::kFloats)
      .type("T", types::kMlNumbers);
  op.parse<ml::read_regression>()
      .infer(ml::infer_regressor<ml::SvmRegression>)
      .prepare(ml::prepare_regressor<ml::SvmRegression>)
      .axes(axes::rows_of_table);
}

TREADLE_OP(SVMClassifier, "ai.onnx.ml") {
  op.since(1)
      .in("X", "T1")
      .out("Y", "T2")
      .out("Z", "tensor(float)")
      .optional("classlabels_ints", ir::AttributeKind::kInts)
      .optional("classlabels_strings", ir::AttributeKind::kStrings)
      .optional("coefficients", ir::AttributeKind::kFloats)
      .optional("kernel_params", ir::AttributeKind::kFloats)
      .attr("kernel_type", "LINEAR")
      .attr("post_transform", "NONE")
      .optional("prob_a", ir::AttributeKind::kFloats)
      .optional("prob_b", ir::AttributeKind::kFloats)
      .optional("rho", ir::AttributeKind::kFloats)
      .optional("support_vectors", ir::AttributeKind::kFloats)
      .optional("vectors_per_class", ir::AttributeKind::kInts)
      .type("T1", types::kMlNumbers)
      .type("T2", types::kInt64OrString);
  op.parse<ml::read_classification>()
      .infer(ml::infer_classifier<ml::SvmClassification>)
      .prepare(ml::prepare_classifier<ml::SvmClassification>)
      .compute(ml::compute_classifier<ml::SvmClassification>)
      .axes(axes::rows_of_table);
}
