// LinearRegressor, LinearClassifier (ops/ml/linear.h), SVMRegressor, SVMClassifier (ops/ml/svm.h).

#include "c/predict.h"
#include "op/op_def.h"
#include "ops/ml/linear.h"
#include "ops/ml/svm.h"

namespace treadle::c {

namespace {

using ml::PostTransform;
using ml::SvmKernel;
constexpr ElementType kDouble = ElementType::kDouble;

std::string doubles(Writer& w, const char* name, const std::vector<double>& numbers) {
  return w.table(name, kDouble, numbers.data(), numbers.size());
}

// --- Linear models

void write_linear_scores(Prediction& p, const ml::Linear& model) {
  Text& text = p.text();
  const size_t terms = std::min(model.coefficients.size() / model.raw, static_cast<size_t>(p.features()));
  const std::string coefficients = doubles(p.writer(), "coefficients", model.coefficients),
                    intercepts = doubles(p.writer(), "intercepts", model.intercepts);
  text.open("for (ptrdiff_t i = 0; i < {}; ++i)", model.raw);
  text.line("double sum = 0;");
  text.open("for (ptrdiff_t j = 0; j < {}; ++j)", terms);
  text.line("const double a = {} * {}[i * {} + j];", p.feature("j"), coefficients, terms);
  text.line("sum = sum + a;");
  text.close();
  text.line("s[i] = sum + {}[i];", intercepts);
  text.close();
}

void write_linear_regressor(const Call& call, std::string& why) {
  const auto& model = call.node.parsed_as<ml::LinearRegression>();
  Prediction p(call, model.columns);
  p.open();
  write_linear_scores(p, model);
  if (!p.transform(model.post, model.columns)) why = kTransformOfLibrary;
  p.store_scores(0, model.columns);
  p.close();
}

void write_linear_classifier(const Call& call, std::string& why) {
  const auto& model = call.node.parsed_as<ml::LinearClassification>();
  Prediction p(call, std::max(model.raw, model.columns));
  p.open();
  write_linear_scores(p, model);
  if (model.raw > 1) {
    p.choose_label(model.raw);
  } else {
    p.text().line("const ptrdiff_t label = s[0] > 0;");
    p.text().line("(void)label;");
    if (model.columns == 2) p.spread(model.post == PostTransform::kNone || ml::is_of_probabilities(model.post));
  }
  if (!p.transform(model.post, model.raw > 1 ? model.raw : model.columns)) why = kTransformOfLibrary;
  p.store_scores(1, model.columns);
  p.store_label(model.labels);
  p.close();
}

// --- Support vector machines

// The responses of the vectors to the row, from score `first` on.
void write_responses(Prediction& p, const ml::SvmBase& model, size_t first, std::string& why) {
  Text& text = p.text();
  Functions& f = p.writer().functions();
  const ml::KernelFunction& kernel = model.kernel;
  const std::string vectors = doubles(p.writer(), "vectors", model.vectors);
  text.open("for (ptrdiff_t v = 0; v < {}; ++v)", model.count);
  text.line("double sum = 0;");
  text.open("for (ptrdiff_t j = 0; j < {}; ++j)", model.features);
  const std::string number = fmt::format("{}[j * {} + v]", vectors, model.count);
  if (kernel.kind == SvmKernel::kRbf) {
    text.line("const double d = {} - {};", p.feature("j"), number);
    text.line("const double a = d * d;");
  } else {
    text.line("const double a = {} * {};", p.feature("j"), number);
  }
  text.line("sum = sum + a;");
  text.close();
  if (kernel.kind == SvmKernel::kRbf) {
    text.line("sum = {}(sum * {});", f.operation(kernels::ElementwiseOp::kExp, kDouble), literal(-kernel.gamma));
  } else if (kernel.kind != SvmKernel::kLinear) {
    text.line("const double scaled = {} * sum;", literal(kernel.gamma));
    if (kernel.kind == SvmKernel::kSigmoid) {
      text.line("sum = {}(scaled + {});", f.operation(kernels::ElementwiseOp::kTanh, kDouble), literal(kernel.offset));
    } else {
      const std::string power = f.library("pow");
      if (power.empty()) why = "powers of its kernel are the C library's (libm allows it)";
      text.line("sum = {}(scaled + {}, {});", power, literal(kernel.offset), literal(kernel.degree));
    }
  }
  text.line("s[v + {}] = sum;", first);
  text.close();
}

void write_svm_regressor(const Call& call, std::string& why) {
  const auto& model = call.node.parsed_as<ml::SvmRegression>();
  Prediction p(call, std::max(model.raw, model.columns));
  Text& text = p.text();
  p.open();
  write_responses(p, model, 0, why);
  text.open("");
  text.line("double sum = {};", literal(model.rho[0]));
  text.open("for (ptrdiff_t v = 0; v < {}; ++v)", model.count);
  if (model.supports) {
    text.line("const double a = {}[v] * s[v];", doubles(p.writer(), "coefficients", model.coefficients));
    text.line("sum = sum + a;");
  } else {
    text.line("sum = sum + s[v];");
  }
  text.close();
  text.line("s[0] = {};", model.one_class ? "sum > 0 ? 1 : -1" : "sum");
  text.close();
  if (!p.transform(model.post, model.columns)) why = kTransformOfLibrary;
  p.store_scores(0, model.columns);
  p.close();
}

// One decision for each pair of classes, in the first scores; then the votes for classes, then responses.
void write_decisions(Prediction& p, const ml::SvmClassification& model) {
  Text& text = p.text();
  const size_t votes = model.pairs(), responses = votes + model.classes;
  text.line("for (ptrdiff_t i = 0; i < {}; ++i) s[i + {}] = 0;", model.classes, votes);
  const std::string coefficients = doubles(p.writer(), "coefficients", model.coefficients);
  std::vector<int64_t> begins{0};
  for (const int64_t n : model.per_class) begins.push_back(begins.back() + n);
  const std::string first = p.writer().table("first_vector", ElementType::kInt64, begins.data(), begins.size());
  const std::string rho = doubles(p.writer(), "rho", model.rho);
  text.open("for (ptrdiff_t i = 0, k = 0; i < {}; ++i)", model.classes);
  text.open("for (ptrdiff_t j = i + 1; j < {}; ++j, ++k)", model.classes);
  text.line("double sum = {}[k];", rho);
  for (const auto& [row, of] : {std::pair("(j - 1)", "i"), std::pair("i", "j")}) {
    text.open("for (int64_t v = {0}[{1}]; v < {0}[{1} + 1]; ++v)", first, of);
    text.line("const double a = {}[{} * {} + v] * s[v + {}];", coefficients, row, model.supports, responses);
    text.line("sum = sum + a;");
    text.close();
  }
  text.line("s[k] = sum;");
  text.line("s[{} + (sum > 0 ? i : j)] += 1;", votes);
  text.close();
  text.close();
}

// f(s, n, prob_a, prob_b, r): class probabilities from the decisions of pairs. `r`: room for 2 n (n + 1) numbers.
std::string couple_function(Functions& f, const std::string& exp) {
  const std::string logistic = logistic_function(f, exp);
  return f.get("couple_pairs", [&](Text& text, const std::string& name) {
    text.line("/* Wu, Lin and Weng, \"Probability estimates for multi-class classification by pairwise coupling\"");
    text.line("   (2004), second method. */");
    text.open("static void {}(double *s, ptrdiff_t n, const double *prob_a, const double *prob_b, double *r)", name);
    text.line("double *const q = r + n * n, *const p = q + n * n, *const qp = p + n;");
    text.line("for (ptrdiff_t i = 0; i < n * n; ++i) q[i] = 0;");
    text.line("for (ptrdiff_t i = 0; i < n; ++i) p[i] = 1 / (double)n;");
    text.open("for (ptrdiff_t i = 0, k = 0; i < n; ++i)");
    text.open("for (ptrdiff_t j = i + 1; j < n; ++j, ++k)");
    text.line("const double scaled = s[k] * prob_a[k], margin = scaled + prob_b[k];");
    text.line("const double x = {}(-margin);", logistic);
    text.line("r[i * n + j] = x < 1e-7 ? 1e-7 : 1 - 1e-7 < x ? 1 - 1e-7 : x;");
    text.line("r[j * n + i] = 1 - r[i * n + j];");
    text.close();
    text.close();
    text.open("for (ptrdiff_t i = 0; i < n; ++i)");
    text.open("for (ptrdiff_t j = 0; j < n; ++j)");
    text.line("if (i == j) continue;");
    text.line("const double square = r[j * n + i] * r[j * n + i];");
    text.line("q[i * n + i] = q[i * n + i] + square;");
    text.line("q[i * n + j] = -r[j * n + i] * r[i * n + j];");
    text.close();
    text.close();
    text.open("for (ptrdiff_t turn = 0; turn < (n > 100 ? n : 100); ++turn)");
    text.line("double pqp = 0, worst = 0;");
    text.open("for (ptrdiff_t i = 0; i < n; ++i)");
    text.line("qp[i] = 0;");
    text.open("for (ptrdiff_t j = 0; j < n; ++j)");
    text.line("const double a = q[i * n + j] * p[j];");
    text.line("qp[i] = qp[i] + a;");
    text.close();
    text.line("const double b = p[i] * qp[i];");
    text.line("pqp = pqp + b;");
    text.close();
    text.open("for (ptrdiff_t i = 0; i < n; ++i)");
    text.line("const double d = qp[i] - pqp, size = d < 0 ? -d : d;");
    text.line("worst = worst < size ? size : worst;");
    text.close();
    text.line("if (worst < 0.005 / (double)n) break;");
    text.open("for (ptrdiff_t i = 0; i < n; ++i)");
    text.line("const double step = (pqp - qp[i]) / q[i * n + i], bare = 1 + step;");
    text.line("p[i] = p[i] + step;");
    text.line("const double a = step * q[i * n + i], b = 2 * qp[i];");
    text.line("const double c = step * (a + b);");
    text.line("pqp = (pqp + c) / (bare * bare);");
    text.open("for (ptrdiff_t j = 0; j < n; ++j)");
    text.line("const double d = step * q[i * n + j];");
    text.line("qp[j] = (qp[j] + d) / bare;");
    text.line("p[j] = p[j] / bare;");
    text.close();
    text.close();
    text.close();
    text.line("for (ptrdiff_t i = 0; i < n; ++i) s[i] = p[i];");
    text.close();
  });
}

void write_svm_classifier(const Call& call, std::string& why) {
  const auto& model = call.node.parsed_as<ml::SvmClassification>();
  Prediction p(call, std::max(model.raw, model.columns));
  Text& text = p.text();
  p.open();
  if (model.supports == 0) {
    write_responses(p, model, 0, why);
    text.line("for (ptrdiff_t i = 0; i < {}; ++i) s[i] = s[i] + {};", model.classes, literal(model.rho[0]));
    p.choose_label(model.classes);
  } else {
    write_responses(p, model, model.pairs() + model.classes, why);
    write_decisions(p, model);
    p.choose_label(model.classes, model.pairs());
    if (!model.prob_a.empty()) {
      const std::string exp = p.writer().functions().library("exp");
      if (exp.empty()) why = "its probabilities are of the C library's exp (libm allows it)";
      text.line("{}(s, {}, {}, {}, s + {});", couple_function(p.writer().functions(), exp), model.classes,
                doubles(p.writer(), "prob_a", model.prob_a), doubles(p.writer(), "prob_b", model.prob_b),
                model.pairs() + model.classes + model.supports);
    } else if (model.classes == 2) {
      p.spread(ml::is_of_probabilities(model.post));
    }
  }
  if (!p.transform(model.post, model.columns)) why = kTransformOfLibrary;
  p.store_scores(1, model.columns);
  p.store_label(model.labels);
  p.close();
}

constexpr std::string_view kDomain = "ai.onnx.ml";
constexpr OperatorRow kRows[] = {
    {"LinearRegressor", kDomain, write_linear_regressor},
    {"LinearClassifier", kDomain, write_linear_classifier},
    {"SVMRegressor", kDomain, write_svm_regressor},
    {"SVMClassifier", kDomain, write_svm_classifier},
};

}  // namespace

std::span<const OperatorRow> linear_model_operators() {
  return kRows;
}

}  // namespace treadle::c
