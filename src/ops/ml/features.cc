// Operators on feature tables: Scaler, Normalizer, Binarizer, Imputer, ArrayFeatureExtractor.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/convert.h"
#include "op/axis_rules.h"
#include "op/moves.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/pieces.h"
#include "op/refused_element.h"
#include "ops/costs.h"

namespace treadle::ml {

namespace {

Status infer_float_table(InferContext& ctx) {
  if (const Shape* x = ctx.shape(0)) {
    ctx.set_output(0, ElementType::kFloat, *x);
  } else {
    ctx.set_output(0, ElementType::kFloat);
  }
  return {};
}

// The contents change, so known contents of the input do not carry over.
Status infer_same_table(InferContext& ctx) {
  ctx.set_output(0, ctx.input(0));
  return {};
}

// A tensor as rows along its last axis.
struct Table {
  int64_t rows = 1, columns = 1;

  explicit Table(const Dims& dims) : columns(dims.empty() ? 1 : dims.back()) {
    for (size_t i = 0; i + 1 < dims.size(); ++i) rows *= dims[i];
  }
};

// Estimated time of a row.
double row_ns(const Table& table) {
  return 2 + static_cast<double>(table.columns);
}

// Checks that there is one value for all columns, or one per column.
Status check_per_column(const InferContext& ctx, const char* name, size_t found) {
  const Shape* x = ctx.shape(0);
  const Dim columns = !x ? Dim::unknown() : x->empty() ? Dim(1) : x->back();
  if (found == 1 || (found > 0 && !columns.is_known()) || columns.is_known(static_cast<int64_t>(found))) return {};
  return error(Code::kInvalidModel, "attribute {} has {} entries, expected 1 or one for each of {} features", name,
               found, columns.to_string());
}

// ---- Scaler: (x - offset) * scale ----

Status infer_scaler(InferContext& ctx) {
  for (const char* name : {"offset", "scale"}) {
    const size_t found = ctx.attributes().get_floats(name).size();
    if (found > 0) TREADLE_TRY(check_per_column(ctx, name, found));
  }
  return infer_float_table(ctx);
}

struct ScalerState {
  Table table;
  std::vector<float> offset, scale;
  kernels::TileConverter widen;
};

uint32_t run_scaler(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const ScalerState*>(state);
  auto* y = static_cast<float*>(slots[operands[1]]);
  kernels::convert(s.widen, slots[operands[0]], y, static_cast<size_t>(s.table.rows * s.table.columns));
  StopPoll stop;
  for (int64_t i = 0; i < s.table.rows; ++i, y += s.table.columns) {
    for (size_t j = 0; j < s.offset.size(); ++j) y[j] = (y[j] - s.offset[j]) * s.scale[j];
    if (stop.after(row_ns(s.table))) return fail(KernelError::kStopped);
  }
  return 0;
}

// The attribute's values, repeated to one per column.
std::vector<float> spread(const PrepareContext& ctx, const char* name, int64_t columns, float otherwise) {
  const auto given = ctx.attributes().get_floats(name);
  if (given.empty()) return std::vector<float>(static_cast<size_t>(columns), otherwise);
  if (given.size() == 1) return std::vector<float>(static_cast<size_t>(columns), given[0]);
  return {given.begin(), given.end()};
}

Status prepare_scaler(PrepareContext& ctx) {
  const Operand& x = ctx.inputs[0];
  const Table table(x.dims);
  std::vector<float> offset = spread(ctx, "offset", table.columns, 0);
  std::vector<float> scale = spread(ctx, "scale", table.columns, 1);
  ctx.set_kernel(run_scaler,
                 ctx.make_state<ScalerState>(ScalerState{table, std::move(offset), std::move(scale),
                                                         kernels::make_converter(x.type, ElementType::kFloat)}));
  return {};
}

// ---- Normalizer: rows divided by their largest value, or by their L1 or L2 norm ----

enum class Norm : uint8_t { kMax, kL1, kL2 };

struct NormalizerState {
  Table table;
  Norm norm = Norm::kMax;
  kernels::TileConverter widen;
};

float norm_of(Norm norm, const float* x, int64_t n) {
  double sum = 0;
  float highest = 0;
  for (int64_t i = 0; i < n; ++i) {
    highest = i == 0 ? x[0] : std::max(highest, x[i]);
    const double v = static_cast<double>(x[i]);
    sum += norm == Norm::kL1 ? std::abs(v) : v * v;
  }
  if (norm == Norm::kMax) return highest;
  return static_cast<float>(norm == Norm::kL1 ? sum : std::sqrt(sum));
}

uint32_t run_normalizer(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const NormalizerState*>(state);
  auto* y = static_cast<float*>(slots[operands[1]]);
  kernels::convert(s.widen, slots[operands[0]], y, static_cast<size_t>(s.table.rows * s.table.columns));
  StopPoll stop;
  for (int64_t i = 0; i < s.table.rows; ++i, y += s.table.columns) {
    if (stop.after(2 * row_ns(s.table))) return fail(KernelError::kStopped);
    const float norm = norm_of(s.norm, y, s.table.columns);
    if (norm == 0) continue;
    for (int64_t j = 0; j < s.table.columns; ++j) y[j] /= norm;
  }
  return 0;
}

Status prepare_normalizer(PrepareContext& ctx) {
  const Operand& x = ctx.inputs[0];
  const std::string_view name = ctx.attributes().get_string("norm", "MAX");
  if (name != "MAX" && name != "L1" && name != "L2") {
    return error(Code::kInvalidModel, "attribute norm is '{}', expected MAX, L1 or L2", name);
  }
  const Norm norm = name == "MAX" ? Norm::kMax : name == "L1" ? Norm::kL1 : Norm::kL2;
  ctx.set_kernel(run_normalizer, ctx.make_state<NormalizerState>(NormalizerState{
                                     Table(x.dims), norm, kernels::make_converter(x.type, ElementType::kFloat)}));
  return {};
}

// ---- Binarizer and Imputer: element by element, in x's own type ----

struct BinarizerState {
  size_t count = 0;
  float threshold = 0;
};

template <class T>
uint32_t run_binarizer(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const BinarizerState*>(state);
  const auto* x = static_cast<const T*>(slots[operands[0]]);
  auto* y = static_cast<T*>(slots[operands[1]]);
  const auto threshold = static_cast<double>(s.threshold);
  return unless_stopped(
      in_pieces(static_cast<int64_t>(s.count), costs::kBinarizedElementNs, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) y[i] = static_cast<double>(x[i]) > threshold ? T(1) : T(0);
      }));
}

