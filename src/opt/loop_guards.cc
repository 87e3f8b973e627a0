#include "opt/loop_guards.h"

#include <algorithm>

namespace treadle::opt {

namespace {

// Sums of a few terms below this limit do not overflow.
constexpr int64_t kMost = int64_t{1} << 60;

bool is_number(const Sum& sum) {
  return sum.terms.empty() && sum.number.is_known();
}

}  // namespace

ir::Value* LoopGuards::conditions(std::span<const Picked> picks) {
  if (loop_.condition()) require(single(loop_.condition()));
  const Sum& count = loop_.count();
  require_small(count);
  if (!require_order(Sum{1}, count)) return nullptr;
  if (loop_.limit() && !require_order(count, *loop_.limit())) return nullptr;
  for (const Picked& p : picks) {
    require_small(p.low);
    if (!require_order(Sum{0}, p.low)) return nullptr;
    const Dim& size = p.whole->type.shape[static_cast<size_t>(p.axis)];
    const Sum high = p.low + count;
    if (is_number(p.low) && size.is_known() && p.low.number.value() >= size.value()) return nullptr;
    if (size.is_known()) {
      if (!require_order(high, Sum{size})) return nullptr;
    } else {
      require(call("LessOrEqual", {value(high), size_of(p)}, ElementType::kBool));
    }
  }
  if (!all_) require(build_.graph().new_constant(name_, Tensor::scalar<bool>(ElementType::kBool, true)));
  ir::Value* condition = call("Squeeze", {all_}, ElementType::kBool);
  condition->type = Type::tensor(ElementType::kBool, Shape{});
  return condition;
}

ir::Value* LoopGuards::value(const Sum& sum) {
  if (is_number(sum)) return constant(sum.number.value());
  for (const auto& [known, value] : values_) {
    if (same(known, sum)) return value;
  }
  ir::Value* total = nullptr;
  for (const bool minus : {false, true}) {
    for (const Term& term : sum.terms) {
      if (term.minus != minus) continue;
      if (!total && minus) total = constant(0);
      ir::Value* v = as_int64(term.value);
      total = total ? call(minus ? "Sub" : "Add", {total, v}, ElementType::kInt64) : v;
    }
  }
  if (!sum.number.is_known(0)) total = call("Add", {total, constant(sum.number.value())}, ElementType::kInt64);
  values_.emplace_back(sum, total);
  return total;
}

ir::Value* LoopGuards::call(std::string_view op, std::initializer_list<ir::Value*> inputs, ElementType result,
                            std::initializer_list<ir::Attribute> attributes) {
  return build_.call(op, inputs, Type::tensor(result, Shape{1}), name_, attributes);
}

ir::Value* LoopGuards::constant(int64_t n) {
  return build_.graph().new_constant(name_, Tensor::of_int64(std::vector<int64_t>{n}));
}

ir::Value* LoopGuards::single(ir::Value* v) {
  if (v->type.shape.size() == 1) return v;
  return call("Reshape", {v, constant(1)}, v->type.element);
}

ir::Value* LoopGuards::as_int64(ir::Value* v) {
  for (const auto& [known, made] : values_) {
    if (known.number.is_known(0) && known.terms.size() == 1 && known.terms[0].value == v && !known.terms[0].minus) {
      return made;
    }
  }
  ir::Value* made = single(v);
  if (v->type.element != ElementType::kInt64) {
    made =
        call("Cast", {made}, ElementType::kInt64, {ir::Attribute::of("to", static_cast<int64_t>(ElementType::kInt64))});
  }
  values_.emplace_back(Sum{0, {{v}}}, made);
  return made;
}

ir::Value* LoopGuards::size_of(const Picked& picked) {
  return call("Shape", {picked.whole}, ElementType::kInt64,
              {ir::Attribute::of("start", picked.axis), ir::Attribute::of("end", picked.axis + 1)});
}

bool LoopGuards::require_order(const Sum& a, const Sum& b) {
  if (is_number(a) && is_number(b)) return a.number.value() <= b.number.value();
  require(call("LessOrEqual", {value(a), value(b)}, ElementType::kBool));
  return true;
}

void LoopGuards::require_small(const Sum& sum) {
  for (const Term& term : sum.terms) {
    if (std::find(small_.begin(), small_.end(), term.value) != small_.end()) continue;
    small_.push_back(term.value);
    require_order(Sum{-kMost}, Sum{0, {{term.value}}});
    require_order(Sum{0, {{term.value}}}, Sum{kMost});
  }
}

void LoopGuards::require(ir::Value* condition) {
  all_ = all_ ? call("And", {all_, condition}, ElementType::kBool) : condition;
}

}  // namespace treadle::opt
