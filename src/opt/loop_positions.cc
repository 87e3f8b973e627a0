#include "opt/loop_positions.h"

#include <algorithm>

#include "op/axes.h"
#include "op/op_def.h"
#include "ops/control/loop.h"
#include "opt/match.h"
#include "opt/stacked.h"

namespace treadle::opt {

namespace {

constexpr size_t kMaxTerms = 4;  // of one sum

bool is_at_least(const Dim& d, int64_t least) {
  const auto bound = d.lower_bound();
  return bound && *bound >= least;
}

bool is_at_least(const Sum& sum, int64_t least) {
  return sum.terms.empty() && is_at_least(sum.number, least);
}

bool is_true(const ir::Value& v) {
  return v.is_constant() && v.constant.type() == ElementType::kBool && v.constant.element_count() == 1 &&
         *v.constant.data<bool>();
}

// The sum of constants that turns `from` into `to`; nullopt if `to` is made in another way.
std::optional<int64_t> difference(const ir::Value* to, const ir::Value* from) {
  if (to == from) return 0;
  const ir::Node* node = to->producer;
  if (is(node, "Identity")) return difference(node->inputs[0], from);
  if (!is_any(node, {"Add", "Sub"})) return std::nullopt;
  const auto constant = [](const ir::Value* v) -> std::optional<int64_t> {
    const bool fits = v->is_constant() && is_integer(v->constant.type()) && v->constant.element_count() == 1;
    return fits ? std::optional(v->constant.int64_at(0)) : std::nullopt;
  };
  const bool subtracts = node->op->name == "Sub";
  if (const auto by = constant(node->inputs[1])) {
    const auto rest = difference(node->inputs[0], from);
    if (rest) return subtracts ? *rest - *by : *rest + *by;
  }
  if (const auto by = constant(node->inputs[0]); by && !subtracts) {
    if (const auto rest = difference(node->inputs[1], from)) return *rest + *by;
  }
  return std::nullopt;
}

}  // namespace

Sum operator+(Sum a, const Sum& b) {
  a.number = a.number + b.number;
  a.terms.insert(a.terms.end(), b.terms.begin(), b.terms.end());
  return a;
}

Sum operator-(Sum a, Sum b) {
  a.number = a.number - b.number;
  for (Term& term : b.terms) {
    const auto found = std::find_if(a.terms.begin(), a.terms.end(), [&](const Term& own) {
      return own.value == term.value && own.minus == term.minus;
    });
    if (found != a.terms.end()) {
      a.terms.erase(found);
    } else {
      a.terms.push_back({term.value, !term.minus});
    }
  }
  return a;
}

bool same(const Sum& a, const Sum& b) {
  return same(a.number, b.number) &&
         std::equal(a.terms.begin(), a.terms.end(), b.terms.begin(), b.terms.end(),
                    [](const Term& x, const Term& y) { return x.value == y.value && x.minus == y.minus; });
}

CountedLoop::CountedLoop(const ir::Node& loop, const Inference& known, Trust trust)
    : loop_(loop), body_(loop_.body()), known_(known), trust_(trust) {
  count_iterations();
}

void CountedLoop::count_iterations() {
  ir::Value *m = loop_.trip_count(), *condition = loop_.condition();
  if (condition && !is_true(*condition)) {
    if (trust_ == Trust::kProofs || !is_single_bool(*condition)) return;
    condition_ = condition;
  }
  asks_ = condition && !condition_stays_true(loop_);
  if (!m && !asks_) return;
  auto count = asks_ ? iterations_by_condition(loop_.condition_after()) : number(m);
  if (!count) return;
  if (asks_ && m) {
    limit_ = number(m);
    if (!limit_) return;
  }
  count_ = std::move(*count);
  if (trust_ == Trust::kGuards) {
    const bool is_fixed = count_.terms.empty() && count_.number.is_known();
    if (is_fixed ? count_.number.value() >= 1 : count_.terms.size() <= kMaxTerms) {
      iterations_ = is_fixed ? count_.number : Dim::symbol("iterations of " + std::string(loop_.node().name));
    }
    return;
  }
  const bool is_enough = !limit_ || is_at_least(*limit_ - count_, 0);
  if (is_at_least(count_, asks_ ? 1 : 0) && is_enough) iterations_ = count_.number;
}

// The trip count of a Loop whose condition is computed at the end of each iteration: the iterations that the condition
// allows, plus the first, which runs anyway.
std::optional<Sum> CountedLoop::iterations_by_condition(const ir::Value* v) const {
  const ir::Node* node = v->producer;
  if (!node || v->owner != &body_) return std::nullopt;
  if (is(node, "Identity")) return iterations_by_condition(node->inputs[0]);
  if (is(node, "And")) {
    for (const size_t i : {0, 1}) {
      const ir::Value* other = node->inputs[i];
      if (other == loop_.condition_before() || is_true(*other)) return iterations_by_condition(node->inputs[1 - i]);
    }
    return std::nullopt;
  }
  if (is_any(node, {"Less", "LessOrEqual", "Greater", "GreaterOrEqual"})) return iterations_by_comparing(*node);
  return std::nullopt;
}

// The same for a counter that approaches a bound; the counter may be on either side of the comparison.
std::optional<Sum> CountedLoop::iterations_by_comparing(const ir::Node& node) const {
  const bool is_left = index_of(node.inputs[0]).has_value();
  const auto counter = index_of(node.inputs[is_left ? 0 : 1]);
  const ir::Value* other = node.inputs[is_left ? 1 : 0];
  const auto bound = is_invariant(other, body_) ? number(other) : std::nullopt;
  const bool is_below = node.op->name.starts_with("Less") == is_left;
  if (!counter || !bound || counter->falls == is_below) return std::nullopt;
  const Sum way = is_below ? *bound - counter->offset : counter->offset - *bound;
  return way + Sum{node.op->name.ends_with("OrEqual") ? 2 : 1};
}

std::optional<Sum> CountedLoop::number(const ir::Value* v) const {
  const Tensor* t = v->is_constant() ? &v->constant : known_.constant(v);
  if (t) return is_integer(t->type()) && t->element_count() == 1 ? std::optional(Sum{t->int64_at(0)}) : std::nullopt;
  if (trust_ == Trust::kProofs) {
    const Shape* symbols = known_.symbols(v);
    return symbols && symbols->size() == 1 && !(*symbols)[0].is_unknown() ? std::optional(Sum{(*symbols)[0]})
                                                                          : std::nullopt;
  }
  if (!is_single(*v) || !is_integer(v->type.element) || body_.contains(v->owner)) return std::nullopt;
  return Sum{0, {{const_cast<ir::Value*>(v)}}};
}

std::optional<CountedLoop::Index> CountedLoop::index_of(const ir::Value* v) const {
  if (!v || !is_single(*v)) return std::nullopt;
  if (v == loop_.counter()) return Index{};
  const ir::Node* node = v->producer;
  if (!node) return index_of_state(v);
  if (is_any(node, {"Unsqueeze", "Squeeze", "Reshape", "Identity"})) return index_of(node->inputs[0]);
  if (is(node, "Cast") && (v->type.element == ElementType::kInt64 || v->type.element == ElementType::kInt32)) {
    return index_of(node->inputs[0]);
  }
  if (is_any(node, {"Add", "Sub"})) return sum(*node);
  return std::nullopt;
}

std::optional<CountedLoop::Index> CountedLoop::index_of_state(const ir::Value* v) const {
  const size_t state = loop_.state_before(v);
  if (state == loop_.states() || !is_counter(state)) return std::nullopt;
  const auto initial = number(loop_.state(state).initial);
  if (!initial) return std::nullopt;
  return Index{*initial, difference(loop_.state(state).after, v) == -1};
}

bool CountedLoop::is_counter(size_t state) const {
  const auto [initial, in, out, final] = loop_.state(state);
  const ElementType type = in->type.element;
  if (type != ElementType::kInt64 && type != ElementType::kInt32) return false;
  if (!is_single(*in) || !is_single(*initial)) return false;
  const auto step = difference(out, in);
  return step == 1 || step == -1;
}

std::optional<CountedLoop::Index> CountedLoop::sum(const ir::Node& node) const {
  const bool subtracts = node.op->name == "Sub";
  if (auto left = index_of(node.inputs[0])) {
    const auto by = number(node.inputs[1]);
    if (!by) return std::nullopt;
    left->offset = subtracts ? left->offset - *by : left->offset + *by;
    return left;
  }
  auto right = index_of(node.inputs[1]);
  const auto from = number(node.inputs[0]);
  if (!right || !from) return std::nullopt;
  right->offset = subtracts ? *from - right->offset : *from + right->offset;
  right->falls ^= subtracts;
  return right;
}

std::optional<Picked> CountedLoop::picked_by(const ir::Node& node) const {
  if (is(&node, "Gather")) {
    return picked(node.inputs[0], node.attributes.get_int("axis"), index_of(node.inputs[1]));
  }
  if (!is(&node, "Slice") || node.inputs.size() < 4) return std::nullopt;
  const auto axes = constant_ints(node, 3), steps = node.inputs.size() > 4 ? constant_ints(node, 4) : std::nullopt;
  if (!axes || axes->size() != 1 || (node.inputs.size() > 4 && node.inputs[4] && (!steps || (*steps)[0] != 1))) {
    return std::nullopt;
  }
  const auto first = index_of(node.inputs[1]), last = index_of(node.inputs[2]);
  if (!first || !last || first->falls != last->falls || !same(last->offset, first->offset + Sum{1})) {
    return std::nullopt;
  }
  return picked(node.inputs[0], (*axes)[0], first);
}

std::optional<Picked> CountedLoop::picked(ir::Value* whole, int64_t axis, const std::optional<Index>& index) const {
  if (!index || !whole || (!whole->is_constant() && body_.contains(whole->owner))) return std::nullopt;
  if (!whole->type.is_tensor() || !whole->type.has_shape || is_string(whole->type.element)) return std::nullopt;
  const auto rank = static_cast<int64_t>(whole->type.shape.size());
  const Picked p{whole, from_front(axis, rank), lowest(*index), index->falls};
  const Dim& size = p.whole->type.shape[static_cast<size_t>(p.axis)];
  const bool fits = trust_ == Trust::kProofs ? is_inside(p.low, size) : p.low.terms.size() <= kMaxTerms;
  return fits ? std::optional(p) : std::nullopt;
}

bool CountedLoop::stays_inside(const ir::Value* v, const Dim& size) const {
  const auto index = iterations_.is_unknown() ? std::nullopt : index_of(v);
  return index && is_inside(lowest(*index), size);
}

Sum CountedLoop::lowest(const Index& index) const {
  return index.falls ? index.offset - count_ + Sum{1} : index.offset;
}

bool CountedLoop::is_inside(const Sum& sum, const Dim& size) const {
  if (!sum.terms.empty()) return false;
  const Dim& low = sum.number;
  const Dim high = low + iterations_;
  if (low.is_known(0) && same(high, size)) return true;
  return low.is_known() && high.is_known() && low.value() >= 0 && size.is_known() && high.value() <= size.value();
}

}  // namespace treadle::opt
