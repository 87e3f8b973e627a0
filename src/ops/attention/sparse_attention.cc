// SparseAttention: GroupQueryAttention in which the queries of a block of positions attend only some blocks of keys. It
// is lowered with a bias that masks the other blocks. Heads use the given layouts of blocks in turn.

#include <array>
#include <limits>

#include "op/op_def.h"
#include "op/operands.h"
#include "ops/fused/calls.h"

namespace treadle::attention {

namespace {

using namespace fused;  // NOLINT(google-build-using-namespace): helpers of lowerings

enum SparseInput : size_t { kQ, kK, kV, kPastK, kPastV, kRows, kColumns, kTotal, kLengths, kCos, kSin };

Status check_attributes(const InferContext& ctx) {
  const auto& a = ctx.attributes();
  const int64_t heads = a.get_int("num_heads"), shared = a.get_int("kv_num_heads");
  if (heads < 1 || shared < 1 || heads % shared != 0) {
    return error(Code::kInvalidModel, "there are {} heads of queries, expected a multiple of the heads of keys, {}",
                 heads, shared);
  }
  if (const int64_t block = a.get_int("sparse_block_size"); block < 1) {
    return error(Code::kInvalidModel, "attribute sparse_block_size is {}, expected at least 1", block);
  }
  if (ctx.has_input(kK) != ctx.has_input(kV)) {
    return error(Code::kInvalidModel, "key and value are used together or not at all");
  }
  if (a.get_int("do_rotary") != 0 && !(ctx.has_input(kCos) && ctx.has_input(kSin))) {
    return error(Code::kInvalidModel, "attribute do_rotary is 1, but cos_cache and sin_cache are left out");
  }
  return {};
}

// Layouts, which heads use in turn: [layouts, blocks + 1] and [layouts, attended blocks].
Status check_layouts(const InferContext& ctx, int64_t heads) {
  const Shape *rows = ctx.shape(kRows), *columns = ctx.shape(kColumns);
  for (const size_t i : {kRows, kColumns}) {
    const Shape* shape = ctx.shape(i);
    const bool fits = !shape || (shape->size() == 2 && !(*shape)[0].is_known(0) && !(*shape)[1].is_known(0) &&
                                 (!(*shape)[0].is_known() || heads % (*shape)[0].value() == 0));
    if (fits) continue;
    return error(Code::kInvalidArgument, "{} has shape {}, expected rows for layouts that {} heads take in turn",
                 ctx.node.version->inputs[i].name, to_string(*shape), heads);
  }
  if (rows && columns && differ((*rows)[0], (*columns)[0])) {
    return error(Code::kInvalidArgument,
                 "block_col_indices has shape {}, expected a row for each layout of block_row_indices {}",
                 to_string(*columns), to_string(*rows));
  }
  return {};
}

Status infer_sparse(InferContext& ctx) {
  TREADLE_TRY(check_attributes(ctx));
  const int64_t heads = ctx.attributes().get_int("num_heads"), shared = ctx.attributes().get_int("kv_num_heads");
  TREADLE_TRY(check_layouts(ctx, heads));
  const Shape* q = ctx.shape(kQ);
  const int64_t parts = ctx.has_input(kK) ? heads : heads + 2 * shared;
  if (q && (q->size() != 3 || ((*q)[2].is_known() && (*q)[2].value() % parts != 0))) {
    return error(Code::kInvalidArgument, "query has shape {}, expected [batch,length,{} heads]", to_string(*q), parts);
  }
  const Shape rows = q ? *q : unknown_shape(3);
  const Dim size = q ? floor_div(rows[2], Dim(parts)) : Dim::unknown();
  ctx.set_output(0, ctx.element(kQ), {rows[0], rows[1], Dim(heads) * size});
  for (const size_t i : {kPastK, kPastV}) {
    const Shape* past = ctx.shape(i);
    if (past && (past->size() != 4 || differ((*past)[0], rows[0]) || differ((*past)[1], Dim(shared)) ||
                 differ((*past)[3], size))) {
      return error(Code::kInvalidArgument, "{} has shape {}, expected [batch,{},past,{}]",
                   ctx.node.version->inputs[i].name, to_string(*past), shared, size.to_string());
    }
    const Tensor* total = ctx.value(kTotal);
    const bool counts = total && total->element_count() == 1 && past && (*past)[2].is_known();
    if (counts && total->to_int64s()[0] > (*past)[2].value()) {
      return error(Code::kInvalidArgument, "total_sequence_length is {}, expected at most {}, the size of axis 2 of {}",
                   total->to_int64s()[0], (*past)[2].value(), ctx.node.version->inputs[i].name);
    }
    ctx.set_output(1 + i - kPastK, ctx.element(kQ), {rows[0], shared, past ? (*past)[2] : Dim::unknown(), size});
  }
  return {};
}

class Sparse {
 public:
  explicit Sparse(LowerContext& ctx) : ctx_(ctx) {}

