#pragma once
// The models of LinearRegressor and LinearClassifier.

#include <algorithm>
#include <vector>

#include "ops/ml/predict.h"

namespace treadle::ml {

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

}  // namespace treadle::ml
