#include "ops/ml/predict.h"

#include <cmath>

namespace treadle::ml {

Result<PostTransform> read_post_transform(const ir::Attributes& attributes) {
  const std::string_view name = attributes.get_string("post_transform", "NONE");
  if (name == "NONE") return PostTransform::kNone;
  if (name == "SOFTMAX") return PostTransform::kSoftmax;
  if (name == "LOGISTIC") return PostTransform::kLogistic;
  if (name == "SOFTMAX_ZERO") return PostTransform::kSoftmaxZero;
  if (name == "PROBIT") return PostTransform::kProbit;
  return error(Code::kInvalidModel,
               "attribute post_transform is '{}', expected NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT", name);
}

double logistic(double x) {
  return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}

namespace {

// The inverse of the error function, by Winitzki's approximation, which onnxruntime uses for probit as well.
double inverse_erf(double x) {
  const double log = std::log((1 - x) * (1 + x));
  const double a = 2 / (3.14159 * 0.147) + 0.5 * log;
  return std::copysign(std::sqrt(-a + std::sqrt(a * a - log / 0.147)), x);
}

// With `keep_zeros`, zeros stay zeros.
void softmax(std::span<double> scores, bool keep_zeros) {
  double highest = scores.empty() ? 0 : scores[largest(scores)], sum = 0;
  for (double& s : scores) {
    if (keep_zeros && std::abs(s) <= 1e-7) {
      s = 0;
      continue;
    }
    s = std::exp(s - highest);
    sum += s;
  }
  for (double& s : scores) s = sum != 0 ? s / sum : s;
}

}  // namespace

void transform(PostTransform post, std::span<double> scores) {
  switch (post) {
    case PostTransform::kNone:
      return;
    case PostTransform::kSoftmax:
      return softmax(scores, false);
    case PostTransform::kSoftmaxZero:
      return softmax(scores, true);
    case PostTransform::kLogistic:
      for (double& s : scores) s = logistic(s);
      return;
    case PostTransform::kProbit:
      for (double& s : scores) s = std::sqrt(2.0) * inverse_erf(2 * s - 1);
      return;
  }
}

size_t largest(std::span<const double> scores) {
  size_t best = 0;
  for (size_t i = 1; i < scores.size(); ++i) {
    if (scores[i] > scores[best]) best = i;
  }
  return best;
}

Labels read_labels(const ir::Attributes& attributes, const char* integers) {
  const auto texts = attributes.get_strings("classlabels_strings");
  const auto numbers = attributes.get_ints(integers);
  return {{texts.begin(), texts.end()}, {numbers.begin(), numbers.end()}};
}

Rows rows_of(const Dims& dims) {
  if (dims.size() == 2) return {dims[0], dims[1]};
  return {1, dims.empty() ? 1 : dims[0]};
}

Dim row_count(const Shape& x) {
  return x.size() == 2 ? x[0] : Dim(1);
}

Status check_rows(const Shape& x, int64_t least_features) {
  if (x.size() != 1 && x.size() != 2) {
    return error(Code::kInvalidArgument, "X has shape {}, expected [N, C] or [C]", to_string(x));
  }
  if (x.back().value_or(least_features) >= least_features) return {};
  return error(Code::kInvalidArgument, "X has shape {}, expected rows of at least {} features", to_string(x),
               least_features);
}

}  // namespace treadle::ml
