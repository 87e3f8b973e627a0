// SkipLayerNormalization and SkipSimplifiedLayerNormalization: a sum, normalised along its last axis, in float. A few
// rows at a time are added up and normalised while they are in cache.

#include <array>

#include "kernels/elementwise_ops.h"
#include "kernels/normalize.h"
#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/parallel.h"
#include "op/work.h"
#include "ops/costs.h"
#include "ops/norm/channels.h"

namespace treadle::norm {

namespace {

enum Input : size_t { kInput, kSkip, kGamma, kBeta, kBias };
enum Output : size_t { kResult, kMean, kInvStdVar, kSum };

// The simplified form has no beta; its bias takes beta's position.
constexpr size_t bias_input(kernels::NormKind kind) {
  return kind == kernels::NormKind::kLayer ? kBias : kBeta;
}

// ---- Inference

// Skip has the shape of the input, or is repeated along its first axes.
Status check_skip(const Shape& x, const Shape& skip) {
  bool fits = !skip.empty() && skip.size() <= x.size();
  bool repeats = skip.size() < x.size();
  for (size_t i = 0; fits && i < skip.size(); ++i) {
    const Dim &have = skip[i], &wanted = x[x.size() - skip.size() + i];
    const bool may_repeat = i == 0 && skip.size() == x.size() && x.size() > 2 && have.is_known(1);
    repeats |= may_repeat;
    fits = may_repeat || !differ(have, wanted);
  }
  if (fits && (!repeats || x.size() > 2)) return {};
  return error(Code::kInvalidArgument,
               "skip has shape {}, expected that of input {}, with a first axis of 1 or without", to_string(skip),
               to_string(x));
}

Status infer_skip_norm(InferContext& ctx) {
  const Shape* x = ctx.shape(kInput);
  ctx.set_output(kResult, ctx.input(kInput));
  if (ctx.outputs.size() > kSum) ctx.set_output(kSum, ctx.input(kInput));
  for (size_t i = kMean; i < std::min<size_t>(ctx.outputs.size(), kSum); ++i) {
    if (!x || x->empty()) {
      ctx.set_output(i, ElementType::kFloat);
      continue;
    }
    Shape rows = *x;
    rows.back() = int64_t{1};
    ctx.set_output(i, ElementType::kFloat, std::move(rows));
  }
  if (!x) return {};
  if (x->empty()) return error(Code::kInvalidArgument, "input is a scalar, expected at least one axis");
  if (const Shape* skip = ctx.shape(kSkip)) TREADLE_TRY(check_skip(*x, *skip));
  for (size_t i = kGamma; i < ctx.inputs.size(); ++i) {
    const Shape* parameter = ctx.shape(i);
    if (!parameter || (parameter->size() == 1 && !differ((*parameter)[0], x->back()))) continue;
    return error(Code::kInvalidArgument, "{} has shape {}, expected [{}]", ctx.node.version->inputs[i].name,
                 to_string(*parameter), x->back().to_string());
  }
  return {};
}

// ---- Kernel

struct SkipNormState {
  kernels::NormRows norm;
  int64_t rows = 0, n = 0;
  int64_t skip_rows = 1;  // rows of skip, which are repeated
  int64_t tile = 1;       // rows that are computed together
  ElementType type = ElementType::kFloat;
  kernels::TileConverter widen, narrow;
  kernels::Row add = nullptr;
  bool has_beta = false, has_bias = false;
  uint32_t bias = 0, outputs = 0, scratch = 0;  // operand numbers
  size_t parameters = 0;                        // offset in scratch of gamma, beta and bias, if they have a narrow type
  size_t tiles = 0, tile_bytes = 0;             // per thread: sums, and results or rows of skip
  double row_ns = 0;

  bool narrows() const { return type != ElementType::kFloat; }
};

class SkipNormRun {
 public:
  SkipNormRun(const SkipNormState& s, void* const* slots, const uint32_t* operands)
      : s_(s),
        slots_(slots),
        operands_(operands),
        scratch_(static_cast<std::byte*>(slots[operands[s.scratch]])),
        gamma_(parameter(kGamma, 0)),
        beta_(s.has_beta ? parameter(kBeta, 1) : nullptr),
        bias_(s.has_bias ? parameter(s.bias, 2) : nullptr) {}

