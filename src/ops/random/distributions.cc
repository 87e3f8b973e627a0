// RandomUniform, RandomNormal and their Like forms; Bernoulli; Multinomial.

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/convert.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/parallel.h"
#include "op/pieces.h"
#include "op/refused_element.h"
#include "ops/costs.h"
#include "ops/random/source.h"
#include "ops/random/uniform.h"

namespace treadle::random {

namespace {

// Bits of a significand. A uniform number keeps so many bits, so that rounding does not turn it into 1.
int significant_bits(ElementType type) {
  if (type == ElementType::kDouble) return 53;
  if (type == ElementType::kFloat) return 24;
  return type == ElementType::kFloat16 ? 11 : 8;
}

// The largest number of a float type that is below `high`.
double largest_below(double high, ElementType type) {
  uint64_t bits = 0;
  double x = 0;
  kernels::cast(ElementType::kDouble, type, &high, &bits, 1);
  kernels::cast(type, ElementType::kDouble, &bits, &x, 1);
  if (x < high) return x;
  const uint64_t sign = uint64_t{1} << (byte_width(type) * 8 - 1);
  if ((bits & ~sign) == 0) {
    bits = sign | 1;
  } else {
    bits = bits & sign ? bits + 1 : bits - 1;
  }
  kernels::cast(type, ElementType::kDouble, &bits, &x, 1);
  return x;
}

}  // namespace

UniformRange uniform_range(const ir::Attributes& attributes, ElementType type) {
  const double low = attributes.get_float("low", 0), high = attributes.get_float("high", 1);
  const int bits = significant_bits(type);
  const double step = std::ldexp(high - low, -bits), below = largest_below(high, type);
  const double most = low <= below && below < high ? below : std::numeric_limits<double>::infinity();
  // Subnormal steps, and ranges beyond that of float, need double.
  constexpr auto kFloatMost = static_cast<double>(std::numeric_limits<float>::max());
  const bool is_double = type == ElementType::kDouble || std::abs(high - low) > kFloatMost ||
                         (step != 0 && !std::isnormal(static_cast<float>(step)));
  return {is_double, bits, low, step, most};
}

namespace {

// ---- Types and sizes of results

// The type that attribute `dtype` names, `otherwise` if it is absent.
Result<ElementType> result_type(const InferContext& ctx, ElementType otherwise) {
  ElementType type = otherwise;
  if (ctx.attributes().has("dtype")) type = element_type_from_number(ctx.attributes().get_int("dtype"));
  const OpVersion& version = *ctx.node.version;
  const TypeConstraint* allowed = version.constraint(version.outputs[0].type);
  if (type == ElementType::kUndefined && !ctx.attributes().has("dtype")) return type;
  if (type == ElementType::kUndefined || !allowed->types.tensor.contains(type)) {
    return error(Code::kInvalidModel, "a result of type {}, expected one of {}", name(type),
                 allowed->types.to_string());
  }
  return type;
}

Status infer_shaped(InferContext& ctx) {
  Shape shape;
  for (const int64_t size : ctx.attributes().get_ints("shape")) {
    if (size < 0) return error(Code::kInvalidModel, "attribute shape holds {}, expected 0 or more", size);
    shape.push_back(size);
  }
  TREADLE_ASSIGN(const ElementType type, result_type(ctx, ElementType::kFloat));
  ctx.set_output(0, type, std::move(shape));
  return {};
}

Status infer_like(InferContext& ctx) {
  if (!ctx.has_input(0)) return {};
  TREADLE_ASSIGN(const ElementType type, result_type(ctx, ctx.element(0)));
  if (const Shape* shape = ctx.shape(0)) {
    ctx.set_output(0, type, *shape);
  } else {
    ctx.set_output(0, type);
  }
  return {};
}

// ---- Uniform and normal numbers

// Results are of type T, or converted from T.
template <class T>
struct DrawState {
  Source source;
  size_t count = 0, width = sizeof(T);
  kernels::RandomRows<T> rows;
  kernels::RandomScale<T> scale;
  int bits = 0;  // of a uniform number; 0: normal distribution
  bool converted = false;
  kernels::TileConverter narrow;
  uint32_t output = 0;

