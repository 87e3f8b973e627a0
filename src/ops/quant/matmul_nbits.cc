// MatMulNBits: rows times weights of 2, 4 or 8 bits, with a scale and optionally a zero point for each block of a
// column. It is lowered to BlockMatMul, whose weights stay packed (kernels/block_weights.h). If each row of the weights
// names its block (g_idx), weights become floats first.

#include <array>
#include <memory>
#include <vector>

#include "base/in_pieces.h"
#include "kernels/block_weights.h"
#include "kernels/gemm.h"
#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/parallel.h"
#include "op/work.h"
#include "ops/costs.h"
#include "ops/fused/calls.h"
#include "ops/norm/channels.h"
#include "ops/quant/packed_bits.h"
#include "type/make_tensor.h"

namespace treadle::quant {

namespace {

enum Input : size_t { kA, kB, kScales, kZeros, kGroups, kBias };

kernels::BlockWeights read_weights(const ir::Attributes& attributes) {
  kernels::BlockWeights w;
  w.k = attributes.get_int("K");
  w.n = attributes.get_int("N");
  w.block = attributes.get_int("block_size");
  w.bits = static_cast<int>(attributes.get_int("bits"));
  return w;
}

// Bytes of the packed zero points of a column.
int64_t zero_bytes(const kernels::BlockWeights& w) {
  return (w.blocks() * w.bits + 7) / 8;
}

// ---- Inference

// Limits that avoid overflow with 8 bits per weight.
Status check_sizes(int64_t k, int64_t n, int64_t block) {
  constexpr int64_t kMost = int64_t{1} << 30;
  if (k >= 1 && n >= 1 && k <= kMost && n <= kMost && block <= kMost) return {};
  return error(Code::kInvalidModel, "attributes K, N and block_size are {}, {} and {}, expected 1 to {}", k, n, block,
               kMost);
}

Status check_attributes(const InferContext& ctx, const kernels::BlockWeights& w) {
  TREADLE_TRY(check_sizes(w.k, w.n, w.block));
  if (w.bits != 2 && w.bits != 4 && w.bits != 8) {
    return error(Code::kInvalidModel, "attribute bits is {}, expected 2, 4 or 8", w.bits);
  }
  if (w.block < 16 || (w.block & (w.block - 1)) != 0) {
    return error(Code::kInvalidModel, "attribute block_size is {}, expected a power of 2 from 16 on", w.block);
  }
  if (ctx.attributes().get_int("weight_prepacked", 0) != 0) {
    return error(Code::kNotImplemented, "attribute weight_prepacked is {}: weights are laid out for another device",
                 ctx.attributes().get_int("weight_prepacked"));
  }
  return {};
}

// Checks for `count` elements in any shape.
Status check_count(const InferContext& ctx, size_t i, int64_t count) {
  const Shape* shape = ctx.shape(i);
  if (!shape || !differ(element_count(*shape), Dim(count))) return {};
  return error(Code::kInvalidArgument, "{} has shape {}, expected {} elements", ctx.node.version->inputs[i].name,
               to_string(*shape), count);
}

Status infer_nbits(InferContext& ctx) {
  const kernels::BlockWeights w = read_weights(ctx.attributes());
  TREADLE_TRY(check_attributes(ctx, w));
  TREADLE_TRY(check_count(ctx, kB, w.n * w.blocks() * w.block * w.bits / 8));
  TREADLE_TRY(check_count(ctx, kScales, w.n * w.blocks()));
  const bool packed = ctx.element(kZeros) == ElementType::kUint8;
  TREADLE_TRY(check_count(ctx, kZeros, w.n * (packed ? zero_bytes(w) : w.blocks())));
  TREADLE_TRY(check_count(ctx, kBias, w.n));
  const Shape* groups = ctx.shape(kGroups);
  if (groups && differ(element_count(*groups), Dim(w.k)) && differ(element_count(*groups), Dim(w.padded_k()))) {
    return error(Code::kInvalidArgument, "g_idx has shape {}, expected [{}]", to_string(*groups), w.k);
  }
  const Shape* a = ctx.shape(kA);
  if (!a) return ctx.set_output(0, ctx.element(kA)), Status();
  if (a->empty() || differ(a->back(), Dim(w.k))) {
    return error(Code::kInvalidArgument, "A has shape {}, expected rows of K = {} elements", to_string(*a), w.k);
  }
  Shape out = *a;
  out.back() = w.n;
  ctx.set_output(0, ctx.element(kA), std::move(out));
  return {};
}

// ---- Preparation

struct BlockState {
  kernels::BlockWeights weights;
  kernels::BlockRowsRun run = nullptr;
  const void* packed = nullptr;  // null: packed in every run
  ElementType type = ElementType::kFloat, zero_type = ElementType::kFloat;
  kernels::TileConverter widen, narrow;
  int64_t rows = 0, chunk = 1;  // rows that pass through a group of columns together
  bool copies_rows = false, narrows = false, has_bias = false;
  size_t a = 0, a_sums = 0, c = 0, bias = 0, own_packed = 0, workers = 0, worker_bytes = 0;  // offsets in scratch
  double unit_ns = 0;
  uint32_t output = 0, scratch = 0;