  void lower() {
    ir::Value* lengths = ctx_.call("Reshape", {ctx_.input(kLengths), ctx_.constant_int64s({-1})});
    ir::Value* last = ctx_.call("Sub", {lengths, ctx_.number(1, ElementType::kInt32)});
    const auto attribute = [&](const char* name) { return ir::Attribute::of(name, ctx_.attributes().get_int(name)); };
    std::vector<ir::Attribute> attributes{attribute("num_heads"), attribute("kv_num_heads"), attribute("do_rotary"),
                                          attribute("rotary_interleaved")};
    if (const float scale = ctx_.attributes().get_float("scale", 0); scale != 0) {
      attributes.push_back(ir::Attribute::of("scale", scale));
    }
    const bool rotates = ctx_.attributes().get_int("do_rotary") != 0;
    const ir::Node* made = ctx_.node(
        "GroupQueryAttention",
        std::array<ir::Value*, 11>{ctx_.input(kQ), optional_input(ctx_, kK), optional_input(ctx_, kV),
                                   ctx_.input(kPastK), ctx_.input(kPastV), last, as_scalar(ctx_, ctx_.input(kTotal)),
                                   rotates ? ctx_.input(kCos) : nullptr, rotates ? ctx_.input(kSin) : nullptr, nullptr,
                                   bias(as_int64(ctx_, lengths))},
        3, std::move(attributes), "com.microsoft");
    for (size_t i = 0; i < 3; ++i) ctx_.set_output(i, made->outputs[i]);
  }

 private:
  ir::Value* number(int64_t v) { return ctx_.constant_int64(v); }

  // Whether the queries of a block attend a block of keys: bool [layouts, blocks + 1, blocks + 1]. The last row and
  // column stand for positions outside of all blocks.
  ir::Value* blocks() {
    ir::Value *rows = as_int64(ctx_, ctx_.input(kRows)), *columns = as_int64(ctx_, ctx_.input(kColumns));
    ir::Value *layouts = size_of(ctx_, rows, 0), *with_none = size_of(ctx_, rows, 1);
    ir::Value* none = ctx_.call("Sub", {with_none, number(1)});
    ir::Value* ends = slice(ctx_, rows, ctx_.constant_int64s({1}), ctx_.constant_int64s({INT64_MAX}), 1);
    ir::Value* places = counted(ctx_, size_of(ctx_, columns, 1));
    ir::Value* is_past = ctx_.call("LessOrEqual", {unsqueeze(ctx_, ends, {1}), unsqueeze(ctx_, places, {0, 2})});
    ir::Value* row = ctx_.call(
        "ReduceSum", {cast(ctx_, is_past, ElementType::kBool, ElementType::kInt64), ctx_.constant_int64s({2})},
        {ir::Attribute::of("keepdims", 0)});
    ir::Value* is_padding = ctx_.call("Less", {columns, number(0)});
    ir::Value* column = ctx_.call("Where", {is_padding, none, ctx_.call("Min", {columns, none})});
    ir::Value* index = ctx_.call("Add", {ctx_.call("Mul", {row, with_none}), column});
    ir::Value* nothing = ctx_.call("Expand", {ctx_.number(0, ElementType::kInt32),
                                              concat(ctx_, {layouts, ctx_.call("Mul", {with_none, with_none})})});
    ir::Value* ones = ctx_.call("Expand", {ctx_.number(1, ElementType::kInt32), ctx_.call("Shape", {columns})});
    ir::Value* marked = ctx_.call("ScatterElements", {nothing, index, ones}, {ir::Attribute::of("axis", 1)});
    ir::Value* square = ctx_.call("Reshape", {marked, concat(ctx_, {layouts, with_none, with_none})});
    return cast(ctx_, square, ElementType::kInt32, ElementType::kBool);
  }

