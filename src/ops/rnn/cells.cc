// The part of a recurrence's step behind its matrix product, as internal operators: RnnCell, LstmCell, GruCell (with
// linear_before_reset), GruGates and GruUpdate (without). Batch entries are computed one after the other, all functions
// of one while its row of gates is in the first-level cache.
//
// Attributes of all: functions, alphas, betas (activation.h), clip (absent: none). Half-precision types are computed in
// f32 from the gates on, and results are rounded.
#include <cstring>

#include "kernels/convert.h"
#include "kernels/dispatch.h"
#include "kernels/recurrent.h"
#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/parallel.h"
#include "op/work.h"
#include "ops/costs.h"
#include "ops/rnn/activation.h"

namespace treadle::rnn {

namespace {

using kernels::ElementwiseOp;
using kernels::Row;

struct Cell {
  size_t batch, hidden, width;  // width: bytes of an element in the compute type
  bool direct;                  // stored in the compute type
  kernels::TileConverter load_converter, store_converter;
  struct Function {
    Row row;
    kernels::ElementwiseParams params;
  };
  Function functions[3];
  Row mul_row, add_row, rsub_row, clip_row;
  bool clips = false, input_forget = false;
  size_t scratch_bytes = 0;                       // per thread
  double entry_ns = 0;                            // per batch entry
  const kernels::RecurrentRows* fused = nullptr;  // set if all attributes have their defaults
  union {
    double f64[3];
    float f32[3];
  } constants;  // lowest, highest, 1

  size_t bytes() const { return hidden * width; }
  const void* one() const { return reinterpret_cast<const char*>(&constants) + 2 * width; }

  void activate(int i, const char* in, char* out, size_t blocks = 1) const {
    functions[i].row(in, nullptr, out, blocks * hidden, &functions[i].params);
  }
  void mul(const char* a, const char* b, char* out) const { mul_row(a, b, out, hidden, nullptr); }
  void add(const char* a, const char* b, char* out, size_t blocks = 1) const {
    add_row(a, b, out, blocks * hidden, nullptr);
  }
  void one_minus(const char* a, char* out) const { rsub_row(one(), a, out, hidden, nullptr); }
  // Returns the clipped values: `in` itself if nothing is clipped.
  const char* clip(const char* in, char* out, size_t blocks = 1) const {
    if (!clips) return in;
    clip_row(in, &constants, out, blocks * hidden, nullptr);
    return out;
  }