template <class T>
struct ImputerState {
  Table table;
  std::vector<T> values;  // one per column
  T replaced{};
};

template <class T>
uint32_t run_imputer(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const ImputerState<T>*>(state);
  const auto* x = static_cast<const T*>(slots[operands[0]]);
  auto* y = static_cast<T*>(slots[operands[1]]);
  const bool replaces_nan = s.replaced != s.replaced;
  StopPoll stop;
  for (int64_t i = 0; i < s.table.rows; ++i) {
    if (stop.after(row_ns(s.table))) return fail(KernelError::kStopped);
    for (size_t j = 0; j < s.values.size(); ++j, ++x, ++y) {
      const bool missing = replaces_nan ? *x != *x : *x == s.replaced;
      *y = missing ? s.values[j] : *x;
    }
  }
  return 0;
}

Status infer_imputer(InferContext& ctx) {
  const char* const name = is_float(ctx.element(0)) ? "imputed_value_floats" : "imputed_value_int64s";
  const size_t found =
      is_float(ctx.element(0)) ? ctx.attributes().get_floats(name).size() : ctx.attributes().get_ints(name).size();
  if (ctx.element(0) != ElementType::kUndefined) TREADLE_TRY(check_per_column(ctx, name, found));
  return infer_same_table(ctx);
}

template <class T, class Values>
Status prepare_imputer_as(PrepareContext& ctx, Values values, double replaced) {
  const Table table(ctx.inputs[0].dims);
  auto* s = ctx.make_state<ImputerState<T>>(ImputerState<T>{table, {}, static_cast<T>(replaced)});
  for (size_t j = 0; j < static_cast<size_t>(table.columns); ++j) {
    s->values.push_back(static_cast<T>(values[values.size() == 1 ? 0 : j]));
  }
  ctx.set_kernel(run_imputer<T>, s);
  return {};
}

Status prepare_imputer(PrepareContext& ctx) {
  const ir::Attributes& a = ctx.attributes();
  const auto floats = [&]<class T>(T) {
    return prepare_imputer_as<T>(ctx, a.get_floats("imputed_value_floats"),
                                 static_cast<double>(a.get_float("replaced_value_float")));
  };
  const auto integers = [&]<class T>(T) {
    return prepare_imputer_as<T>(ctx, a.get_ints("imputed_value_int64s"),
                                 static_cast<double>(a.get_int("replaced_value_int64")));
  };
  switch (ctx.inputs[0].type) {
    case ElementType::kFloat:
      return floats(float{});
    case ElementType::kDouble:
      return floats(double{});
    case ElementType::kInt32:
      return integers(int32_t{});
    default:
      return integers(int64_t{});
  }
}

Status prepare_binarizer(PrepareContext& ctx) {
  const Operand& x = ctx.inputs[0];
  const auto* s = ctx.make_state<BinarizerState>(
      BinarizerState{static_cast<size_t>(x.element_count()), ctx.attributes().get_float("threshold")});
  ctx.set_kernel(x.type == ElementType::kFloat    ? run_binarizer<float>
                 : x.type == ElementType::kDouble ? run_binarizer<double>
                 : x.type == ElementType::kInt32  ? run_binarizer<int32_t>
                                                  : run_binarizer<int64_t>,
                 s);
  return {};
}

// ---- ArrayFeatureExtractor: columns Y of X along its last axis ----

