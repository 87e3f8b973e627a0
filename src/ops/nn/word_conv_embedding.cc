// WordConvEmbedding: each word of a sequence, given by its characters' numbers, becomes a vector: the characters'
// vectors, a convolution along the word, Tanh, and the largest value of every filter. Characters above 0 count; a word
// that begins with another one is empty, and its vector is zero.

#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "ops/fused/calls.h"

namespace treadle::nn {

namespace {

using ir::Attribute;
using ir::Value;

enum Input : size_t { kWords, kFilters, kBias, kTable };

// An attribute that repeats a size of an operand.
Status check_size(const InferContext& ctx, const char* attribute, const Dim& size) {
  if (!ctx.attributes().has(attribute)) return {};
  const int64_t given = ctx.attributes().get_int(attribute);
  if (!differ(size, Dim(given))) return {};
  return error(Code::kInvalidModel, "attribute {} is {}, expected the size of the weights, {}", attribute, given,
               size.to_string());
}

Status check_filters(const InferContext& ctx, const Shape& w) {
  const Shape *words = ctx.shape(kWords), *bias = ctx.shape(kBias), *table = ctx.shape(kTable);
  if (w.size() != 4 || differ(w[1], Dim(1))) {
    return error(Code::kInvalidArgument, "W has shape {}, expected [filters,1,characters,size]", to_string(w));
  }
  if (bias && (bias->size() != 1 || differ((*bias)[0], w[0]))) {
    return error(Code::kInvalidArgument, "B has shape {}, expected one for each filter of W {}", to_string(*bias),
                 to_string(w));
  }
  if (table && differ(table->back(), w[3])) {
    return error(Code::kInvalidArgument, "C has shape {}, expected rows as long as those of W {}", to_string(*table),
                 to_string(w));
  }
  if (words && w[2].is_known() && (*words)[1].is_known() && (*words)[1].value() < w[2].value()) {
    return error(Code::kInvalidArgument,
                 "Sequence has shape {}, expected words at least as long as the windows of W {}", to_string(*words),
                 to_string(w));
  }
  TREADLE_TRY(check_size(ctx, "embedding_size", w[0]));
  TREADLE_TRY(check_size(ctx, "conv_window_size", w[2]));
  return check_size(ctx, "char_embedding_size", w[3]);
}

Status infer_words(InferContext& ctx) {
  const Shape *words = ctx.shape(kWords), *w = ctx.shape(kFilters), *table = ctx.shape(kTable);
  if (words && words->size() != 2) {
    return error(Code::kInvalidArgument, "Sequence has shape {}, expected [words,characters]", to_string(*words));
  }
  if (table && table->size() != 2) {
    return error(Code::kInvalidArgument, "C has shape {}, expected [characters,size]", to_string(*table));
  }
  if (w) TREADLE_TRY(check_filters(ctx, *w));
  ctx.set_output(0, ctx.element(kFilters), {words ? (*words)[0] : Dim(), w ? (*w)[0] : Dim()});
  return {};
}

// [words,1]: how many characters of each word count.
Value* lengths(LowerContext& ctx) {
  Value *one = ctx.constant_int64s({1}), *zero = ctx.number(0, ElementType::kInt32);
  Value* counted =
      fused::cast(ctx, ctx.call("Greater", {ctx.input(kWords), zero}), ElementType::kBool, ElementType::kInt64);
  Value* first = fused::slice(ctx, counted, ctx.constant_int64s({0}), one, 1);
  return ctx.call("Mul", {ctx.call("ReduceSum", {counted, one}), first});
}

Status lower_words(LowerContext& ctx) {
  Value* characters = ctx.call("Gather", {ctx.input(kTable), ctx.input(kWords)});
  Value* sums = ctx.call("Conv", {fused::unsqueeze(ctx, characters, {1}), ctx.input(kFilters), ctx.input(kBias)});
  sums = ctx.call("Squeeze", {sums, ctx.constant_int64s({3})});  // [words,filters,windows]
  // Windows within the word; a word that is shorter than a window has one.
  Value *length = lengths(ctx), *width = fused::size_of(ctx, ctx.input(kFilters), 2);
  Value* windows = ctx.call("Sub", {ctx.call("Max", {length, width}), width});
  Value* at = fused::counted(ctx, fused::size_of(ctx, sums, 2));
  Value* within = fused::unsqueeze(ctx, ctx.call("LessOrEqual", {at, windows}), {1});
  constexpr double kLeast = -1e12;  // less than any Tanh
  Value* values = ctx.call("Where", {within, ctx.call("Tanh", {sums}), ctx.number(kLeast, ElementType::kFloat)});
  Value* largest = ctx.call("ReduceMax", {values, ctx.constant_int64s({2})}, {Attribute::of("keepdims", int64_t{0})});
  Value* is_word = ctx.call("Greater", {length, ctx.constant_int64(0)});
  ctx.set_output(0, ctx.call("Where", {is_word, largest, ctx.number(0, ElementType::kFloat)}));
  return {};
}

}  // namespace

}  // namespace treadle::nn

TREADLE_OP(WordConvEmbedding, "com.microsoft") {
  op.since(1)
      .in("Sequence", "T")
      .in("W", "T1")
      .in("B", "T1")
      .in("C", "T1")
      .out("Y", "T1")
      .optional("char_embedding_size", ir::AttributeKind::kInt)
      .optional("conv_window_size", ir::AttributeKind::kInt)
      .optional("embedding_size", ir::AttributeKind::kInt)
      .type("T", types::kInt32s)
      .type("T1", types::kFloat32s);
  op.infer(nn::infer_words).lower(nn::lower_words).can_fail().axes(axes::entries);
}