  void make(kernels::RandomKey sequence, size_t begin, T* out, size_t n) const {
    if (bits != 0) {
      rows.uniform(sequence, begin, bits, scale, out, n);
    } else {
      rows.normal(sequence, begin, scale, out, n);
    }
  }
};

template <class T>
uint32_t run_draw(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const DrawState<T>*>(state);
  const kernels::RandomKey sequence = s.source.sequence();
  auto* out = static_cast<std::byte*>(slots[operands[s.output]]);
  for_each_tile(s.count, s.bits != 0 ? costs::kUniformNs : costs::kNormalNs, [&](size_t begin, size_t n) {
    if (!s.converted) return s.make(sequence, begin, reinterpret_cast<T*>(out) + begin, n);
    T tile[kernels::kTile];
    s.make(sequence, begin, tile, n);
    kernels::convert(s.narrow, tile, out + begin * s.width, n);
  });
  return 0;
}

// `bits`: of a uniform number; 0: normal distribution.
template <class T>
Status prepare_rows(PrepareContext& ctx, const kernels::RandomRows<T>& rows, const kernels::RandomScale<T>& scale,
                    int bits) {
  constexpr ElementType kMade = sizeof(T) == sizeof(float) ? ElementType::kFloat : ElementType::kDouble;
  auto* s = ctx.make_state<DrawState<T>>();
  const Operand& out = ctx.outputs[0];
  s->source = Source::of(ctx.attributes());
  s->count = static_cast<size_t>(out.element_count());
  s->width = byte_width(out.type);
  s->rows = rows;
  s->scale = scale;
  s->bits = bits;
  s->converted = out.type != kMade;
  if (s->converted) s->narrow = kernels::make_converter(kMade, out.type);
  s->output = static_cast<uint32_t>(ctx.inputs.size());
  ctx.set_kernel(run_draw<T>, s);
  return {};
}

Status prepare_uniform(PrepareContext& ctx) {
  const UniformRange range = uniform_range(ctx.attributes(), ctx.outputs[0].type);
  const kernels::RandomKernels& kernels = kernels::random_kernels();
  if (range.is_double) return prepare_rows<double>(ctx, kernels.f64, {range.low, range.step, range.most}, range.bits);
  const auto narrow = [](double x) { return static_cast<float>(x); };
  return prepare_rows<float>(ctx, kernels.f32, {narrow(range.low), narrow(range.step), narrow(range.most)}, range.bits);
}

Status prepare_normal(PrepareContext& ctx) {
  const float mean = ctx.attributes().get_float("mean", 0), scale = ctx.attributes().get_float("scale", 1);
  const kernels::RandomKernels& kernels = kernels::random_kernels();
  if (ctx.outputs[0].type == ElementType::kDouble) {
    return prepare_rows<double>(ctx, kernels.f64, {static_cast<double>(mean), static_cast<double>(scale)}, 0);
  }
  return prepare_rows<float>(ctx, kernels.f32, {mean, scale}, 0);
}

// ---- Bernoulli

struct BernoulliState {
  Source source;
  UnitNumbers numbers;
  size_t count = 0, in_width = 4, out_width = 4;
  kernels::TileConverter widen, narrow;
};

uint32_t run_bernoulli(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const BernoulliState*>(state);
  const kernels::RandomKey sequence = s.source.sequence();
  const auto* probabilities = static_cast<const std::byte*>(slots[operands[0]]);
  auto* out = static_cast<std::byte*>(slots[operands[1]]);
  for_each_tile(s.count, costs::kBernoulliNs, [&](size_t begin, size_t n) {
    double tile[kernels::kTile], unit[kernels::kTile];
    s.numbers.make(sequence, begin, unit, n);
    kernels::convert(s.widen, probabilities + begin * s.in_width, tile, n);
    for (size_t i = 0; i < n; ++i) tile[i] = unit[i] < tile[i] ? 1 : 0;
    kernels::convert(s.narrow, tile, out + begin * s.out_width, n);
  });
  return 0;
}

Status prepare_bernoulli(PrepareContext& ctx) {
  auto* s = ctx.make_state<BernoulliState>();
  const Operand &in = ctx.inputs[0], &out = ctx.outputs[0];
  s->source = Source::of(ctx.attributes());
  s->count = static_cast<size_t>(in.element_count());
  s->in_width = byte_width(in.type);
  s->out_width = byte_width(out.type);
  s->widen = kernels::make_converter(in.type, ElementType::kDouble);
  s->narrow = kernels::make_converter(ElementType::kDouble, out.type);
  ctx.set_kernel(run_bernoulli, s);
  return {};
}

// ---- Multinomial

struct MultinomialState {
  Source source;
  UnitNumbers numbers;
  size_t batch = 0, classes = 0, samples = 1, in_width = 4, out_width = 4;
  kernels::TileConverter widen, narrow;
};

// Turns unnormalised logarithms into running sums of probabilities. The total is not positive if nothing can be drawn.
double accumulate(double* row, size_t n, StopPoll& stop) {
  double largest = row[0], sum = 0;
  const auto find = [&](int64_t begin, int64_t end) {
    largest = std::max(largest, *std::max_element(row + begin, row + end));
  };
  const auto add = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) row[i] = sum += std::exp(row[i] - largest);
  };
  return in_pieces(static_cast<int64_t>(n), costs::kMultinomialClassNs, stop, find) &&
                 in_pieces(static_cast<int64_t>(n), costs::kMultinomialClassNs, stop, add)
             ? sum
             : 0;
}