  int64_t chunks() const { return (rows + chunk - 1) / chunk; }
};

// Unpacking ends early if it is told to stop, as packing does.
using Floats = std::unique_ptr<float[]>;

Floats widened(const kernels::TileConverter& converter, const void* from, int64_t count) {
  auto wide = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(count));
  kernels::convert(converter, from, wide.get(), static_cast<size_t>(count));
  return wide;
}

// Zero points relative to the middle of the range.
Floats read_zeros(const BlockState& s, const void* zeros) {
  const kernels::BlockWeights& w = s.weights;
  const auto middle = static_cast<float>(int64_t{1} << (w.bits - 1));
  const int64_t count = w.n * w.blocks();
  if (s.zero_type != ElementType::kUint8) {
    Floats values = widened(kernels::make_converter(s.zero_type, ElementType::kFloat), zeros, count);
    in_pieces(count, kernels::kPackedNs, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) values[static_cast<size_t>(i)] -= middle;
    });
    return values;
  }
  auto values = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(count));
  float* to = values.get();
  StopPoll stop;
  StepPoll steps(stop, kernels::kPackedNs);
  const auto* bytes = static_cast<const uint8_t*>(zeros);
  const int per_byte = 8 / w.bits;
  const uint32_t mask = (1u << w.bits) - 1;
  for (int64_t j = 0; j < w.n; ++j, bytes += zero_bytes(w)) {
    for (int64_t b = 0; b < w.blocks(); ++b) {
      if (steps.after_step()) return values;
      const uint32_t zero = static_cast<uint32_t>(bytes[b / per_byte]) >> (b % per_byte * w.bits) & mask;
      *to++ = static_cast<float>(zero) - middle;
    }
  }
  return values;
}

void pack(const BlockState& s, const void* b, const void* scales, const void* zeros, void* packed) {
  const kernels::BlockWeights& w = s.weights;
  const Floats wide_scales = widened(s.widen, scales, w.n * w.blocks());
  const Floats wide_zeros = w.has_zeros ? read_zeros(s, zeros) : nullptr;
  kernels::pack_block_weights(w, static_cast<const std::byte*>(b), wide_scales.get(), wide_zeros.get(), packed);
}

// The packed form depends on the contents of scales and zero points, too. A hash of contents lets sessions share it.
uint64_t mixed(uint64_t key, const Operand& operand) {
  const auto* bytes = static_cast<const uint8_t*>(operand.constant);
  const auto count = static_cast<size_t>(operand.element_count()) * byte_width(operand.type);
  in_pieces(static_cast<int64_t>(count), costs::kHashedByteNs, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) key = (key ^ bytes[i]) * 0x100000001B3u;
  });
  return key;
}

Result<const void*> pack_constants(PrepareContext& ctx, const BlockState& s) {
  const bool zeros = s.weights.has_zeros;
  const Operand &b = ctx.inputs[kB], &scales = ctx.inputs[kScales];
  if (!b.constant || !scales.constant || (zeros && !ctx.inputs[kZeros].constant)) {
    return static_cast<const void*>(nullptr);
  }
  uint64_t key = 0x626c'6f63'6b73'7765u;
  for (const int64_t part : {s.weights.k, s.weights.n, s.weights.block, int64_t{s.weights.bits}}) {
    key = (key ^ static_cast<uint64_t>(part)) * 0x9E37'79B9'7F4A'7C15u;
  }
  key = mixed(key, scales);
  const void* zero_points = nullptr;
  if (zeros) {
    key = mixed(key, ctx.inputs[kZeros]);
    zero_points = ctx.inputs[kZeros].constant;
  }
  return ctx.packs.get(b, key, s.weights.packed_bytes(),
                       [&](void* out) { pack(s, b.constant, scales.constant, zero_points, out); });
}

