// Operators that opt/byte_chains.cc makes from nodes between DequantizeLinear and QuantizeLinear: LookUpBytes if they
// depend on one byte only, and QuantizedPairs for a sum or product of two operands, at least one in bytes.

#include "kernels/byte_pairs.h"
#include "op/axis_rules.h"
#include "op/elementwise.h"
#include "op/infer_as.h"
#include "op/op_def.h"
#include "op/parallel.h"
#include "ops/costs.h"

namespace treadle {

namespace {

Status infer_look_up(InferContext& ctx) {
  const Shape* table = ctx.shape(1);
  if (table && !(table->size() == 1 && (*table)[0].is_known(256))) {
    return error(Code::kInvalidArgument, "a table of shape {}, expected [256]", to_string(*table));
  }
  TREADLE_TRY(infer_like_input(ctx));
  Type looked_up = ctx.outputs[0];
  looked_up.element = ctx.element(1);
  ctx.set_output(0, std::move(looked_up));
  return {};
}

struct LookUp {
  int64_t count = 0;
};

uint32_t run_look_up(const void* state, void* const* slots, const uint32_t* operands) {
  const auto* x = static_cast<const uint8_t*>(slots[operands[0]]);
  const auto* table = static_cast<const uint8_t*>(slots[operands[1]]);
  auto* y = static_cast<uint8_t*>(slots[operands[2]]);
  parallel_for(static_cast<const LookUp*>(state)->count, costs::kByteMappedNs, [&](int64_t begin, int64_t end, int) {
    kernels::byte_pair_kernels().look_up(x + begin, table, y + begin, static_cast<size_t>(end - begin));
  });
  return 0;
}

Status prepare_look_up(PrepareContext& ctx) {
  auto* state = ctx.make_state<LookUp>();
  state->count = ctx.inputs[0].element_count();
  ctx.set_kernel(run_look_up, state);
  return {};
}

// ---------------------------------------------------------------------------------------------------------------------

enum PairInput : size_t { kA, kAScale, kAZero, kB, kBScale, kBZero, kYScale, kYZero };

Status infer_pairs(InferContext& ctx) {
  TREADLE_TRY(infer_as(ctx, "Add", {kA, kB}));
  Type result = ctx.outputs[0];
  result.element = ctx.element(kYZero);
  ctx.set_output(0, std::move(result));
  return {};
}

// Axes of the result along which both operands move alike are merged.
struct PairLevel {
  int64_t size, a, b;
};

struct PairState {
  kernels::BytePairs pairs;
  InlineVector<PairLevel, 4> levels;  // outermost first; the last one is a row
  int64_t rows = 1, pieces = 1;       // per row
  int64_t b_width = 1;                // in bytes
};

constexpr int64_t kPiece = 4096;  // in bytes

uint32_t run_pairs(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const PairState*>(state);
  const auto* a = static_cast<const std::byte*>(slots[operands[kA]]);
  const auto* b = static_cast<const std::byte*>(slots[operands[kB]]);
  auto* y = static_cast<std::byte*>(slots[operands[kYZero + 1]]);
  const PairLevel& line = s.levels.back();
  const auto& kernels = kernels::byte_pair_kernels();
  const double piece_ns = costs::kByteMappedNs * static_cast<double>(std::min(line.size, kPiece));
  parallel_for(s.rows * s.pieces, piece_ns, [&](int64_t begin, int64_t end, int) {
    for (; begin < end; ++begin) {
      const int64_t row = begin / s.pieces, first = begin % s.pieces * kPiece;
      int64_t a_at = first * line.a, b_at = first * line.b, rest = row;
      for (size_t d = s.levels.size() - 1; d-- > 0;) {
        const int64_t index = rest % s.levels[d].size;
        rest /= s.levels[d].size;
        a_at += index * s.levels[d].a;
        b_at += index * s.levels[d].b;
      }
      kernels.run(s.pairs, a + a_at, static_cast<size_t>(line.a), b + b_at * s.b_width, static_cast<size_t>(line.b),
                  y + row * line.size + first, static_cast<size_t>(std::min(kPiece, line.size - first)));
    }
  });
  return 0;
}

InlineVector<PairLevel, 4> pair_levels(const PrepareContext& ctx) {
  const Dims& dims = ctx.outputs[0].dims;
  const Dims a = broadcast_strides(ctx.inputs[kA], dims), b = broadcast_strides(ctx.inputs[kB], dims);
  InlineVector<PairLevel, 4> levels;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 1) continue;
    if (!levels.empty() && levels.back().a == a[d] * dims[d] && levels.back().b == b[d] * dims[d]) {
      levels.back() = {levels.back().size * dims[d], a[d], b[d]};
    } else {
      levels.push_back({dims[d], a[d], b[d]});
    }
  }
  if (levels.empty()) levels.push_back({1, 1, 1});
  return levels;
}