  void rows(int64_t begin, int64_t end, int worker) const {
    auto* sums = reinterpret_cast<float*>(scratch_ + s_.tiles + static_cast<size_t>(worker) * s_.tile_bytes);
    while (begin < end) {
      // A tile ends where the rows of skip begin again.
      const int64_t at = begin % s_.skip_rows;
      const int64_t count = std::min({s_.tile, end - begin, s_.skip_rows - at});
      tile(begin, at, count, sums);
      begin += count;
    }
  }

 private:
  const float* parameter(size_t i, size_t place) const {
    const void* given = slots_[operands_[i]];
    if (!s_.narrows()) return static_cast<const float*>(given);
    float* wide = reinterpret_cast<float*>(scratch_ + s_.parameters) + static_cast<int64_t>(place) * s_.n;
    kernels::convert(s_.widen, given, wide, static_cast<size_t>(s_.n));
    return wide;
  }
  const std::byte* in(size_t i, int64_t row) const {
    return static_cast<const std::byte*>(slots_[operands_[i]]) + row * s_.n * static_cast<int64_t>(byte_width(s_.type));
  }
  std::byte* out(size_t i, int64_t row, int64_t bytes) const {
    auto* result = static_cast<std::byte*>(slots_[operands_[s_.outputs + i]]);
    return result ? result + row * bytes : nullptr;
  }

  void tile(int64_t row, int64_t skip_row, int64_t count, float* scratch) const {
    const auto elements = static_cast<size_t>(count * s_.n);
    const auto row_bytes = s_.n * static_cast<int64_t>(byte_width(s_.type));
    std::byte* sum_out = has(kSum) ? out(kSum, row, row_bytes) : nullptr;
    std::byte* y = out(kResult, row, row_bytes);
    float *sums = scratch, *results = scratch + s_.tile * s_.n;
    const auto *x = reinterpret_cast<const float*>(in(kInput, row)),
               *skip = reinterpret_cast<const float*>(in(kSkip, skip_row));
    if (s_.narrows()) {
      kernels::convert(s_.widen, x, sums, elements);
      kernels::convert(s_.widen, skip, results, elements);
      x = sums, skip = results;
    } else {
      results = reinterpret_cast<float*>(y);
      if (sum_out) sums = reinterpret_cast<float*>(sum_out);
    }
    s_.add(x, skip, sums, elements, nullptr);
    for (int64_t r = 0; bias_ && r < count; ++r) {
      s_.add(sums + r * s_.n, bias_, sums + r * s_.n, static_cast<size_t>(s_.n), nullptr);
    }
    kernels::NormRows norm = s_.norm;
    norm.rows = static_cast<size_t>(count);
    norm(sums, gamma_, beta_, results, has(kMean) ? out(kMean, row, sizeof(float)) : nullptr,
         has(kInvStdVar) ? out(kInvStdVar, row, sizeof(float)) : nullptr);
    if (!s_.narrows()) return;
    if (sum_out) kernels::convert(s_.narrow, sums, sum_out, elements);
    kernels::convert(s_.narrow, results, y, elements);
  }
  bool has(size_t output) const { return s_.outputs + output < s_.scratch; }

