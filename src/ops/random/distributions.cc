// RandomUniform, RandomNormal and their Like forms; Bernoulli; Multinomial.

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/convert.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/parallel.h"
#include "op/pieces.h"
#include "ops/random/philox.h"

namespace treadle::random {

namespace {

// ---- What they make

// The type that attribute `dtype` names, `otherwise` where it is absent.
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
    if (size < 0) return error(Code::kInvalidModel, "attribute shape has the size {}", size);
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

// Bits of a significand: what a uniform number keeps, so that rounding does not bring it up to 1.
int significant_bits(ElementType type) {
  if (type == ElementType::kDouble) return 53;
  if (type == ElementType::kFloat) return 24;
  return type == ElementType::kFloat16 ? 11 : 8;
}

// Calls fn(begin, n) for all tiles of `count` elements, on any thread.
template <class Fn>
void for_each_tile(size_t count, double element_ns, Fn&& fn) {
  const size_t tiles = (count + kernels::kTile - 1) / kernels::kTile;
  parallel_for(static_cast<int64_t>(tiles), element_ns * static_cast<double>(kernels::kTile),
               [&](int64_t first, int64_t last, int) {
                 for (size_t at = static_cast<size_t>(first) * kernels::kTile;
                      at < std::min(static_cast<size_t>(last) * kernels::kTile, count); at += kernels::kTile) {
                   fn(at, std::min(kernels::kTile, count - at));
                 }
               });
}

// ---- Uniform and normal numbers

struct DrawState {
  Source source;
  size_t count = 0, width = 4;
  double offset = 0, scale = 1;  // of the standard distribution
  double step = 0x1p53;          // uniform numbers are multiples of 1 / step
  bool normal = false;
  uint32_t output = 0;
  kernels::TileConverter narrow;
};

// Two standard normal numbers of two uniform ones (Box and Muller).
std::array<double, 2> normals(std::array<double, 2> uniform) {
  const double radius = std::sqrt(-2 * std::log1p(-uniform[0])), angle = 2 * std::numbers::pi * uniform[1];
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

uint32_t run_draw(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const DrawState*>(state);
  const Philox generator = s.source.generator();
  auto* out = static_cast<std::byte*>(slots[operands[s.output]]);
  static_assert(kernels::kTile % 2 == 0);
  constexpr double kUniformNs = 8, kNormalNs = 20;
  for_each_tile(s.count, s.normal ? kNormalNs : kUniformNs, [&](size_t begin, size_t n) {
    double tile[kernels::kTile];
    for (size_t i = 0; i < n; i += 2) {
      std::array<double, 2> pair = generator.uniforms((begin + i) / 2);
      if (s.normal) {
        pair = normals(pair);
      } else {
        for (double& u : pair) u = std::floor(u * s.step) / s.step;
      }
      tile[i] = s.offset + s.scale * pair[0];
      tile[i + 1] = s.offset + s.scale * pair[1];
    }
    kernels::convert(s.narrow, tile, out + begin * s.width, n);
  });
  return 0;
}

Status prepare_draw(PrepareContext& ctx, bool normal) {
  auto* s = ctx.make_state<DrawState>();
  const Operand& out = ctx.outputs[0];
  const ir::Attributes& attributes = ctx.attributes();
  s->source = Source::of(attributes);
  s->count = static_cast<size_t>(out.element_count());
  s->width = byte_width(out.type);
  s->normal = normal;
  const double low = attributes.get_float("low", 0), high = attributes.get_float("high", 1);
  s->offset = normal ? static_cast<double>(attributes.get_float("mean", 0)) : low;
  s->scale = normal ? static_cast<double>(attributes.get_float("scale", 1)) : high - low;
  s->step = std::ldexp(1.0, significant_bits(out.type));
  s->output = static_cast<uint32_t>(ctx.inputs.size());
  s->narrow = kernels::make_converter(ElementType::kDouble, out.type);
  ctx.set_kernel(run_draw, s);
  return {};
}

Status prepare_uniform(PrepareContext& ctx) {
  return prepare_draw(ctx, false);
}
Status prepare_normal(PrepareContext& ctx) {
  return prepare_draw(ctx, true);
}

// ---- Bernoulli

struct BernoulliState {
  Source source;
  size_t count = 0, in_width = 4, out_width = 4;
  kernels::TileConverter widen, narrow;
};

uint32_t run_bernoulli(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const BernoulliState*>(state);
  const Philox generator = s.source.generator();
  const auto* probabilities = static_cast<const std::byte*>(slots[operands[0]]);
  auto* out = static_cast<std::byte*>(slots[operands[1]]);
  constexpr double kDrawNs = 12;
  for_each_tile(s.count, kDrawNs, [&](size_t begin, size_t n) {
    double tile[kernels::kTile];
    kernels::convert(s.widen, probabilities + begin * s.in_width, tile, n);
    for (size_t i = 0; i < n; ++i) tile[i] = generator.uniform(begin + i) < tile[i] ? 1 : 0;
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
  size_t batch = 0, classes = 0, samples = 1, in_width = 4, out_width = 4;
  kernels::TileConverter widen, narrow;
};

// Unnormalised logarithms to running sums of the probabilities; the total is not positive where there is none to draw.
double accumulate(double* row, size_t n, StopPoll& stop) {
  constexpr double kCompareNs = 1, kExpNs = 8;
  double largest = row[0], sum = 0;
  const auto find = [&](int64_t begin, int64_t end) {
    largest = std::max(largest, *std::max_element(row + begin, row + end));
  };
  const auto add = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) row[i] = sum += std::exp(row[i] - largest);
  };
  return in_pieces(static_cast<int64_t>(n), kCompareNs, stop, find) &&
                 in_pieces(static_cast<int64_t>(n), kExpNs, stop, add)
             ? sum
             : 0;
}

uint32_t run_multinomial(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const MultinomialState*>(state);
  const Philox generator = s.source.generator();
  const auto* in = static_cast<const std::byte*>(slots[operands[0]]);
  auto* out = static_cast<std::byte*>(slots[operands[1]]);
  auto* sums = static_cast<double*>(slots[operands[2]]);
  constexpr double kDrawNs = 80;
  StopPoll stop;
  for (size_t b = 0; b < s.batch; ++b, in += s.classes * s.in_width) {
    parallel_convert(s.widen, in, sums, s.classes);
    const double total = accumulate(sums, s.classes, stop);
    if (!(total > 0)) return fail(KernelError::kInvalidValue, static_cast<int64_t>(b));
    for (size_t i = 0; i < s.samples; ++i, out += s.out_width) {
      const double at = generator.uniform(b * s.samples + i) * total;
      const auto drawn =
          std::min<int64_t>(std::upper_bound(sums, sums + s.classes, at) - sums, static_cast<int64_t>(s.classes) - 1);
      kernels::convert(s.narrow, &drawn, out, 1);
      if (stop.after(kDrawNs)) return fail(KernelError::kStopped);
    }
  }
  return 0;
}

Status infer_multinomial(InferContext& ctx) {
  const int64_t samples = ctx.attributes().get_int("sample_size", 1);
  if (samples < 0) return error(Code::kInvalidModel, "attribute sample_size is {}", samples);
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
    return error(Code::kInvalidArgument, "input has shape {}: there are no classes to draw from", to_string(in.dims));
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
      .compute(compute_by_position)  // strings, of which only the sizes count
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
      .compute(compute_by_position)  // as above
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