Result<kernels::ByteScale> byte_scale(const PrepareContext& ctx, size_t scale, ElementType type) {
  const void* factor = ctx.inputs[scale].constant;
  const void* zero = ctx.inputs[scale + 1].constant;
  if (!factor || !zero) return error(Code::kNotImplemented, "a scale or a zero point that is no constant");
  if (type == ElementType::kFloat) return kernels::ByteScale{*static_cast<const float*>(factor), 0, false};
  const bool is_signed = type == ElementType::kInt8;
  return kernels::ByteScale{
      *static_cast<const float*>(factor),
      is_signed ? int32_t{*static_cast<const int8_t*>(zero)} : int32_t{*static_cast<const uint8_t*>(zero)}, is_signed};
}

Status prepare_pairs(PrepareContext& ctx) {
  auto* state = ctx.make_state<PairState>();
  kernels::BytePairs& pairs = state->pairs;
  TREADLE_ASSIGN(pairs.a, byte_scale(ctx, kAScale, ctx.inputs[kA].type));
  TREADLE_ASSIGN(pairs.b, byte_scale(ctx, kBScale, ctx.inputs[kB].type));
  pairs.b_is_float = ctx.inputs[kB].type == ElementType::kFloat;
  state->b_width = static_cast<int64_t>(byte_width(ctx.inputs[kB].type));
  TREADLE_ASSIGN(pairs.y, byte_scale(ctx, kYScale, ctx.outputs[0].type));
  const std::string_view op = ctx.attributes().get_string("op");
  pairs.multiplies = op == "Mul";
  if (op == "Sub") pairs.b.scale = -pairs.b.scale;
  pairs.low = ctx.attributes().get_float("low", pairs.low);
  pairs.high = ctx.attributes().get_float("high", pairs.high);
  state->levels = pair_levels(ctx);
  for (size_t d = 0; d + 1 < state->levels.size(); ++d) state->rows *= state->levels[d].size;
  const int64_t line = state->levels.back().size;
  state->pieces = (line + kPiece - 1) / kPiece;
  constexpr int64_t kFewestTried = 1 << 14;  // with so many bytes, trying all pairs pays after a few runs
  if (ctx.outputs[0].element_count() >= kFewestTried) kernels::byte_pair_kernels().fit(pairs);
  ctx.set_kernel(run_pairs, state);
  return {};
}

Status pair_axes(AxisContext& c) {
  for (size_t i = 0; i < c.inputs(); ++i) {
    if (i != kA && i != kB && c.runs_along(i)) return looks_along("its scales have axes of their own");
  }
  return c.rank(kA) == c.rank(kB) ? axes::broadcast(c) : looks_along("its operands have unlike ranks");
}

}  // namespace

}  // namespace treadle

// y[i] = table[x[i]], by the bits of x[i].
TREADLE_OP(LookUpBytes, "treadle") {
  op.since(1).in("x", "T1").in("table", "T2").out("y", "T2").type("T1", types::kBytes).type("T2", types::kBytes);
  op.infer(infer_look_up).prepare(prepare_look_up).axes(axes::element_by_element, axes::unchanged);
}

// QuantizeLinear of `op` (Add, Sub or Mul) of two dequantised operands, clipped to [low, high]. Scales and zero points
// are constants with one element. b may be float, with scale 1 and zero point 0.
TREADLE_OP(QuantizedPairs, "treadle") {
  op.since(1)
      .in("a", "T1")
      .in("a_scale", "tensor(float)")
      .in("a_zero_point", "T1")
      .in("b", "T2")
      .in("b_scale", "tensor(float)")
      .in("b_zero_point", "T2")
      .in("y_scale", "tensor(float)")
      .in("y_zero_point", "T3")
      .out("y", "T3")
      .required("op", ir::AttributeKind::kString)
      .optional("low", ir::AttributeKind::kFloat)
      .optional("high", ir::AttributeKind::kFloat)
      .type("T1", types::kBytes)
      .type("T2", types::kBytes | types::kFloat32s)
      .type("T3", types::kBytes);
  op.infer(infer_pairs).prepare(prepare_pairs).axes(pair_axes);
}