// ---- Run

// Copies the blocks of a row as float, with zeros behind K.
void lay_row(const BlockState& s, const std::byte* given, float* to, int64_t block_step) {
  const kernels::BlockWeights& w = s.weights;
  const auto width = static_cast<int64_t>(byte_width(s.type));
  for (int64_t k = 0; k < w.padded_k(); k += w.block, to += block_step) {
    const int64_t count = std::min(w.block, w.k - k);
    kernels::convert(s.widen, given + k * width, to, static_cast<size_t>(count));
    std::fill(to + count, to + w.block, 0.0f);
  }
}

// Gathers rows of A, and the factors of the zero points. Blocks of many rows are laid side by side: rows of a power of
// two in length would share few sets of the cache.
void gather_rows(const BlockState& s, const void* given, kernels::BlockRows& r, std::byte* scratch) {
  const kernels::BlockWeights& w = s.weights;
  r.a = static_cast<const float*>(given);
  r.a_row = w.k;
  r.a_block = w.block;
  if (s.copies_rows) {
    const bool many = s.rows > 2;
    r.a_row = many ? w.block : w.padded_k();
    r.a_block = many ? s.rows * w.block : w.block;
    auto* rows = reinterpret_cast<float*>(scratch + s.a);
    const auto* from = static_cast<const std::byte*>(given);
    const int64_t row_bytes = w.k * static_cast<int64_t>(byte_width(s.type));
    for (int64_t i = 0; i < s.rows; ++i) lay_row(s, from + i * row_bytes, rows + i * r.a_row, r.a_block);
    r.a = rows;
  }
  if (!w.has_zeros) return;
  auto* sums = reinterpret_cast<float*>(scratch + s.a_sums);
  for (int64_t i = 0; i < s.rows * w.blocks(); ++i) {
    const float* block = r.a + i / w.blocks() * r.a_row + i % w.blocks() * r.a_block;
    float sum = 0;
    for (int64_t k = 0; k < w.block; ++k) sum += block[k];
    sums[i] = sum;
  }
  r.a_sums = sums;
}

uint32_t run_block_matmul(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const BlockState*>(state);
  auto* scratch = static_cast<std::byte*>(slots[operands[s.scratch]]);
  const void* packed = s.packed;
  if (!packed) {
    pack(s, slots[operands[kB]], slots[operands[kScales]], s.weights.has_zeros ? slots[operands[kZeros]] : nullptr,
         scratch + s.own_packed);
    packed = scratch + s.own_packed;
  }
  kernels::BlockRows rows;
  gather_rows(s, slots[operands[kA]], rows, scratch);
  if (s.has_bias) {
    rows.bias = static_cast<const float*>(slots[operands[kBias]]);
    if (s.narrows) {
      auto* bias = reinterpret_cast<float*>(scratch + s.bias);
      kernels::convert(s.widen, rows.bias, bias, static_cast<size_t>(s.weights.n));
      rows.bias = bias;
    }
  }
  void* out = slots[operands[s.output]];
  rows.c = s.narrows ? reinterpret_cast<float*>(scratch + s.c) : static_cast<float*>(out);
  rows.c_row = s.weights.n;
  // Chunks of rows are the outer units, so that a thread uses the weights of its groups as long as possible.
  const int64_t groups = s.weights.groups();
  parallel_for(s.chunks() * groups, s.unit_ns, [&](int64_t begin, int64_t end, int worker) {
    for (int64_t unit = begin; unit < end;) {
      const int64_t chunk = unit / groups, first = unit % groups, last = std::min(groups, first + end - unit);
      kernels::BlockRows part = rows;
      const int64_t row = chunk * s.chunk;
      part.rows = std::min(s.chunk, s.rows - row);
      part.a += row * rows.a_row;
      part.c += row * rows.c_row;
      if (rows.a_sums) part.a_sums += row * s.weights.blocks();
      part.scratch = reinterpret_cast<float*>(scratch + s.workers + static_cast<size_t>(worker) * s.worker_bytes);
      s.run(s.weights, packed, part, first, last);
      unit += last - first;
    }
  });
  if (s.narrows) parallel_convert(s.narrow, rows.c, out, static_cast<size_t>(s.rows * s.weights.n));
  return 0;
}

