#pragma once
// Shared parts of ai.onnx.ml's predictors (ops/ml/predict.h): rows of features in, scores and labels out.

#include <functional>
#include <string>
#include <vector>

#include "c/writer.h"
#include "ops/ml/predict.h"

namespace treadle::c {

// The code of a row between its features and its scores. `x` is the row, `s` its scores, doubles.
class Prediction {
 public:
  // `scores`: doubles that a row needs.
  Prediction(const Call& call, size_t scores);

  Writer& writer() const { return call_.writer; }
  Text& text() const { return call_.writer.text(); }
  int64_t features() const { return rows_.features; }
  ElementType type() const { return call_.type(0); }
  // Feature j of the row as a double.
  std::string feature(const std::string& j) const;

  // Opens the loop over rows, and closes it.
  void open();
  void close();
  // Declares `label`, the first of the `n` largest scores, from score `first` on.
  void choose_label(size_t n, size_t first = 0);
  // scores[0] becomes the second of two.
  void spread(bool probability);
  // Transforms the first `n` scores. False: only the C library can, and it is not allowed.
  bool transform(ml::PostTransform post, size_t n);
  // Stores scores in output `output`, and the label in output 0.
  void store_scores(size_t output, size_t columns);
  void store_label(const ml::Labels& labels);

 private:
  const Call& call_;
  ml::Rows rows_;
  std::string scores_;
};

// 1 / (1 + e^-x), of the C library's `exp`.
std::string logistic_function(Functions& f, const std::string& exp);

// Why a predictor cannot be written whose transform needs the C library.
inline constexpr const char* kTransformOfLibrary = "the transform of its scores is the C library's (libm allows it)";

}  // namespace treadle::c
