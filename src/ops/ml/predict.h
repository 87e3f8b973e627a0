#pragma once
// Shared parts of ai.onnx.ml's predictors: rows of features in, scores out, in double; transforms of scores, and the
// choice of a label.

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "kernels/convert.h"
#include "op/op_def.h"
#include "op/pieces.h"
#include "ops/costs.h"

namespace treadle::ml {

enum class PostTransform : uint8_t { kNone, kSoftmax, kLogistic, kSoftmaxZero, kProbit };

Result<PostTransform> read_post_transform(const ir::Attributes& attributes);
void transform(PostTransform post, std::span<double> scores);
double logistic(double x);
// Whether the transform takes probabilities, so that two of them add up to 1. Other transforms take any numbers.
inline bool is_of_probabilities(PostTransform post) {
  return post == PostTransform::kProbit;
}
// scores[0] tells two classes apart: it becomes the score of the second. The score of the first is its complement to 1,
// or its negative.
inline void spread_score(bool probability, double* scores) {
  scores[1] = scores[0];
  scores[0] = probability ? 1 - scores[1] : -scores[1];
}

// Index of the first of the largest scores; 0 if empty.
size_t largest(std::span<const double> scores);

// Class labels of a classifier: strings or integers; without either 0, 1, ...
struct Labels {
  std::vector<std::string> strings;
  std::vector<int64_t> integers;

  bool are_strings() const { return !strings.empty(); }
  size_t size() const { return are_strings() ? strings.size() : integers.size(); }
  int64_t integer(size_t i) const { return i < integers.size() ? integers[i] : static_cast<int64_t>(i); }
};
// `integers`: name of the attribute with integers, which differs between operators.
Labels read_labels(const ir::Attributes& attributes, const char* integers);

// X as rows of features: [N, C], or [C] as one row.
struct Rows {
  int64_t count = 1, features = 1;
};
Rows rows_of(const Dims& dims);
Dim row_count(const Shape& x);
Status check_rows(const Shape& x, int64_t least_features = 0);

// A model, parsed from a node's attributes, computes `raw` scores of each row. finish() turns them into `columns`
// scores and returns the index of the label.
//
//   struct Model {
//     size_t raw, columns;
//     int64_t least_features;
//     double row_ns() const;  // estimated time of a row
//     // Up to kRowBlock rows, with `stride` scores each, at least max(raw, columns). A long evaluation asks whether to
//     // stop, and may end early.
//     template <class T>  // float, double
//     void evaluate(const T* x, size_t rows, size_t features, double* scores, size_t stride) const;
//     size_t finish(double* scores) const;
//     Labels labels;  // classifiers only
//   };
inline constexpr size_t kRowBlock = 64;

// A model over rows of known size. Features are compared and summed in their own type if that is float, else in double.
template <class Model>
struct Predictor {
  const Model* model;
  Rows rows;
  ElementType type;
  kernels::TileConverter widen;  // for types that are neither float nor double

  bool converts() const { return type != ElementType::kFloat && type != ElementType::kDouble; }
  size_t scores_per_row() const { return std::max(model->raw, model->columns); }
  size_t block_rows() const { return std::min(kRowBlock, static_cast<size_t>(rows.count)); }
  size_t scratch_doubles() const {
    return block_rows() * (scores_per_row() + (converts() ? static_cast<size_t>(rows.features) : 0));
  }