  // Row b of a tensor with rows of `blocks` times hidden elements, converted into `buffer` if necessary.
  const char* load(const void* tensor, size_t b, size_t blocks, char* buffer) const {
    if (direct) return static_cast<const char*>(tensor) + b * blocks * bytes();
    const size_t n = blocks * hidden;
    kernels::convert(load_converter, static_cast<const char*>(tensor) + b * n * load_converter.from_width, buffer, n);
    return buffer;
  }
  // Where to compute row b of a result: in place, or in `buffer` until store().
  char* target(void* tensor, size_t b, char* buffer) const {
    return direct ? static_cast<char*>(tensor) + b * bytes() : buffer;
  }
  void store(const char* row, void* tensor, size_t b) const {
    if (direct) return;
    kernels::convert(store_converter, row, static_cast<char*>(tensor) + b * stored_bytes(), hidden);
  }
  size_t stored_bytes() const { return hidden * (direct ? width : store_converter.to_width); }
  void clear(void* tensor, size_t b) const {
    std::memset(static_cast<char*>(tensor) + b * stored_bytes(), 0, stored_bytes());
  }
  void keep(const void* from, void* to, size_t b) const {
    const size_t at = b * stored_bytes();
    if (from != to) std::memcpy(static_cast<char*>(to) + at, static_cast<const char*>(from) + at, stored_bytes());
  }
};

// Calls fn(begin, end, scratch) for ranges of batch entries.
template <class Fn>
uint32_t over_batch(const Cell& cell, void* scratch, Fn&& fn) {
  parallel_for(static_cast<int64_t>(cell.batch), cell.entry_ns, [&](int64_t begin, int64_t end, int worker) {
    fn(static_cast<size_t>(begin), static_cast<size_t>(end),
       static_cast<char*>(scratch) + static_cast<size_t>(worker) * cell.scratch_bytes);
  });
  return 0;
}

// h' = (1 - z)·candidate + z·h; overwrites z and candidate.
void blend(const Cell& cell, char* z, char* candidate, const char* h, char* spare, char* out) {
  cell.one_minus(z, spare);
  cell.mul(spare, candidate, candidate);
  cell.mul(z, h, z);
  cell.add(candidate, z, out);
}

uint32_t run_rnn_cell(const void* state, void* const* slots, const uint32_t* operands) {
  const Cell& cell = *static_cast<const Cell*>(state);
  return over_batch(cell, slots[operands[2]], [&](size_t begin, size_t end, char* scratch) {
    for (size_t b = begin; b < end; ++b) {
      const char* g = cell.load(slots[operands[0]], b, 1, scratch);
      char* h = cell.target(slots[operands[1]], b, scratch);
      cell.activate(0, cell.clip(g, h), h);
      cell.store(h, slots[operands[1]], b);
    }
  });
}

struct LstmRow {
  const char *g, *c, *p;  // p: peepholes, may be null
  char *h_out, *c_out;
  char* gates;  // 4 blocks
  char* spare;  // 1 block
};

void lstm_row(const Cell& cell, const LstmRow& row) {
  const size_t n = cell.bytes();
  char *i = row.gates, *o = i + n, *f = o + n, *candidate = f + n;
  if (row.p) {
    cell.mul(row.p, row.c, i);
    cell.add(i, row.g, i);
    cell.mul(row.p + 2 * n, row.c, f);
    cell.add(f, row.g + 2 * n, f);
    cell.activate(0, cell.clip(i, i), i);
    cell.activate(0, cell.clip(f, f), f);
    cell.activate(1, cell.clip(row.g + 3 * n, candidate), candidate);
  } else {
    const char* g = cell.clip(row.g, i, 4);
    cell.activate(0, g, i, 3);
    cell.activate(1, g + 3 * n, candidate);
  }
  if (cell.input_forget) cell.one_minus(i, f);
  cell.mul(f, row.c, f);
  cell.mul(i, candidate, candidate);
  cell.add(f, candidate, row.c_out);
  if (row.p) {
    cell.mul(row.p + n, row.c_out, o);
    cell.add(o, row.g + n, o);
    cell.activate(0, cell.clip(o, o), o);
  }
  cell.activate(2, row.c_out, row.spare);
  cell.mul(o, row.spare, row.h_out);
}

// kLengths: with input `within`.
template <bool kPeepholes, bool kLengths>
uint32_t run_lstm_cell(const void* state, void* const* slots, const uint32_t* operands) {
  const Cell& cell = *static_cast<const Cell*>(state);
  const uint32_t* results = operands + (kLengths ? 4 : kPeepholes ? 3 : 2);
  const auto* within = kLengths ? static_cast<const bool*>(slots[operands[3]]) : nullptr;
  const size_t n = cell.bytes();
  return over_batch(cell, slots[results[2]], [&](size_t begin, size_t end, char* gates) {
    char *spare = gates + 4 * n, *g = spare + n, *c = g + 4 * n, *h_out = c + n, *c_out = h_out + n, *p = c_out + n;
    LstmRow row{};
    row.gates = gates;
    row.spare = spare;
    if (kPeepholes) row.p = cell.load(slots[operands[2]], 0, 3, p);
    for (size_t b = begin; b < end; ++b) {
      if (kLengths && !within[b]) {
        cell.clear(slots[results[0]], b);
        cell.keep(slots[operands[1]], slots[results[1]], b);
        continue;
      }
      row.g = cell.load(slots[operands[0]], b, 4, g);
      row.c = cell.load(slots[operands[1]], b, 1, c);
      row.h_out = cell.target(slots[results[0]], b, h_out);
      row.c_out = cell.target(slots[results[1]], b, c_out);
      if (!kPeepholes && cell.fused) {
        cell.fused->lstm(row.g, row.c, row.h_out, row.c_out, cell.hidden);
      } else {
        lstm_row(cell, row);
      }
      cell.store(row.h_out, slots[results[0]], b);
      cell.store(row.c_out, slots[results[1]], b);
    }
  });
}

uint32_t run_gru_cell(const void* state, void* const* slots, const uint32_t* operands) {
  const Cell& cell = *static_cast<const Cell*>(state);
  const size_t n = cell.bytes();
  return over_batch(cell, slots[operands[4]], [&](size_t begin, size_t end, char* z) {
    char *r = z + n, *candidate = r + n, *spare = candidate + n, *x_row = spare + n, *u_row = x_row + 3 * n,
         *h_row = u_row + 3 * n, *out_row = h_row + n;
    for (size_t b = begin; b < end; ++b) {
      const char* x = cell.load(slots[operands[0]], b, 3, x_row);  // X·W^T + its bias
      const char* u = cell.load(slots[operands[1]], b, 3, u_row);  // h·R^T + its bias
      const char* h = cell.load(slots[operands[2]], b, 1, h_row);
      char* out = cell.target(slots[operands[3]], b, out_row);
      if (cell.fused) {
        cell.fused->gru(x, u, h, out, cell.hidden);
      } else {
        cell.add(x, u, z, 2);
        cell.activate(0, cell.clip(z, z, 2), z, 2);
        cell.mul(r, u + 2 * n, candidate);
        cell.add(candidate, x + 2 * n, candidate);
        cell.activate(1, cell.clip(candidate, candidate), candidate);
        blend(cell, z, candidate, h, spare, out);
      }
      cell.store(out, slots[operands[3]], b);
    }
  });
}

uint32_t run_gru_gates(const void* state, void* const* slots, const uint32_t* operands) {
  const Cell& cell = *static_cast<const Cell*>(state);
  const size_t n = cell.bytes();
  return over_batch(cell, slots[operands[4]], [&](size_t begin, size_t end, char* zr) {
    char *g_row = zr + 2 * n, *h_row = g_row + 2 * n, *z_row = h_row + n, *rh_row = z_row + n;
    for (size_t b = begin; b < end; ++b) {
      const char* g = cell.load(slots[operands[0]], b, 2, g_row);
      const char* h = cell.load(slots[operands[1]], b, 1, h_row);
      char* z = cell.target(slots[operands[2]], b, z_row);
      char* rh = cell.target(slots[operands[3]], b, rh_row);
      if (cell.fused) {
        cell.fused->gru_gates(g, h, z, rh, cell.hidden);
      } else {
        g = cell.clip(g, zr, 2);
        cell.activate(0, g, z);
        cell.activate(0, g + n, rh);
        cell.mul(rh, h, rh);
      }
      cell.store(z, slots[operands[2]], b);
      cell.store(rh, slots[operands[3]], b);
    }
  });
}

uint32_t run_gru_update(const void* state, void* const* slots, const uint32_t* operands) {
  const Cell& cell = *static_cast<const Cell*>(state);
  const size_t n = cell.bytes();
  return over_batch(cell, slots[operands[4]], [&](size_t begin, size_t end, char* candidate) {
    char *gate = candidate + n, *spare = gate + n, *g_row = spare + n, *z_row = g_row + n, *h_row = z_row + n,
         *out_row = h_row + n;
    for (size_t b = begin; b < end; ++b) {
      const char* g = cell.load(slots[operands[0]], b, 1, g_row);
      const char* z = cell.load(slots[operands[1]], b, 1, z_row);
      const char* h = cell.load(slots[operands[2]], b, 1, h_row);
      char* out = cell.target(slots[operands[3]], b, out_row);
      if (cell.fused) {
        cell.fused->gru_update(g, z, h, out, cell.hidden);
      } else {
        cell.activate(1, cell.clip(g, candidate), candidate);
        std::memcpy(gate, z, n);
        blend(cell, gate, candidate, h, spare, out);
      }
      cell.store(out, slots[operands[3]], b);
    }
  });
}

Row row_of(ElementwiseOp op, ComputeType type) {
  return kernels::elementwise_rows(op, type).vv;
}

bool has_default_functions(const std::vector<Activation>& activations) {
  constexpr ElementwiseOp kDefaults[] = {ElementwiseOp::kSigmoid, ElementwiseOp::kTanh, ElementwiseOp::kTanh};
  for (size_t i = 0; i < activations.size(); ++i) {
    if (activations[i].op != kDefaults[i]) return false;
  }
  return true;
}

// The state that all cells share. `scratch_blocks`: rows of hidden elements that the kernel works in.
const Cell* prepare_cell(PrepareContext& ctx, size_t scratch_blocks) {
  const Operand& out = ctx.outputs[0].present() ? ctx.outputs[0] : ctx.outputs[1];
  const ElementType stored = ctx.inputs[0].type;
  const ComputeType compute = compute_type(stored);
  const ElementType computed = compute == ComputeType::kF64 ? ElementType::kDouble : ElementType::kFloat;
  Cell* cell = ctx.make_state<Cell>();
  cell->batch = static_cast<size_t>(out.dims[0]);
  cell->hidden = static_cast<size_t>(out.dims[1]);
  cell->width = byte_width(computed);
  cell->direct = stored == computed;
  cell->load_converter = kernels::make_converter(stored, computed);
  cell->store_converter = kernels::make_converter(computed, stored);
  cell->mul_row = row_of(ElementwiseOp::kMul, compute);
  cell->add_row = row_of(ElementwiseOp::kAdd, compute);
  cell->rsub_row = kernels::elementwise_rows(ElementwiseOp::kSub, compute).sv;
  cell->clip_row = kernels::elementwise_rows(ElementwiseOp::kClip, compute).vs;
  cell->input_forget = ctx.attributes().get_int("input_forget") != 0;
  cell->clips = ctx.attributes().has("clip");
  const float clip = ctx.attributes().get_float("clip");
  if (compute == ComputeType::kF64) {
    std::copy_n(std::initializer_list<double>{-double{clip}, clip, 1}.begin(), 3, cell->constants.f64);
  } else {
    std::copy_n(std::initializer_list<float>{-clip, clip, 1}.begin(), 3, cell->constants.f32);
  }
  const std::vector<Activation> activations = from_attributes(ctx.attributes());
  for (size_t i = 0; i < activations.size() && i < 3; ++i) {
    const Activation& a = activations[i];
    cell->functions[i] = {row_of(a.op, compute), {a.alpha, a.beta}};
  }
  if (!cell->clips && !cell->input_forget && has_default_functions(activations)) {
    cell->fused = &kernels::recurrent_rows(compute);
  }
  cell->scratch_bytes = (scratch_blocks * cell->bytes() + 63) / 64 * 64;
  cell->entry_ns = costs::kCellLaneNs * static_cast<double>(cell->hidden);
  ctx.cost_ns = cell->entry_ns * static_cast<double>(cell->batch);
  ctx.scratch_bytes =
      cell->scratch_bytes * scratch_parts(static_cast<int64_t>(cell->batch), cell->entry_ns, ctx.threads);
  return cell;
}

Status prepare_rnn_cell(PrepareContext& ctx) {
  ctx.set_kernel(run_rnn_cell, prepare_cell(ctx, 1));
  return {};
}

Status prepare_lstm_cell(PrepareContext& ctx) {
  const bool peepholes = ctx.has_input(2), lengths = ctx.has_input(3);
  const auto run = lengths ? (peepholes ? run_lstm_cell<true, true> : run_lstm_cell<false, true>)
                           : (peepholes ? run_lstm_cell<true, false> : run_lstm_cell<false, false>);
  ctx.set_kernel(run, prepare_cell(ctx, 15));
  return {};
}

Status prepare_gru_cell(PrepareContext& ctx) {
  ctx.set_kernel(run_gru_cell, prepare_cell(ctx, 12));
  return {};
}

Status prepare_gru_gates(PrepareContext& ctx) {
  ctx.set_kernel(run_gru_gates, prepare_cell(ctx, 7));
  return {};
}

Status prepare_gru_update(PrepareContext& ctx) {
  ctx.set_kernel(run_gru_update, prepare_cell(ctx, 7));
  return {};
}

// All results have the type of input `kLike`.
template <size_t kLike>
Status infer_like(InferContext& ctx) {
  for (size_t i = 0; i < ctx.outputs.size(); ++i) ctx.set_output(i, ctx.input(kLike));
  return {};
}

VersionBuilder& with_attributes(VersionBuilder&& version) {
  return version.required("functions", ir::AttributeKind::kInts)
      .required("alphas", ir::AttributeKind::kFloats)
      .required("betas", ir::AttributeKind::kFloats)
      .optional("clip", ir::AttributeKind::kFloat)
      .attr("input_forget", 0)
      .type("T", types::kFloatsBf16);
}

}  // namespace

}  // namespace treadle::rnn

