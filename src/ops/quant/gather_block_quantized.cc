// GatherBlockQuantized: Gather from a table with few bits per element and a scale for each block along an axis. An
// index out of range gives zeros.

#include "op/axes.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "ops/fused/calls.h"
#include "ops/quant/packed_bits.h"

namespace treadle::quant {

namespace {

using ir::Attribute;
using ir::Value;

enum Input : size_t { kData, kIndices, kScales, kZeros };

// The attributes, and the rank of the data.
struct Table {
  int64_t rank = 0, gathered = 0, quantized = 0, block = 0;
  int64_t bits = 8;  // bits of an element within a byte; other types have one element each
  bool is_float = false;

  // Elements in a byte.
  int64_t components() const { return 8 / bits; }
  // The quantised axis in the result, for indices of this rank.
  int64_t quantized_in_result(int64_t index_rank) const {
    return quantized > gathered ? quantized + index_rank - 1 : quantized;
  }
};

bool is_float_table(ElementType type) {
  return types::kFloat8s.contains(type) || type == ElementType::kFloat4e2m1;
}

Result<int64_t> table_axis(const ir::Attributes& attributes, const char* name, int64_t rank) {
  const int64_t axis = attributes.get_int(name);
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  return error(Code::kInvalidModel, "attribute {} is {}, expected {} to {}", name, axis, -rank, rank - 1);
}

Result<Table> read_table(const ir::Attributes& attributes, ElementType type, int64_t rank) {
  Table t{.rank = rank, .block = attributes.get_int("block_size"), .is_float = is_float_table(type)};
  const bool whole = t.is_float && t.block == 0;
  if (!whole && (t.block < 16 || (t.block & (t.block - 1)) != 0)) {
    return error(Code::kInvalidModel, "attribute block_size is {}, expected a power of 2 from 16 on", t.block);
  }
  if (!t.is_float) {
    t.bits = attributes.get_int("bits");
    const bool bytes = type == ElementType::kUint8;
    if (bytes ? t.bits != 2 && t.bits != 4 && t.bits != 8 : t.bits != 4) {
      return error(Code::kInvalidModel, "attribute bits is {}, expected {} for data of {}", t.bits,
                   bytes ? "2, 4 or 8" : "4", name(type));
    }
    if (!bytes) t.bits = 8;
  }
  TREADLE_ASSIGN(t.gathered, table_axis(attributes, "gather_axis", rank));
  TREADLE_ASSIGN(t.quantized, table_axis(attributes, "quantize_axis", rank));
  if (type == ElementType::kUint8 && (t.gathered != 0 || t.quantized != rank - 1 || rank < 2)) {
    return error(Code::kInvalidModel, "gather_axis and quantize_axis are {} and {}, expected 0 and {} for bytes",
                 t.gathered, t.quantized, rank - 1);
  }
  return t;
}

// Scales have a size for each block along the quantised axis. In a table of floats, size 1 along another axis is
// broadcast.
Status check_scales(const InferContext& ctx, const Table& t, const Shape& data) {
  const Shape* scales = ctx.shape(kScales);
  bool fits = !scales || scales->size() == data.size();
  for (size_t i = 0; fits && scales && i < data.size(); ++i) {
    const bool quantized = static_cast<int64_t>(i) == t.quantized;
    Dim expected = data[i];
    if (quantized) expected = t.block == 0 ? Dim(1) : ceil_div(data[i] * Dim(t.components()), Dim(t.block));
    fits = !differ((*scales)[i], expected) || (t.is_float && !quantized && (*scales)[i].is_known(1));
  }
  if (fits) return {};
  return error(Code::kInvalidArgument, "scales have shape {}, expected those of data {} in blocks of {}",
               to_string(*scales), to_string(data), t.block);
}

Status check_zeros(const InferContext& ctx, const Table& t) {
  if (!ctx.has_input(kZeros)) return {};
  if (t.is_float)
    return error(Code::kInvalidModel, "zero_points are given, expected none with data of {}", name(ctx.element(kData)));
  const Shape *scales = ctx.shape(kScales), *zeros = ctx.shape(kZeros);
  bool fits = !scales || !zeros || scales->size() == zeros->size();
  for (size_t i = 0; fits && scales && zeros && i < scales->size(); ++i) {
    const bool packed = static_cast<int64_t>(i) == t.quantized;
    fits = !differ((*zeros)[i], packed ? ceil_div((*scales)[i], Dim(t.components())) : (*scales)[i]);
  }
  if (fits) return {};
  return error(Code::kInvalidArgument, "zero_points have shape {}, expected those of scales {}", to_string(*zeros),
               to_string(*scales));
}

Status infer_gather(InferContext& ctx) {
  const Shape *data = ctx.shape(kData), *indices = ctx.shape(kIndices);
  if (!data) return ctx.set_output(0, ctx.element(kScales)), Status();
  TREADLE_ASSIGN(const Table t, read_table(ctx.attributes(), ctx.element(kData), static_cast<int64_t>(data->size())));
  TREADLE_TRY(check_scales(ctx, t, *data));
  TREADLE_TRY(check_zeros(ctx, t));
  if (!indices) return ctx.set_output(0, ctx.element(kScales)), Status();
  Shape out;
  for (int64_t i = 0; i < t.rank; ++i) {
    const Dim& size = (*data)[static_cast<size_t>(i)];
    if (i == t.gathered) {
      for (const Dim& d : *indices) out.push_back(d);
    } else {
      out.push_back(i == t.quantized ? size * Dim(t.components()) : size);
    }
  }
  ctx.set_output(0, ctx.element(kScales), std::move(out));
  return {};
}

// ---- Lowering

class Gathering {
 public:
  Gathering(LowerContext& ctx, const Table& table) : ctx_(ctx), t_(table) {
    index_rank_ = ctx.type(kIndices).rank();
    Value* given = fused::input_as(ctx, kIndices, ElementType::kInt64);
    Value *size = fused::as_scalar(ctx, fused::size_of(ctx, ctx.input(kData), t_.gathered)),
          *zero = ctx.constant_int64(0);
    Value* from_front = ctx.call("Where", {ctx.call("Less", {given, zero}), ctx.call("Add", {given, size}), given});
    inside_ = ctx.call("And", {ctx.call("GreaterOrEqual", {from_front, zero}), ctx.call("Less", {from_front, size})});
    at_ = ctx.call("Where", {inside_, from_front, zero});
  }

