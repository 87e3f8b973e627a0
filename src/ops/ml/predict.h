#pragma once
// What the predictors of ai.onnx.ml share: rows of features in, scores out, in double; how scores are transformed, and
// how they choose a label.

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/convert.h"
#include "op/op_def.h"

namespace treadle::ml {

enum class PostTransform : uint8_t { kNone, kSoftmax, kLogistic, kSoftmaxZero, kProbit };

Result<PostTransform> read_post_transform(const ir::Attributes& attributes);
void transform(PostTransform post, std::span<double> scores);
double logistic(double x);

// Index of the first of the largest; 0 when empty.
size_t largest(std::span<const double> scores);

// The class labels of a classifier: strings or integers; without either, 0, 1, ...
struct Labels {
  std::span<const std::string> strings;
  std::span<const int64_t> integers;

  bool are_strings() const { return !strings.empty(); }
  size_t size() const { return are_strings() ? strings.size() : integers.size(); }
  int64_t integer(size_t i) const { return i < integers.size() ? integers[i] : static_cast<int64_t>(i); }
};
// `integers`: the attribute's name, which differs between operators.
Labels read_labels(const ir::Attributes& attributes, const char* integers);

// X as rows of features: [N, C], or [C] as one row.
struct Rows {
  int64_t count = 1, features = 1;
};
Rows rows_of(const Dims& dims);
Dim row_count(const Shape& x);
Status check_rows(const Shape& x);

// A model computes `raw` scores of a row, then finishes them: it writes `columns` scores (at least `raw` have room) and
// returns the index of the label.
//
//   struct Model {
//     static Result<Model> read(const ir::Attributes&);
//     size_t raw, columns;
//     int64_t least_features;
//     void evaluate(const double* x, int64_t features, double* scores) const;
//     size_t finish(double* scores) const;
//   };
template <class Model>
struct Predictor {
  Model model;
  Labels labels;
  Rows rows;
  ElementType type = ElementType::kFloat;
  bool classifier = false;

  size_t scores_per_row() const { return std::max(model.raw, model.columns); }
  size_t scratch() const { return (static_cast<size_t>(rows.features) + scores_per_row()) * sizeof(double) + 64; }

  // `label(row, index)` takes the labels; z may be null.
  template <class Label>
  void run(const void* x, float* z, void* scratch_memory, Label&& label) const {
    auto* features = static_cast<double*>(scratch_memory);
    double* scores = features + rows.features;
    const size_t stride = static_cast<size_t>(rows.features) * byte_width(type);
    for (int64_t i = 0; i < rows.count; ++i) {
      kernels::cast(type, ElementType::kDouble, static_cast<const std::byte*>(x) + static_cast<size_t>(i) * stride,
                    features, static_cast<size_t>(rows.features));
      model.evaluate(features, rows.features, scores);
      label(i, model.finish(scores));
      if (!z) continue;
      for (size_t j = 0; j < model.columns; ++j) *z++ = static_cast<float>(scores[j]);
    }
  }
};

template <class Model>
Result<Predictor<Model>> make_predictor(const ir::Attributes& attributes, ElementType type, const Dims& dims) {
  TREADLE_ASSIGN(Model model, Model::read(attributes));
  Predictor<Model> p{std::move(model), {}, rows_of(dims), type, false};
  if (p.rows.features < p.model.least_features) {
    return error(Code::kInvalidArgument, "X has shape {}, expected rows of at least {} features", to_string(dims),
                 p.model.least_features);
  }
  return p;
}

// ---- Regressors: X -> Y float [N, columns] ----

template <class Model>
Status infer_regressor(InferContext& ctx) {
  const Shape* x = ctx.shape(0);
  if (x) TREADLE_TRY(check_rows(*x));
  const auto columns = Model::column_count(ctx.attributes());
  ctx.set_output(0, ElementType::kFloat, {x ? row_count(*x) : Dim::unknown(), Dim(columns)});
  return {};
}

template <class Model>
uint32_t run_regressor(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& p = *static_cast<const Predictor<Model>*>(state);
  p.run(slots[operands[0]], static_cast<float*>(slots[operands[1]]), slots[operands[2]], [](int64_t, size_t) {});
  return 0;
}

template <class Model>
Status prepare_regressor(PrepareContext& ctx) {
  const Operand& x = ctx.inputs[0];
  TREADLE_ASSIGN(auto predictor, make_predictor<Model>(ctx.attributes(), x.type, x.dims));
  ctx.scratch_bytes = predictor.scratch();
  ctx.set_kernel(run_regressor<Model>, ctx.make_state<Predictor<Model>>(std::move(predictor)));
  return {};
}

// ---- Classifiers: X -> labels [N], Z float [N, columns] ----

template <class Model>
Status infer_classifier(InferContext& ctx) {
  const Shape* x = ctx.shape(0);
  if (x) TREADLE_TRY(check_rows(*x));
  const Dim rows = x ? row_count(*x) : Dim::unknown();
  const bool strings = read_labels(ctx.attributes(), Model::kIntegerLabels).are_strings();
  ctx.set_output(0, strings ? ElementType::kString : ElementType::kInt64, {rows});
  ctx.set_output(1, ElementType::kFloat, {rows, Dim(Model::column_count(ctx.attributes()))});
  return {};
}

template <class Model>
uint32_t run_classifier(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& p = *static_cast<const Predictor<Model>*>(state);
  auto* y = static_cast<int64_t*>(slots[operands[1]]);
  p.run(slots[operands[0]], static_cast<float*>(slots[operands[2]]), slots[operands[3]], [&](int64_t row, size_t i) {
    if (y) y[row] = p.labels.integer(i);
  });
  return 0;
}

template <class Model>
Status prepare_classifier(PrepareContext& ctx) {
  const Operand& x = ctx.inputs[0];
  TREADLE_ASSIGN(auto predictor, make_predictor<Model>(ctx.attributes(), x.type, x.dims));
  predictor.labels = read_labels(ctx.attributes(), Model::kIntegerLabels);
  ctx.scratch_bytes = predictor.scratch();
  ctx.set_kernel(run_classifier<Model>, ctx.make_state<Predictor<Model>>(std::move(predictor)));
  return {};
}

// Where labels are strings.
template <class Model>
Status compute_classifier(ComputeContext& ctx) {
  const Tensor& x = ctx.tensor(0);
  TREADLE_TRY(check_rows(to_shape(x.dims())));
  TREADLE_ASSIGN(auto p, make_predictor<Model>(ctx.attributes(), x.type(), x.dims()));
  p.labels = read_labels(ctx.attributes(), Model::kIntegerLabels);
  const bool strings = p.labels.are_strings();
  TREADLE_ASSIGN(Tensor * y, ctx.allocate(0, strings ? ElementType::kString : ElementType::kInt64, {p.rows.count}));
  Tensor* z = nullptr;
  if (ctx.outputs.size() > 1) {
    TREADLE_ASSIGN(z, ctx.allocate(1, ElementType::kFloat, {p.rows.count, static_cast<int64_t>(p.model.columns)}));
  }
  std::vector<double> scratch(p.scratch() / sizeof(double));
  p.run(x.raw(), z ? z->mutable_data<float>() : nullptr, scratch.data(), [&](int64_t row, size_t i) {
    if (!strings) {
      y->mutable_data<int64_t>()[row] = p.labels.integer(i);
    } else if (i < p.labels.strings.size()) {
      y->mutable_data<std::string>()[row] = p.labels.strings[i];
    }
  });
  return {};
}

}  // namespace treadle::ml