Status prepare_block_matmul(PrepareContext& ctx) {
  constexpr int64_t kChunk = 96;
  auto* s = ctx.make_state<BlockState>();
  s->weights = read_weights(ctx.attributes());
  s->weights.has_zeros = ctx.has_input(kZeros);
  if (s->weights.has_zeros) s->zero_type = ctx.inputs[kZeros].type;
  const kernels::BlockWeights& w = s->weights;
  s->run = kernels::block_rows();
  s->type = ctx.inputs[kA].type;
  s->narrows = s->type != ElementType::kFloat;
  s->widen = kernels::make_converter(s->type, ElementType::kFloat);
  s->narrow = kernels::make_converter(ElementType::kFloat, s->type);
  s->rows = ctx.inputs[kA].element_count() / w.k;
  s->chunk = std::clamp<int64_t>(s->rows, 1, kChunk);
  s->copies_rows = s->narrows || w.padded_k() != w.k || s->rows > 2;
  s->has_bias = ctx.has_input(kBias);
  s->output = static_cast<uint32_t>(ctx.inputs.size());
  s->scratch = ctx.scratch_operand();
  TREADLE_ASSIGN(s->packed, pack_constants(ctx, *s));
  ScratchLayout scratch;
  const auto floats = [&](int64_t count) { return scratch.add(static_cast<size_t>(count) * sizeof(float)); };
  if (!s->packed) s->own_packed = scratch.add(w.packed_bytes());
  if (s->copies_rows) s->a = floats(s->rows * w.padded_k());
  if (w.has_zeros) s->a_sums = floats(s->rows * w.blocks());
  if (s->narrows) s->c = floats(s->rows * w.n);
  if (s->narrows && s->has_bias) s->bias = floats(w.n);
  s->workers = scratch.size();
  s->worker_bytes = (static_cast<size_t>(kernels::block_rows_scratch(w, s->chunk)) * sizeof(float) + 63) / 64 * 64;
  const auto weights = static_cast<double>(w.padded_k() * kernels::BlockWeights::kColumns);
  s->unit_ns = weights * (costs::kBlockWeightNs + costs::kBlockProductNs * static_cast<double>(s->chunk));
  const int64_t units = s->chunks() * w.groups();
  ctx.scratch_bytes = scratch.size() + s->worker_bytes * scratch_parts(units, s->unit_ns, ctx.threads);
  ctx.cost_ns = s->unit_ns * static_cast<double>(units);
  ctx.set_kernel(run_block_matmul, s);
  return {};
}

// ---- Lowering

std::vector<ir::Attribute> sizes_of(const ir::Attributes& given) {
  std::vector<ir::Attribute> attributes;
  for (const char* name : {"K", "N", "bits", "block_size"}) {
    attributes.push_back(ir::Attribute::of(name, given.get_int(name)));
  }
  return attributes;
}

// [N, K], where row k of the weights is in block g_idx[k].
ir::Value* gathered_weights(LowerContext& ctx) {
  const kernels::BlockWeights w = read_weights(ctx.attributes());
  ir::Value* groups = fused::slice(ctx, ctx.input(kGroups), ctx.constant_int64s({0}), ctx.constant_int64s({w.k}), 0);
  const auto of_rows = [&](ir::Value* v) {
    v = ctx.call("Reshape", {v, ctx.constant_int64s({w.n, w.blocks()})});
    return ctx.call("Gather", {v, groups}, {ir::Attribute::of("axis", 1)});
  };
  ir::Value* q = unpacked(ctx, ctx.input(kB), w.bits, w.n, w.k);
  if (!ctx.has_input(kZeros)) {
    q = ctx.call("Sub", {q, ctx.number(1 << (w.bits - 1), ElementType::kFloat)});
  } else if (ctx.type(kZeros).element == ElementType::kUint8) {
    q = ctx.call("Sub", {q, of_rows(unpacked(ctx, ctx.input(kZeros), w.bits, w.n, w.blocks()))});
  } else {
    q = ctx.call("Sub", {q, of_rows(fused::input_as(ctx, kZeros, ElementType::kFloat))});
  }
  return ctx.call("Mul", {q, of_rows(fused::input_as(ctx, kScales, ElementType::kFloat))});
}