  const SkipNormState& s_;
  void* const* slots_;
  const uint32_t* operands_;
  std::byte* scratch_;
  const float *gamma_, *beta_, *bias_;
};

uint32_t run_skip_norm(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const SkipNormState*>(state);
  const SkipNormRun run(s, slots, operands);
  parallel_for(s.rows, s.row_ns, [&](int64_t begin, int64_t end, int worker) { run.rows(begin, end, worker); });
  return 0;
}

template <kernels::NormKind kKind>
Status prepare_skip_norm(PrepareContext& ctx) {
  constexpr int64_t kTileBytes = 16 << 10;
  const Operand& x = ctx.inputs[kInput];
  auto* s = ctx.make_state<SkipNormState>();
  s->type = x.type;
  s->n = x.dims.back();
  s->rows = s->n == 0 ? 0 : x.element_count() / s->n;
  s->skip_rows = std::max<int64_t>(1, s->n == 0 ? 1 : ctx.inputs[kSkip].element_count() / s->n);
  s->norm = {kKind, ElementType::kFloat,       ElementType::kFloat,
             0,     static_cast<size_t>(s->n), static_cast<double>(ctx.attributes().get_float("epsilon"))};
  s->bias = bias_input(kKind);
  s->has_beta = kKind == kernels::NormKind::kLayer && ctx.has_input(kBeta);
  s->has_bias = ctx.has_input(s->bias);
  s->add = kernels::elementwise_rows(kernels::ElementwiseOp::kAdd, ComputeType::kF32).vv;
  s->widen = kernels::make_converter(x.type, ElementType::kFloat);
  s->narrow = kernels::make_converter(ElementType::kFloat, x.type);
  s->outputs = static_cast<uint32_t>(ctx.inputs.size());
  s->scratch = ctx.scratch_operand();
  const int64_t row_bytes = std::max<int64_t>(1, s->n) * static_cast<int64_t>(sizeof(float));
  s->tile = std::clamp<int64_t>(kTileBytes / row_bytes, 1, std::max<int64_t>(1, s->rows));
  s->row_ns = costs::kSkipNormElementNs * static_cast<double>(s->n);
  ScratchLayout scratch;
  if (s->narrows()) s->parameters = scratch.add(static_cast<size_t>(3 * row_bytes));
  s->tiles = scratch.size();
  s->tile_bytes = (static_cast<size_t>(2 * s->tile * row_bytes) + 63) / 64 * 64;
  ctx.scratch_bytes = scratch.size() + s->tile_bytes * scratch_parts(s->rows, s->row_ns, ctx.threads);
  ctx.cost_ns = s->row_ns * static_cast<double>(s->rows);
  ctx.set_kernel(run_skip_norm, s);
  return {};
}

// ---- Work and axes

Status skip_norm_axes(AxisContext& c) {
  const int64_t rank = c.rank(kInput), axis = c.in(kInput);
  for (size_t i = kGamma; i < c.inputs(); ++i) {
    if (c.runs_along(i)) return looks_along("its scales run along it");
  }
  if (axis == rank - 1) return looks_along("it normalises along it");
  const int64_t skip = c.in(kSkip) == kNoAxis ? kNoAxis : c.in(kSkip) + rank - c.rank(kSkip);
  if (axis == kNoAxis) return looks_along("its input does not run along it");
  const int64_t at = axis - (rank - c.rank(kSkip));
  const bool repeated = at < 0 || (at == 0 && c.size(kSkip, 0).is_known(1));
  if (skip == axis || (skip == kNoAxis && repeated)) return c.give_all(axis);
  return looks_along("not all of its inputs run along it");
}

void add_outputs(VersionBuilder& v) {
  v.out("output", "T")
      .out("mean", "U", Arity::kOptional)
      .out("inv_std_var", "U", Arity::kOptional)
      .out("input_skip_bias_sum", "T", Arity::kOptional)
      .attr("epsilon", 1e-12)
      .type("T", types::kFloatsTo32)
      .type("U", types::kFloat32s);
}

}  // namespace

}  // namespace treadle::norm

TREADLE_OP(SkipLayerNormalization, "com.microsoft") {
  op.since(1)
      .in("input", "T")
      .in("skip", "T")
      .in("gamma", "T")
      .in("beta", "T", Arity::kOptional)
      .in("bias", "T", Arity::kOptional)
      .with(norm::add_outputs);
  op.infer(norm::infer_skip_norm)
      .prepare(norm::prepare_skip_norm<kernels::NormKind::kLayer>)
      .axes(norm::skip_norm_axes)
      .work(work::reduction);
}

TREADLE_OP(SkipSimplifiedLayerNormalization, "com.microsoft") {
  op.since(1)
      .in("input", "T")
      .in("skip", "T")
      .in("gamma", "T")
      .in("bias", "T", Arity::kOptional)
      .with(norm::add_outputs);
  op.infer(norm::infer_skip_norm)
      .prepare(norm::prepare_skip_norm<kernels::NormKind::kRms>)
      .axes(norm::skip_norm_axes)
      .work(work::reduction);
}