Status infer_extractor(InferContext& ctx) {
  const Shape* x = ctx.shape(0);
  if (!x) return ctx.set_output(0, ctx.element(0)), Status();
  if (x->empty()) return error(Code::kInvalidArgument, "X is a scalar, expected rank 1 or more");
  Shape out = *x;
  if (out.size() == 1) out = {Dim(1), out[0]};
  out.back() = length_of(ctx, 1);
  ctx.set_output(0, ctx.element(0), std::move(out));
  return {};
}

struct ExtractorState {
  Table table;
  int64_t picks = 0;
  size_t width = 4;
};

uint32_t run_extractor(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const ExtractorState*>(state);
  const auto* x = static_cast<const std::byte*>(slots[operands[0]]);
  const auto* picks = static_cast<const int64_t*>(slots[operands[1]]);
  auto* y = static_cast<std::byte*>(slots[operands[2]]);
  for (int64_t j = 0; j < s.picks; ++j) {
    if (picks[j] < 0 || picks[j] >= s.table.columns) {
      return refuse_element({"Y", j}, picks[j], 0, s.table.columns - 1);
    }
  }
  StopPoll stop;
  for (int64_t i = 0; i < s.table.rows; ++i, x += static_cast<size_t>(s.table.columns) * s.width) {
    const auto pick = [&](int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end; ++j, y += s.width) {
        std::memcpy(y, x + static_cast<size_t>(picks[j]) * s.width, s.width);
      }
    };
    if (!in_pieces(s.picks, costs::kFeaturePickNs, stop, pick)) return fail(KernelError::kStopped);
  }
  return 0;
}

void say_extracted(PrepareContext& ctx, const Table& table) {
  const auto* picks = static_cast<const int64_t*>(ctx.inputs[1].constant);
  const int64_t count = ctx.inputs[1].element_count();
  Moves* moves = picks ? moves_of(ctx) : nullptr;
  for (size_t e = 0; moves && e < moves->from[0].size(); ++e) {
    const auto element = static_cast<int64_t>(e);
    const int64_t column = picks[element % count];
    if (column < 0 || column >= table.columns) return withdraw_moves(ctx);
    moves->from[0][e] = element / count * table.columns + column;
  }
}

Status prepare_extractor(PrepareContext& ctx) {
  const Operand& x = ctx.inputs[0];
  say_extracted(ctx, Table(x.dims));
  ctx.set_kernel(run_extractor, ctx.make_state<ExtractorState>(
                                    ExtractorState{Table(x.dims), ctx.inputs[1].element_count(), byte_width(x.type)}));
  return {};
}

Status extracted_axes(AxisContext& c) {
  TREADLE_TRY(axes::only_first(c));
  if (c.in(0) == c.rank(0) - 1) return looks_along("it picks positions of it");
  return c.give(0, c.in(0));
}

}  // namespace

}  // namespace treadle::ml

TREADLE_OP(Scaler, "ai.onnx.ml") {
  op.since(1)
      .in("X", "T")
      .out("Y", "tensor(float)")
      .optional("offset", ir::AttributeKind::kFloats)
      .optional("scale", ir::AttributeKind::kFloats)
      .type("T", types::kMlNumbers);
  op.infer(ml::infer_scaler).prepare(ml::prepare_scaler).axes(axes::rows_of_table);
}

TREADLE_OP(Normalizer, "ai.onnx.ml") {
  op.since(1).in("X", "T").out("Y", "tensor(float)").attr("norm", "MAX").type("T", types::kMlNumbers);
  op.infer(ml::infer_float_table).prepare(ml::prepare_normalizer).axes(axes::rows_of_table);
}

TREADLE_OP(Binarizer, "ai.onnx.ml") {
  op.since(1).in("X", "T").out("Y", "T").attr("threshold", 0.0).type("T", types::kMlNumbers);
  op.infer(ml::infer_same_table).prepare(ml::prepare_binarizer).axes(axes::element_by_element, axes::unchanged);
}

TREADLE_OP(Imputer, "ai.onnx.ml") {
  op.since(1)
      .in("X", "T")
      .out("Y", "T")
      .optional("imputed_value_floats", ir::AttributeKind::kFloats)
      .optional("imputed_value_int64s", ir::AttributeKind::kInts)
      .attr("replaced_value_float", 0.0)
      .attr("replaced_value_int64", 0)
      .type("T", types::kMlNumbers);
  op.infer(ml::infer_imputer).prepare(ml::prepare_imputer).axes(axes::rows_of_table);
}

TREADLE_OP(ArrayFeatureExtractor, "ai.onnx.ml") {
  op.since(1)
      .in("X", "T")
      .in("Y", "tensor(int64)")
      .out("Z", "T")
      .type("T", tensors(ElementType::kFloat, ElementType::kInt32, ElementType::kInt64, ElementType::kString,
                         ElementType::kDouble));
  op.infer(ml::infer_extractor)
      .prepare(ml::prepare_extractor)
      .compute(compute_by_position)
      .moves_elements()
      .can_fail()
      .axes(ml::extracted_axes);
}
