// Fused operations as a chain. A value has one position: the caller's memory if that is long enough for whole vectors,
// otherwise memory of the chain, with steps that copy elements in and out. A single element that is combined with many,
// and any other operand that is broadcast, is spread first. Constants are spread while the chain is built.
//
// A step takes the result of the step before from registers, so the order of steps matters. Steps are ordered depth
// first from the outputs. If there are two arguments, the one that takes longer (or that waits for the iteration
// before) comes last.
#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/dispatch.h"
#include "kernels/fused.h"
#include "kernels/isa/tables.h"
#include "kernels/types.h"

namespace treadle::kernels {

namespace {

struct OperationCall : ChainCall {
  FusedStep step;
  size_t count = 0;
};

void call_operation(const ChainCall& call, const ChainStep& step, void* const* table) {
  const auto& c = static_cast<const OperationCall&>(call);
  const std::byte* in[3];
  for (int i = 0; i < 3; ++i) in[i] = static_cast<const std::byte*>(table[step.in[i]]);
  run_operation(c.step, in, static_cast<std::byte*>(table[step.out]), c.count);
}

struct SpreadCall : ChainCall {
  FusedSpread spread;
  size_t count = 0;
};

void call_spread(const ChainCall& call, const ChainStep& step, void* const* table) {
  const auto& c = static_cast<const SpreadCall&>(call);
  spread_elements(c.spread, static_cast<const std::byte*>(table[step.in[0]]), static_cast<std::byte*>(table[step.out]),
                  0, c.count);
}

constexpr uint32_t kNowhere = UINT32_MAX;

}  // namespace

class ChainBuilder {
 public:
  using Value = FusedBuilder::Value;
  using Kind = FusedBuilder::Kind;

  ChainBuilder(const FusedBuilder& fused, std::span<const FusedBuilder::Bound> bound, ChainShape shape)
      : fused_(fused), bound_(bound), isa_(chain_steps()) {
    chain_.shape = shape;
    chain_.run = isa_.run;
  }

  std::optional<FusedChain> build() {
    place_.resize(fused_.items_.size(), kNowhere);
    late_.resize(fused_.items_.size(), 0);
    for (size_t i = 0; i < fused_.inputs_.size(); ++i) {
      if (!place_input(static_cast<uint32_t>(i))) return std::nullopt;
    }
    place_results();
    for (const size_t at : order()) add(at);
    for (const auto& [from, to, bytes] : leaving_) copy(isa_.store, from, to, bytes);
    chain_.steps.push_back({.run = isa_.end});
    return std::move(chain_);
  }

 private:
  size_t width_of(Value v) const { return byte_width(fused_.items_[v].type); }
  size_t padded_bytes(Value v) const { return chain_.padded_bytes(fused_.items_[v].type); }
  bool is_whole(uint32_t number) const { return bound_[number].padded || fused_.count_ == chain_.shape.elements(); }

  uint32_t add_extra(Value v, std::vector<std::byte> contents = {}) {
    const size_t whole = std::max(padded_bytes(v), isa_.vector_bytes);
    chain_.extras.push_back({std::move(contents), whole});
    return static_cast<uint32_t>(bound_.size() + chain_.extras.size() - 1);
  }

  void copy(ChainFn run, uint32_t from, uint32_t to, size_t bytes) {
    ChainStep step{.run = run, .out = to, .detail = as_detail(static_cast<int64_t>(bytes))};
    std::fill_n(step.in, 3, from);
    chain_.steps.push_back(step);
  }

  bool place_input(uint32_t number) {
    const Value v = fused_.inputs_[number];
    late_[v] = bound_[number].late ? 1000 : 0;
    if (fused_.items_[v].kind == Kind::kDense && is_whole(number)) {
      place_[v] = number;
      return true;
    }
    const FusedSpread how = spread_of(v);
    if (bound_[number].constant) {
      std::vector<std::byte> contents(padded_bytes(v));
      spread_elements(how, static_cast<const std::byte*>(bound_[number].constant), contents.data(), 0, fused_.count_);
      place_[v] = add_extra(v, std::move(contents));
      return true;
    }
    place_[v] = add_extra(v);
    switch (fused_.items_[v].kind) {
      case Kind::kDense:
        copy(isa_.load, number, place_[v], fused_.count_ * width_of(v));
        return true;
      case Kind::kScalar: {
        ChainStep step{.run = isa_.splat(width_of(v), chain_.shape), .out = place_[v]};
        std::fill_n(step.in, 3, number);
        chain_.steps.push_back(step);
        return step.run != nullptr;
      }
      default:
        add_call<SpreadCall>(call_spread, number, place_[v]).spread = how;
        return true;
    }
  }

  // The layout of the value's elements.
  FusedSpread spread_of(Value v) const {
    for (const auto& [value, spread] : fused_.spreads_) {
      if (value == v) return spread;
    }
    const auto width = static_cast<uint8_t>(width_of(v));
    FusedSpread simple;
    simple.width = width;
    simple.dims = {static_cast<int64_t>(fused_.count_)};
    simple.strides = {fused_.items_[v].kind == Kind::kScalar ? 0 : width};
    return simple;
  }

  template <class Call>
  Call& add_call(decltype(ChainCall::run) run, uint32_t from, uint32_t to) {
    auto call = std::make_shared<Call>();
    call->run = run;
    call->count = fused_.count_;
    ChainStep step{.run = isa_.call, .out = to, .detail = call.get()};
    std::fill_n(step.in, 3, from);
    chain_.steps.push_back(step);
    chain_.details.push_back(call);
    previous_ = kNowhere;
    return *call;
  }

