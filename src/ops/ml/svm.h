#pragma once
// The models of SVMRegressor and SVMClassifier.

#include <algorithm>
#include <vector>

#include "ops/costs.h"
#include "ops/ml/predict.h"

namespace treadle::ml {

enum class SvmKernel : uint8_t { kLinear, kPoly, kRbf, kSigmoid };

struct KernelFunction {
  SvmKernel kind = SvmKernel::kLinear;
  double gamma = 0, offset = 0, degree = 0;

  // out[v] = k(x, vector v) for `count` vectors, [features][count]. All are computed side by side, so that their sums
  // stay in neighbouring registers.
  template <class T>
  void operator()(const T* x, const double* vectors, size_t features, size_t count, double* out) const {
    std::fill_n(out, count, 0.0);
    StopPoll stop;
    for (size_t j = 0; j < features && !stop.after(costs::kSvmTermNs * static_cast<double>(count));
         ++j, vectors += count) {
      const auto xj = static_cast<double>(x[j]);
      if (kind == SvmKernel::kRbf) {
        for (size_t v = 0; v < count; ++v) out[v] += (xj - vectors[v]) * (xj - vectors[v]);
      } else {
        for (size_t v = 0; v < count; ++v) out[v] += xj * vectors[v];
      }
    }
    apply(out, count);
  }

 private:
  void apply(double* out, size_t count) const;
};

// Shared by both: support vectors or, without any, rows of coefficients.
struct SvmBase {
  std::vector<double> coefficients, rho;
  std::vector<double> vectors;  // [features][count]
  KernelFunction kernel;
  PostTransform post = PostTransform::kNone;
  size_t supports = 0, features = 0;
  size_t count = 0;  // number of vectors
  size_t raw = 1, columns = 1;
  int64_t least_features = 0;

  double row_ns() const {
    return static_cast<double>(count) * (costs::kSvmFunctionNs + costs::kSvmTermNs * static_cast<double>(features));
  }
  Status read(const ir::Attributes& attributes, int64_t support_count, size_t rows);
};

struct SvmRegression : SvmBase {
  bool one_class = false;

  template <class T>
  void evaluate(const T* x, size_t rows, size_t width, double* scores, size_t stride) const {
    StopPoll stop;
    for (size_t i = 0; i < rows && !stop.after(row_ns()); ++i, x += width, scores += stride) {
      kernel(x, vectors.data(), features, count, scores);
      double sum = rho[0];
      for (size_t v = 0; v < count; ++v) sum += supports ? coefficients[v] * scores[v] : scores[v];
      scores[0] = one_class ? (sum > 0 ? 1 : -1) : sum;
    }
  }
  size_t finish(double* scores) const {
    transform(post, {scores, columns});
    return 0;
  }
};

// One against one: every pair of classes has a decision function over the support vectors of both. The class that wins
// most pairs is the result. With prob_a and prob_b, scores are probabilities by pairwise coupling.
struct SvmClassification : SvmBase {
  Labels labels;
  std::vector<int64_t> per_class;
  std::vector<double> prob_a, prob_b;
  size_t classes = 0;

  size_t pairs() const { return classes * (classes - 1) / 2; }
  // Decisions of pairs, votes for classes, kernels of vectors, and the working memory of couple().
  size_t scratch() const { return pairs() + classes + supports + (prob_a.empty() ? 0 : 2 * classes * (classes + 1)); }
  template <class T>
  void decide(const T* x, double* scores) const;
  template <class T>
  void evaluate(const T* x, size_t rows, size_t width, double* scores, size_t stride) const {
    StopPoll stop;
    for (size_t i = 0; i < rows && !stop.after(row_ns()); ++i) decide(x + i * width, scores + i * stride);
  }
  size_t finish(double* scores) const;
  void couple(double* scores) const;
  Status check() const;
};

}  // namespace treadle::ml