Status lower_nbits(LowerContext& ctx) {
  if (!ctx.has_input(kGroups)) {
    ctx.set_output(0, ctx.call("BlockMatMul",
                               {ctx.input(kA), ctx.input(kB), ctx.input(kScales), fused::optional_input(ctx, kZeros),
                                nullptr, fused::optional_input(ctx, kBias)},
                               sizes_of(ctx.attributes()), "treadle"));
    return {};
  }
  const ElementType type = ctx.type(kA).element;
  ir::Value* weights = ctx.call("Transpose", {gathered_weights(ctx)});
  ir::Value* y = ctx.call("MatMul", {fused::input_as(ctx, kA, ElementType::kFloat), weights});
  if (ctx.has_input(kBias)) y = ctx.call("Add", {y, fused::input_as(ctx, kBias, ElementType::kFloat)});
  ctx.set_output(0, fused::cast(ctx, y, ElementType::kFloat, type));
  return {};
}

// All axes of A except that of a row's elements are independent.
Status rows_axes(AxisContext& c) {
  TREADLE_TRY(axes::only_first(c));
  if (c.in(0) == c.rank(0) - 1) return looks_along("its product sums along it");
  return c.give(0, c.in(0));
}

Work nbits_work(const ir::Node& node) {
  return {.flops = 2 * work::elements_of(node.outputs[0]) * static_cast<double>(node.attributes.get_int("K"))};
}

// ---- MatMulBnb4

enum BnbInput : size_t { kRows, kCodes, kAbsmax };

Status infer_bnb4(InferContext& ctx) {
  const auto& attributes = ctx.attributes();
  const int64_t k = attributes.get_int("K"), n = attributes.get_int("N"), block = attributes.get_int("block_size");
  const int64_t type = attributes.get_int("quant_type");
  TREADLE_TRY(check_sizes(k, n, block));
  if (block < 16 || (block & (block - 1)) != 0) {
    return error(Code::kInvalidModel, "attribute block_size is {}, expected a power of 2 from 16 on", block);
  }
  if (type != 0 && type != 1) return error(Code::kInvalidModel, "attribute quant_type is {}, expected 0 or 1", type);
  TREADLE_TRY(check_count(ctx, kCodes, (n * k + 1) / 2));
  TREADLE_TRY(check_count(ctx, kAbsmax, (n * k + block - 1) / block));
  const bool transposed = attributes.get_int("transB") != 0;
  const Shape* a = ctx.shape(kRows);
  if (!a) return ctx.set_output(0, ctx.element(kRows)), Status();
  if (a->empty() || differ(a->back(), Dim(transposed ? k : n))) {
    return error(Code::kInvalidArgument, "A has shape {}, expected rows of {} elements", to_string(*a),
                 transposed ? k : n);
  }
  Shape out = *a;
  out.back() = transposed ? n : k;
  ctx.set_output(0, ctx.element(kRows), std::move(out));
  return {};
}

// The value of each code, as a share of the block's largest magnitude.
constexpr std::array<std::array<float, 16>, 2> kBnbValues{{
    {0.0f, 5.208333333e-03f, 0.66666667f, 1.0f, 0.33333333f, 0.5f, 0.16666667f, 0.25f, -0.0f, -5.208333333e-03f,
     -0.66666667f, -1.0f, -0.33333333f, -0.5f, -0.16666667f, -0.25f},
    {-1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f, -0.28444138169288635f,
     -0.18477343022823334f, -0.09105003625154495f, 0.0f, 0.07958029955625534f, 0.16093020141124725f,
     0.24611230194568634f, 0.33791524171829224f, 0.44070982933044434f, 0.5626170039176941f, 0.7229568362236023f, 1.0f},
}};