uint32_t run_multinomial(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const MultinomialState*>(state);
  const kernels::RandomKey sequence = s.source.sequence();
  const auto* in = static_cast<const std::byte*>(slots[operands[0]]);
  auto* out = static_cast<std::byte*>(slots[operands[1]]);
  auto* sums = static_cast<double*>(slots[operands[2]]);
  StopPoll stop;
  double unit[kernels::kTile];
  size_t drawn_before = 0;
  for (size_t b = 0; b < s.batch; ++b, in += s.classes * s.in_width) {
    parallel_convert(s.widen, in, sums, s.classes);
    const double total = accumulate(sums, s.classes, stop);
    if (!(total > 0))
      return refuse_number({"the sum of probabilities of row", static_cast<int64_t>(b)}, total, "more than 0");
    for (size_t i = 0; i < s.samples; ++i, ++drawn_before, out += s.out_width) {
      const size_t place = drawn_before % kernels::kTile;
      if (place == 0) {
        s.numbers.make(sequence, drawn_before, unit, std::min(kernels::kTile, s.batch * s.samples - drawn_before));
      }
      const double at = unit[place] * total;
      const auto drawn =
          std::min<int64_t>(std::upper_bound(sums, sums + s.classes, at) - sums, static_cast<int64_t>(s.classes) - 1);
      kernels::convert(s.narrow, &drawn, out, 1);
      if (stop.after(costs::kMultinomialDrawNs)) return fail(KernelError::kStopped);
    }
  }
  return 0;
}

Status infer_multinomial(InferContext& ctx) {
  const int64_t samples = ctx.attributes().get_int("sample_size", 1);
  if (samples < 0) return error(Code::kInvalidModel, "attribute sample_size is {}, expected 0 or more", samples);
  TREADLE_ASSIGN(const ElementType type, result_type(ctx, ElementType::kInt32));
  Dim batch;
  if (const Shape* shape = ctx.shape(0)) {
    if (shape->size() != 2) {
      return error(Code::kInvalidArgument, "input has shape {}, expected [batch, classes]", to_string(*shape));
    }
    batch = (*shape)[0];
  }
  ctx.set_output(0, type, {batch, Dim(samples)});
  return {};
}