  void place_results() {
    for (size_t i = 0; i < fused_.outputs_.size(); ++i) {
      const Value v = fused_.outputs_[i];
      const auto number = static_cast<uint32_t>(fused_.inputs_.size() + i);
      place_[v] = is_whole(number) ? number : add_extra(v);
      if (place_[v] != number) leaving_.push_back({place_[v], number, fused_.count_ * width_of(v)});
    }
    for (const Value v : fused_.made_) {
      if (place_[v] == kNowhere) place_[v] = add_extra(v);
    }
  }

  // --- order ---

  std::vector<size_t> order() {
    step_of_.resize(fused_.items_.size(), SIZE_MAX);
    for (size_t at = 0; at < fused_.made_.size(); ++at) {
      step_of_[fused_.made_[at]] = at;
      int latest = 0;
      for (const Value v : fused_.arguments_[at]) latest = std::max(latest, late_[v]);
      late_[fused_.made_[at]] = latest + 1;
    }
    std::vector<size_t> order;
    for (const Value v : fused_.outputs_) visit(v, order);
    return order;
  }

  void visit(Value v, std::vector<size_t>& order) {
    const size_t at = step_of_[v];
    if (at == SIZE_MAX || std::find(order.begin(), order.end(), at) != order.end()) return;
    std::vector<std::pair<int, Value>> arguments;
    for (const Value argument : fused_.arguments_[at]) arguments.emplace_back(late_[argument], argument);
    std::sort(arguments.begin(), arguments.end());
    for (const auto& [late, argument] : arguments) visit(argument, order);
    order.push_back(at);
  }

  // --- steps ---

  ChainForms forms_of(size_t at) const {
    const std::optional<ElementwiseOp> op = fused_.ops_[at];
    if (!op) return {};
    const bool chooses = *op == ElementwiseOp::kWhere;
    const ElementType type = fused_.items_[fused_.arguments_[at][chooses ? 1 : 0]].type;
    if (wide_type(type) != type) return {};
    return chooses ? isa_.where(compute_type(type), chain_.shape)
                   : isa_.operation(*op, compute_type(type), chain_.shape);
  }

  void add(size_t at) {
    const std::vector<Value>& arguments = fused_.arguments_[at];
    const Value result = fused_.made_[at];
    const ChainForms forms = forms_of(at);
    if (!forms.memory) return add_operation_call(at);
    ChainStep step{.run = forms.memory, .out = place_[result]};
    for (size_t i = 0; i < 3; ++i) step.in[i] = place_[arguments[std::min(i, arguments.size() - 1)]];
    if (forms.first && arguments[0] == previous_) {
      step.run = forms.first;
    } else if (forms.second && arguments[1] == previous_) {
      step.run = forms.second;
    }
    auto params = std::make_shared<ElementwiseParams>(fused_.plan_.steps[at].params);
    step.detail = params.get();
    chain_.details.push_back(std::move(params));
    chain_.steps.push_back(step);
    previous_ = result;
  }

  void add_operation_call(size_t at) {
    const std::vector<Value>& arguments = fused_.arguments_[at];
    auto& call = add_call<OperationCall>(call_operation, place_[arguments[0]], place_[fused_.made_[at]]);
    for (size_t i = 0; i < arguments.size(); ++i) chain_.steps.back().in[i] = place_[arguments[i]];
    call.step = fused_.plan_.steps[at];
    call.step.scalar_mask = 0;  // all operands have been spread
    if (call.step.row) {
      call.step.row = elementwise_rows(*fused_.ops_[at], compute_type(fused_.items_[arguments[0]].type)).vv;
    }
  }

  struct Leaving {
    uint32_t from, to;
    size_t bytes;
  };

  const FusedBuilder& fused_;
  std::span<const FusedBuilder::Bound> bound_;
  const ChainTable& isa_;
  FusedChain chain_;
  std::vector<uint32_t> place_;  // per value
  std::vector<int> late_;        // per value: whether it waits for a late input, and how long its chain of steps is
  std::vector<size_t> step_of_;  // per value
  std::vector<Leaving> leaving_;
  Value previous_ = kNowhere;  // the value that the last step passes on
};

// ---------------------------------------------------------------------------------------------------------------------

const ChainTable& chain_steps() {
  return *kernels().chain;
}

std::optional<ChainShape> FusedBuilder::chain_shape() const {
  constexpr size_t kSmallest = 16, kMostVectors = 4, kMostLanes = 16;
  const auto begins_inside = [](const Item& item) { return item.start != 0; };
  if (std::any_of(items_.begin(), items_.end(), begins_inside)) return std::nullopt;
  if (count_ == 1) return ChainShape{1, 1};
  size_t width = 1;
  for (const Item& item : items_) width = std::max(width, byte_width(item.type));
  const size_t full = std::min(chain_steps().vector_bytes / width, kMostLanes);
  if (count_ > full * kMostVectors || count_ == 0) return std::nullopt;
  const size_t lanes = std::clamp(std::bit_ceil(count_), std::min(full, kSmallest / width), full);
  const ChainShape shape{static_cast<uint8_t>(lanes),
                         static_cast<uint8_t>(std::bit_ceil((count_ + lanes - 1) / lanes))};
  return shape;
}

std::optional<FusedChain> FusedBuilder::chain(std::span<const Bound> bound) const {
  const std::optional<ChainShape> shape = chain_shape();
  return shape ? ChainBuilder(*this, bound, *shape).build() : std::nullopt;
}

}  // namespace treadle::kernels