  // The block of each position; positions behind all blocks get the number of blocks.
  ir::Value* block_of(ir::Value* positions) {
    ir::Value* none = ctx_.call("Sub", {size_of(ctx_, ctx_.input(kRows), 1), number(1)});
    ir::Value* block = ctx_.call("Div", {positions, number(ctx_.attributes().get_int("sparse_block_size"))});
    return ctx_.call("Min", {block, none});
  }

  // [batch, heads, length, total]. Entries of a prompt, which may be padded at the end, begin at position 0.
  ir::Value* bias(ir::Value* lengths) {
    ir::Value* length = size_of(ctx_, ctx_.input(kQ), 1);
    ir::Value* before = ctx_.call("Max", {ctx_.call("Sub", {lengths, length}), number(0)});
    ir::Value* queries = ctx_.call("Add", {unsqueeze(ctx_, before, {1}), unsqueeze(ctx_, counted(ctx_, length), {0})});
    ir::Value* keys = counted(ctx_, as_int64(ctx_, ctx_.input(kTotal)));
    ir::Value* rows = ctx_.call("Gather", {blocks(), block_of(queries)}, {ir::Attribute::of("axis", 1)});
    ir::Value* seen = ctx_.call("Gather", {rows, block_of(keys)}, {ir::Attribute::of("axis", 3)});
    seen = ctx_.call("Transpose", {seen}, {ir::Attribute::of("perm", std::vector<int64_t>{1, 0, 2, 3})});
    const ElementType type = ctx_.type(kQ).element;
    constexpr double kHidden = -std::numeric_limits<double>::infinity();
    ir::Value* of_layouts = ctx_.call("Where", {seen, ctx_.number(0, type), ctx_.number(kHidden, type)});
    ir::Value* times = ctx_.call(
        "Div", {ctx_.constant_int64s({ctx_.attributes().get_int("num_heads")}), size_of(ctx_, ctx_.input(kRows), 0)});
    ir::Value* one = ctx_.constant_int64s({1});
    return ctx_.call("Tile", {of_layouts, concat(ctx_, {one, times, one, one})});
  }

  LowerContext& ctx_;
};

Status lower_sparse(LowerContext& ctx) {
  Sparse(ctx).lower();
  return {};
}

}  // namespace

}  // namespace treadle::attention

TREADLE_OP(SparseAttention, "com.microsoft") {
  op.since(1)
      .in("query", "T")
      .in("key", "T", Arity::kOptional)
      .in("value", "T", Arity::kOptional)
      .in("past_key", "T")
      .in("past_value", "T")
      .in("block_row_indices", "M")
      .in("block_col_indices", "M")
      .in("total_sequence_length", "M")
      .in("key_total_sequence_lengths", "M")
      .in("cos_cache", "T", Arity::kOptional)
      .in("sin_cache", "T", Arity::kOptional)
      .out("output", "T")
      .out("present_key", "T")
      .out("present_value", "T")
      .optional("do_rotary", ir::AttributeKind::kInt)
      .required("kv_num_heads", ir::AttributeKind::kInt)
      .required("num_heads", ir::AttributeKind::kInt)
      .optional("rotary_interleaved", ir::AttributeKind::kInt)
      .optional("scale", ir::AttributeKind::kFloat)
      .required("sparse_block_size", ir::AttributeKind::kInt)
      .type("T", types::kFloatsTo32)
      .type("M", types::kInt32s);
  op.infer(attention::infer_sparse)
      .lower(attention::lower_sparse)
      .shape_inputs({7})
      .can_fail()
      .no_axes("lengths say how far its entries have come");
}