  Value* run() {
    Value* q = element_values(rows(ctx_.input(kData), at_), ctx_.type(kData).element);
    const bool from_zero = !ctx_.has_input(kZeros) && ctx_.type(kData).element != ElementType::kUint8;
    Value* y = from_zero ? q : ctx_.call("Sub", {q, zeros(q)});
    y = ctx_.call(
        "Mul",
        {y, along_blocks(fused::cast(ctx_, block_rows(kScales), ctx_.type(kScales).element, ElementType::kFloat), q)});
    // Zeros where the index is out of range. The mask has the axes of the indices, then as many axes of size 1 as
    // follow.
    std::vector<int64_t> behind;
    for (int64_t i = t_.gathered + 1; i < t_.rank; ++i) behind.push_back(index_rank_ + i - t_.gathered - 1);
    Value* inside =
        behind.empty() ? inside_ : ctx_.call("Unsqueeze", {inside_, ctx_.constant(Tensor::of_int64(behind))});
    y = ctx_.call("Where", {inside, y, ctx_.number(0, ElementType::kFloat)});
    return fused::cast(ctx_, y, ElementType::kFloat, ctx_.type(kScales).element);
  }

 private:
  Value* gather(Value* table, Value* at, int64_t axis) {
    return ctx_.call("GatherAny", {table, at}, {Attribute::of("axis", axis)}, "treadle");
  }
  Value* rows(Value* table, Value* at) { return gather(table, at, t_.gathered); }

  // Splits bytes into elements, along the last axis.
  Value* element_values(Value* v, ElementType type) {
    if (type != ElementType::kUint8 || t_.bits == 8) return fused::cast(ctx_, v, type, ElementType::kFloat);
    return split(ctx_, v, t_.bits);
  }

  // Scales or zero points of the gathered rows. Those of a whole axis are a single row.
  Value* block_rows(size_t input) {
    const Type& type = ctx_.type(input);
    const bool shared = type.has_shape && type.shape[static_cast<size_t>(t_.gathered)].is_known(1);
    if (t_.gathered == t_.quantized) {
      Value* block = t_.block == 0 ? fused::as_scalar(ctx_, fused::size_of(ctx_, ctx_.input(kData), t_.gathered))
                                   : ctx_.constant_int64(t_.block);
      return rows(ctx_.input(input), ctx_.call("Div", {at_, block}));
    }
    return rows(ctx_.input(input), shared ? ctx_.call("Mul", {at_, ctx_.constant_int64(0)}) : at_);
  }

  // Repeats scales or zero points to one for each element of `q` along the quantised axis.
  Value* along_blocks(Value* blocks, Value* q) {
    if (t_.gathered == t_.quantized || t_.block == 0) return blocks;
    const int64_t axis = t_.quantized_in_result(index_rank_);
    Value* element = fused::counted(ctx_, fused::size_of(ctx_, q, axis));
    return gather(blocks, ctx_.call("Div", {element, ctx_.constant_int64(t_.block)}), axis);
  }

  Value* zeros(Value* q) {
    if (!ctx_.has_input(kZeros))
      return ctx_.number(static_cast<double>(int64_t{1} << (t_.bits - 1)), ElementType::kFloat);
    return along_blocks(element_values(block_rows(kZeros), ctx_.type(kZeros).element), q);
  }

  LowerContext& ctx_;
  const Table& t_;
  int64_t index_rank_ = 0;
  Value *inside_ = nullptr, *at_ = nullptr;
};

Status lower_gather(LowerContext& ctx) {
  const Type &data = ctx.type(kData), &indices = ctx.type(kIndices);
  if (!data.has_shape || !indices.has_shape) return error(Code::kNotImplemented, "data or indices of unknown rank");
  TREADLE_ASSIGN(const Table t, read_table(ctx.attributes(), data.element, data.rank()));
  ctx.set_output(0, Gathering(ctx, t).run());
  return {};
}

// Axes of the indices are independent.
Status gathered_axes(AxisContext& c) {
  if (!c.only_runs_along(kIndices)) return looks_along("it picks positions of its data");
  return c.give(0, c.axis(c.rank(kData), 0, "gather_axis") + c.in(kIndices));
}

}  // namespace

}  // namespace treadle::quant

TREADLE_OP(GatherBlockQuantized, "com.microsoft") {
  op.since(1)
      .in("data", "T1")
      .in("indices", "Tind")
      .in("scales", "T2")
      .in("zero_points", "T1", Arity::kOptional)
      .out("output", "T2")
      .attr("bits", 4)
      .attr("block_size", 128)
      .attr("gather_axis", 0)
      .attr("quantize_axis", 1)
      .type("T1", types::kUint8s | types::kFloat8s |
                      tensors(ElementType::kInt4, ElementType::kUint4, ElementType::kFloat4e2m1))
      .type("T2", types::kFloatsTo32)
      .type("Tind", types::kIndices);
  op.infer(quant::infer_gather).lower(quant::lower_gather).axes(quant::gathered_axes);
}