Status prepare_multinomial(PrepareContext& ctx) {
  auto* s = ctx.make_state<MultinomialState>();
  const Operand &in = ctx.inputs[0], &out = ctx.outputs[0];
  s->source = Source::of(ctx.attributes());
  s->batch = static_cast<size_t>(in.dims[0]);
  s->classes = static_cast<size_t>(in.dims[1]);
  s->samples = static_cast<size_t>(out.dims[1]);
  if (s->classes == 0 && out.element_count() > 0) {
    return error(Code::kInvalidArgument, "input has shape {}, expected at least one class to draw from",
                 to_string(in.dims));
  }
  s->in_width = byte_width(in.type);
  s->out_width = byte_width(out.type);
  s->widen = kernels::make_converter(in.type, ElementType::kDouble);
  s->narrow = kernels::make_converter(ElementType::kInt64, out.type);
  ctx.scratch_bytes = s->classes * sizeof(double);
  ctx.set_kernel(run_multinomial, s);
  return {};
}

}  // namespace

}  // namespace treadle::random

TREADLE_OP(RandomNormal, "") {
  op.since(1)
      .out("output", "T")
      .attr("dtype", 1)
      .attr("mean", 0.0)
      .attr("scale", 1.0)
      .optional("seed", ir::AttributeKind::kFloat)
      .required("shape", ir::AttributeKind::kInts)
      .type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  op.infer(random::infer_shaped)
      .prepare(random::prepare_normal)
      .random()
      .no_axes("it draws numbers for all positions in a row");
}

TREADLE_OP(RandomNormalLike, "") {
  op.since(1)
      .in("input", "T1")
      .out("output", "T2")
      .optional("dtype", ir::AttributeKind::kInt)
      .attr("mean", 0.0)
      .attr("scale", 1.0)
      .optional("seed", ir::AttributeKind::kFloat)
      .type("T1", types::kAllTensors)
      .type("T2", types::kFloats);
  op.since(22).type("T1", types::kAllTensorsIr4).type("T2", types::kFloatsBf16);
  op.infer(random::infer_like)
      .prepare(random::prepare_normal)
      .compute(compute_by_position)  // strings: only the sizes count
      .random()
      .no_axes("it draws numbers for all positions in a row");
}

TREADLE_OP(RandomUniform, "") {
  op.since(1)
      .out("output", "T")
      .attr("dtype", 1)
      .attr("high", 1.0)
      .attr("low", 0.0)
      .optional("seed", ir::AttributeKind::kFloat)
      .required("shape", ir::AttributeKind::kInts)
      .type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  op.infer(random::infer_shaped)
      .prepare(random::prepare_uniform)
      .random()
      .no_axes("it draws numbers for all positions in a row");
}

TREADLE_OP(RandomUniformLike, "") {
  op.since(1)
      .in("input", "T1")
      .out("output", "T2")
      .optional("dtype", ir::AttributeKind::kInt)
      .attr("high", 1.0)
      .attr("low", 0.0)
      .optional("seed", ir::AttributeKind::kFloat)
      .type("T1", types::kAllTensors)
      .type("T2", types::kFloats);
  op.since(22).type("T1", types::kAllTensorsIr4).type("T2", types::kFloatsBf16);
  op.infer(random::infer_like)
      .prepare(random::prepare_uniform)
      .compute(compute_by_position)  // strings: only the sizes count
      .random()
      .no_axes("it draws numbers for all positions in a row");
}

TREADLE_OP(Bernoulli, "") {
  op.since(15)
      .in("input", "T1")
      .out("output", "T2")
      .optional("dtype", ir::AttributeKind::kInt)
      .optional("seed", ir::AttributeKind::kFloat)
      .type("T1", types::kFloats)
      .type("T2", types::kNumericBoolBf16);
  op.since(22).type("T1", types::kFloatsBf16);
  op.infer(random::infer_like)
      .prepare(random::prepare_bernoulli)
      .random()
      .no_axes("it draws numbers for all positions in a row");
}

TREADLE_OP(Multinomial, "") {
  op.since(7)
      .in("input", "T1")
      .out("output", "T2")
      .attr("dtype", 6)
      .attr("sample_size", 1)
      .optional("seed", ir::AttributeKind::kFloat)
      .type("T1", types::kFloats)
      .type("T2", types::kIndices);
  op.since(22).type("T1", types::kFloatsBf16);
  op.infer(random::infer_multinomial)
      .prepare(random::prepare_multinomial)
      .random()
      .no_axes("it draws numbers for all positions in a row");
}