Status lower_bnb4(LowerContext& ctx) {
  const auto& attributes = ctx.attributes();
  const int64_t k = attributes.get_int("K"), n = attributes.get_int("N"), block = attributes.get_int("block_size");
  // The first code of a byte is in its high bits.
  ir::Value* bytes = fused::unsqueeze(ctx, ctx.call("Reshape", {ctx.input(kCodes), ctx.constant_int64s({-1})}), {1});
  ir::Value* high =
      ctx.call("BitShift", {bytes, ctx.number(4, ElementType::kUint8)}, {ir::Attribute::of("direction", "RIGHT")});
  ir::Value* low = ctx.call("BitwiseAnd", {bytes, ctx.number(15, ElementType::kUint8)});
  ir::Value* codes = ctx.call("Reshape", {fused::concat(ctx, {high, low}, 1), ctx.constant_int64s({-1})});
  codes = fused::slice(ctx, codes, ctx.constant_int64s({0}), ctx.constant_int64s({n * k}), 0);
  Tensor values = make_tensor(ElementType::kFloat, {16});
  const auto& table = kBnbValues[static_cast<size_t>(attributes.get_int("quant_type"))];
  std::copy(table.begin(), table.end(), values.mutable_data<float>());
  codes = fused::cast(ctx, codes, ElementType::kUint8, ElementType::kInt32);
  ir::Value* weights = ctx.call("Gather", {ctx.constant(std::move(values)), codes});
  ir::Value* blocks = ctx.call("Div", {fused::counted(ctx, ctx.constant_int64s({n * k})), ctx.constant_int64(block)});
  weights =
      ctx.call("Mul", {weights, ctx.call("Gather", {fused::input_as(ctx, kAbsmax, ElementType::kFloat), blocks})});
  weights = ctx.call("Reshape", {weights, ctx.constant_int64s({n, k})});
  if (attributes.get_int("transB") != 0) weights = ctx.call("Transpose", {weights});
  ir::Value* y = ctx.call("MatMul", {fused::input_as(ctx, kRows, ElementType::kFloat), weights});
  ctx.set_output(0, fused::cast(ctx, y, ElementType::kFloat, ctx.type(kRows).element));
  return {};
}

void add_blocks(VersionBuilder& v) {
  v.in("A", "T1")
      .in("B", "T2")
      .in("scales", "T1")
      .in("zero_points", "T3", Arity::kOptional)
      .in("g_idx", "T4", Arity::kOptional)
      .in("bias", "T1", Arity::kOptional)
      .out("Y", "T1")
      .required("K", ir::AttributeKind::kInt)
      .required("N", ir::AttributeKind::kInt)
      .attr("bits", 4)
      .required("block_size", ir::AttributeKind::kInt)
      .type("T1", types::kFloatsTo32)
      .type("T2", types::kUint8s)
      .type("T3", types::kUint8s | types::kFloatsTo32)
      .type("T4", types::kInt32s);
}

}  // namespace

}  // namespace treadle::quant

TREADLE_OP(MatMulNBits, "com.microsoft") {
  op.since(1).with(quant::add_blocks).attr("accuracy_level", 0).attr("weight_prepacked", 0);
  op.infer(quant::infer_nbits)
      .lower(quant::lower_nbits)
      .can_fail()
      .axes(quant::rows_axes, axes::unchanged)
      .product(Product::kMatrices)
      .work(quant::nbits_work);
}

// MatMulNBits without g_idx.
TREADLE_OP(BlockMatMul, "treadle") {
  op.since(1).with(quant::add_blocks);
  op.infer(quant::infer_nbits)
      .prepare(quant::prepare_block_matmul)
      .axes(quant::rows_axes, axes::unchanged)
      .product(Product::kMatrices)
      .work(quant::nbits_work);
}

TREADLE_OP(MatMulBnb4, "com.microsoft") {
  op.since(1)
      .in("A", "T1")
      .in("B", "T2")
      .in("absmax", "T1")
      .out("Y", "T1")
      .required("K", ir::AttributeKind::kInt)
      .required("N", ir::AttributeKind::kInt)
      .required("block_size", ir::AttributeKind::kInt)
      .required("quant_type", ir::AttributeKind::kInt)
      .attr("training_mode", 0)
      .attr("transB", 1)
      .type("T1", types::kFloatsTo32)
      .type("T2", types::kUint8s);
  op.infer(quant::infer_bnb4)
      .lower(quant::lower_bnb4)
      .axes(quant::rows_axes, axes::unchanged)
      .product(Product::kMatrices)
      .work(quant::nbits_work);
}