// g [B, H] -> h [B, H]
TREADLE_OP(RnnCell, "treadle") {
  rnn::with_attributes(op.since(1)).in("g", "T").out("h", "T");
  op.infer(rnn::infer_like<0>).prepare(rnn::prepare_rnn_cell).axes(axes::entries).work(work::functions_of_result<1>);
}

// g [B, 4H] (gates i, o, f, c), c [B, H], P [3H] (i, o, f), within [B, 1] -> h, c [B, H]. Entries beyond their lengths
// are not computed: h is zero, and c unchanged.
TREADLE_OP(LstmCell, "treadle") {
  rnn::with_attributes(op.since(1))
      .in("g", "T")
      .in("c", "T")
      .in("P", "T", Arity::kOptional)
      .in("within", "tensor(bool)", Arity::kOptional)
      .out("h_out", "T")
      .out("c_out", "T");
  op.infer(rnn::infer_like<1>)
      .prepare(rnn::prepare_lstm_cell)
      .axes(axes::entries_of<0b1011>)
      .work(work::functions_of_result<5>);
}

// x [B, 3H], u [B, 3H] (gates z, r, h), h [B, H] -> h [B, H]
TREADLE_OP(GruCell, "treadle") {
  rnn::with_attributes(op.since(1)).in("x", "T").in("u", "T").in("h", "T").out("h_out", "T");
  op.infer(rnn::infer_like<2>)
      .prepare(rnn::prepare_gru_cell)
      .axes(axes::entries_of<0b111>)
      .work(work::functions_of_result<3>);
}

// g [B, 2H] (gates z, r), h [B, H] -> z [B, H], r·h [B, H]
TREADLE_OP(GruGates, "treadle") {
  rnn::with_attributes(op.since(1)).in("g", "T").in("h", "T").out("z", "T").out("rh", "T");
  op.infer(rnn::infer_like<1>)
      .prepare(rnn::prepare_gru_gates)
      .axes(axes::entries_of<0b011>)
      .work(work::functions_of_result<2>);
}

// g [B, H] (the candidate's preactivation), z, h [B, H] -> h [B, H]
TREADLE_OP(GruUpdate, "treadle") {
  rnn::with_attributes(op.since(1)).in("g", "T").in("z", "T").in("h", "T").out("h_out", "T");
  op.infer(rnn::infer_like<2>)
      .prepare(rnn::prepare_gru_update)
      .axes(axes::entries_of<0b111>)
      .work(work::functions_of_result<1>);
}
