#include "op/small_contents.h"

#include <algorithm>

#include "type/dim_fractions.h"

namespace treadle {

namespace {

constexpr int64_t kMaxElements = 64;

bool is_real(ElementType type) {
  return type == ElementType::kFloat || type == ElementType::kDouble;
}

}  // namespace

std::optional<Shape> dims_of(const Tensor& t) {
  if (!is_integer(t.type()) || t.rank() > 1) return std::nullopt;
  Shape dims;
  for (int64_t k = 0; k < t.element_count(); ++k) {
    const int64_t size = t.int64_at(k);
    if (size < 0 && t.type() == ElementType::kUint64) return std::nullopt;  // 2^63 or more
    dims.emplace_back(size);
  }
  return dims;
}

bool wants_small_reals(const InferContext& ctx) {
  if (!ctx.wants_symbols(0) || ctx.outputs.empty()) return false;
  const Type& out = ctx.outputs[0];
  return is_real(out.element) && out.has_shape && out.rank() <= 1;
}

std::optional<Shape> small_reals(const InferContext& ctx, size_t i) {
  if (!is_real(ctx.element(i))) return std::nullopt;
  if (i < ctx.symbols.size() && ctx.symbols[i]) return *ctx.symbols[i];
  const Tensor* t = ctx.value(i);
  if (!t || t->rank() > 1 || t->element_count() > kMaxElements) return std::nullopt;
  Shape reals;
  for (int64_t k = 0; k < t->element_count(); ++k) reals.push_back(dim_of_real(t->double_at(k)));
  return reals;
}

std::optional<Shape> small_contents(const InferContext& ctx, size_t i) {
  return is_real(ctx.element(i)) ? small_reals(ctx, i) : ctx.dims_value(i);
}

void infer_real_symbols(InferContext& ctx, DimFn fn) {
  // Sizes are computed from few floats; others need no symbols.
  const bool any = std::ranges::any_of(ctx.symbols, [](const Shape* known) { return known != nullptr; });
  if (!any || !wants_small_reals(ctx)) return;
  const std::optional<Shape> a = small_reals(ctx, 0), b = small_reals(ctx, 1);
  if (!a || !b || (a->size() != b->size() && a->size() != 1 && b->size() != 1)) return;
  const size_t count = a->size() == 1 ? b->size() : a->size();
  Shape out;
  for (size_t i = 0; i < count; ++i) out.push_back(fn((*a)[a->size() == 1 ? 0 : i], (*b)[b->size() == 1 ? 0 : i]));
  ctx.set_output_symbols(0, std::move(out));
}

}  // namespace treadle
