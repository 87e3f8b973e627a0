#pragma once
// The models of TreeEnsemble, TreeEnsembleRegressor and TreeEnsembleClassifier.

#include <string>

#include "ops/ml/forest.h"
#include "ops/ml/predict.h"

namespace treadle::ml {

// Of TreeEnsemble.
struct TreeScores {
  Forest forest;
  PostTransform post = PostTransform::kNone;
  size_t raw = 1, columns = 1;
  int64_t least_features = 0;

  double row_ns() const { return forest.row_ns(); }
  template <class T>
  void evaluate(const T* x, size_t rows, size_t features, double* scores, size_t stride) const {
    forest.evaluate(x, rows, features, scores, stride);
  }
  size_t finish(double* scores) const {
    transform(post, {scores, columns});
    return 0;
  }
};

// Shared by TreeEnsembleRegressor and TreeEnsembleClassifier.
struct Trees {
  Forest forest;
  PostTransform post = PostTransform::kNone;
  size_t raw = 1, columns = 1;
  int64_t least_features = 0;

  // `prefix`: "target" or "class".
  Status read(const ir::Attributes& attributes, const std::string& prefix, size_t targets);
  double row_ns() const { return forest.row_ns(); }
  template <class T>
  void evaluate(const T* x, size_t rows, size_t features, double* scores, size_t stride) const {
    forest.evaluate(x, rows, features, scores, stride);
  }
};

struct TreeRegression : Trees {
  size_t finish(double* scores) const {
    transform(post, {scores, columns});
    return 0;
  }
};

// If the leaves of two classes name the first only, their sum is the score of the second. Without a transform it is a
// probability if no weight is negative.
struct TreeClassification : Trees {
  Labels labels;
  bool one_score = false, probability = true;

  bool spreads_probability() const { return post == PostTransform::kNone ? probability : is_of_probabilities(post); }
  size_t finish(double* scores) const {
    if (one_score) spread_score(spreads_probability(), scores);
    const size_t label = largest({scores, columns});
    transform(post, {scores, columns});
    return label;
  }
};

}  // namespace treadle::ml