  // Calls `store(row, scores)` with finished scores, and `label(row, index)` with the label. False: the work is to
  // stop.
  template <class Store, class Label>
  bool run(const void* x, double* scratch, Store&& store, Label&& label) const {
    const size_t stride = scores_per_row(), features = static_cast<size_t>(rows.features);
    double* const widened = scratch + block_rows() * stride;
    const double row_ns = model->row_ns() + costs::kPredictedRowNs;
    StopPoll stop;
    for (int64_t first = 0; first < rows.count; first += static_cast<int64_t>(kRowBlock)) {
      const size_t count = std::min(kRowBlock, static_cast<size_t>(rows.count - first));
      const auto* block = static_cast<const std::byte*>(x) + static_cast<size_t>(first) * features * byte_width(type);
      if (type == ElementType::kFloat) {
        model->evaluate(reinterpret_cast<const float*>(block), count, features, scratch, stride);
      } else {
        if (converts()) kernels::convert(widen, block, widened, count * features);
        model->evaluate(converts() ? widened : reinterpret_cast<const double*>(block), count, features, scratch,
                        stride);
      }
      for (size_t i = 0; i < count; ++i) {
        const int64_t row = first + static_cast<int64_t>(i);
        label(row, model->finish(scratch + i * stride));
        store(row, scratch + i * stride);
      }
      if (stop.after(row_ns * static_cast<double>(count))) return false;
    }
    return true;
  }
};

template <class Model>
Result<Predictor<Model>> make_predictor(const Model& model, ElementType type, const Dims& dims) {
  Predictor<Model> p{&model, rows_of(dims), type, {}};
  if (p.rows.features < model.least_features) {
    return error(Code::kInvalidArgument, "X has shape {}, expected rows of at least {} features", to_string(dims),
                 model.least_features);
  }
  if (p.converts()) p.widen = kernels::make_converter(type, ElementType::kDouble);
  return p;
}

inline void store_floats(const double* scores, size_t count, float* out) {
  for (size_t j = 0; j < count; ++j) out[j] = static_cast<float>(scores[j]);
}

// ---- Regressors: X -> Y [N, columns], float by default ----

template <class Model>
Status infer_regressor(InferContext& ctx) {
  const Shape* x = ctx.shape(0);
  const Model& model = ctx.node.parsed_as<Model>();
  if (x) TREADLE_TRY(check_rows(*x, model.least_features));
  const auto columns = static_cast<int64_t>(model.columns);
  ctx.set_output(0, ElementType::kFloat, {x ? row_count(*x) : Dim::unknown(), Dim(columns)});
  return {};
}

template <class Model>
uint32_t run_regressor(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& p = *static_cast<const Predictor<Model>*>(state);
  auto* y = static_cast<float*>(slots[operands[1]]);
  const size_t columns = p.model->columns;
  const auto store = [&](int64_t row, const double* scores) {
    store_floats(scores, columns, y + static_cast<size_t>(row) * columns);
  };
  return unless_stopped(
      p.run(slots[operands[0]], static_cast<double*>(slots[operands[2]]), store, [](int64_t, size_t) {}));
}

template <class Model>
Status prepare_regressor(PrepareContext& ctx) {
  const Operand& x = ctx.inputs[0];
  TREADLE_ASSIGN(auto predictor, make_predictor(ctx.node.parsed_as<Model>(), x.type, x.dims));
  ctx.scratch_bytes = predictor.scratch_doubles() * sizeof(double);
  ctx.set_kernel(run_regressor<Model>, ctx.make_state<Predictor<Model>>(predictor));
  return {};
}

// ---- Classifiers: X -> labels [N], Z float [N, columns] ----

template <class Model>
Status infer_classifier(InferContext& ctx) {
  const Model& model = ctx.node.parsed_as<Model>();
  const Shape* x = ctx.shape(0);
  if (x) TREADLE_TRY(check_rows(*x, model.least_features));
  const Dim rows = x ? row_count(*x) : Dim::unknown();
  ctx.set_output(0, model.labels.are_strings() ? ElementType::kString : ElementType::kInt64, {rows});
  ctx.set_output(1, ElementType::kFloat, {rows, Dim(static_cast<int64_t>(model.columns))});
  return {};
}

// y: String or int64_t; y and z may be null. False: the work is to stop.
template <class Model, class Label>
bool classify(const Predictor<Model>& p, const void* x, Label* y, float* z, double* scratch) {
  const size_t columns = p.model->columns;
  const Labels& labels = p.model->labels;
  return p.run(
      x, scratch,
      [&](int64_t row, const double* scores) {
        if (z) store_floats(scores, columns, z + static_cast<size_t>(row) * columns);
      },
      [&](int64_t row, size_t i) {
        if (!y) return;
        if constexpr (std::is_same_v<Label, int64_t>) {
          y[row] = labels.integer(i);
        } else if (i < labels.strings.size()) {
          y[row] = labels.strings[i];
        }
      });
}

template <class Model>
uint32_t run_classifier(const void* state, void* const* slots, const uint32_t* operands) {
  return unless_stopped(classify(*static_cast<const Predictor<Model>*>(state), slots[operands[0]],
                                 static_cast<int64_t*>(slots[operands[1]]), static_cast<float*>(slots[operands[2]]),
                                 static_cast<double*>(slots[operands[3]])));
}

template <class Model>
Status prepare_classifier(PrepareContext& ctx) {
  const Operand& x = ctx.inputs[0];
  TREADLE_ASSIGN(auto predictor, make_predictor(ctx.node.parsed_as<Model>(), x.type, x.dims));
  ctx.scratch_bytes = predictor.scratch_doubles() * sizeof(double);
  ctx.set_kernel(run_classifier<Model>, ctx.make_state<Predictor<Model>>(predictor));
  return {};
}

// Only if labels are strings.
template <class Model>
Status compute_classifier(ComputeContext& ctx) {
  const Tensor& x = ctx.tensor(0);
  TREADLE_TRY(check_rows(to_shape(x.dims())));
  const Model& model = ctx.node.parsed_as<Model>();
  TREADLE_ASSIGN(const auto p, make_predictor(model, x.type(), x.dims()));
  const bool strings = model.labels.are_strings();
  TREADLE_ASSIGN(Tensor * y, ctx.allocate(0, strings ? ElementType::kString : ElementType::kInt64, {p.rows.count}));
  float* z = nullptr;
  if (ctx.outputs.size() > 1) {
    TREADLE_ASSIGN(Tensor * scores,
                   ctx.allocate(1, ElementType::kFloat, {p.rows.count, static_cast<int64_t>(model.columns)}));
    z = scores->mutable_data<float>();
  }
  CountedVector<double> scratch(p.scratch_doubles());
  const bool done = strings ? classify(p, x.raw(), y->mutable_data<String>(), z, scratch.data())
                            : classify(p, x.raw(), y->mutable_data<int64_t>(), z, scratch.data());
  return done ? Status() : stopped();
}

}  // namespace treadle::ml
