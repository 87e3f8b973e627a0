#include "jit/dynamic_shapes.h"

#include <algorithm>

#include "jit/lane_maths.h"
#include "op/dynamic_kernel.h"
#include "plan/roles.h"

namespace treadle::jit {

using plan::DynamicCode;
using plan::kNoSlot;

namespace {

// Operations that are done again for every reader of a value: with none, `pieces` takes 1.1 times as long (bench.py
// loops).
constexpr size_t kMostRecomputed = 6;
constexpr size_t kFunctionCost = 10;  // operations: kFunctionElementNs beside kElementwiseNs (kernels/costs.h)

size_t cost_of(const plan::ElementwiseCode::Step& step) {
  return step.converts || kernels::info(step.op).price <= kernels::Price::kArithmetic ? 1 : kFunctionCost;
}

}  // namespace

LoopWriter::DynamicShapeWriter::DynamicShapeWriter(LoopWriter& writer, uint32_t first, uint32_t end)
    : w_(writer), first_(first), end_(end), sizes_(writer.b_) {
  survey();
}

// --- what there is ---------------------------------------------------------------------------------------------------

bool LoopWriter::DynamicShapeWriter::is_part(const DynamicCode& code) const {
  return code.rule == SizeRule::kSlice || code.rule == SizeRule::kReshape || code.rule == SizeRule::kSqueeze ||
         code.rule == SizeRule::kUnsqueeze || code.rule == SizeRule::kSplit;
}

// Once for all rows of a function.
void LoopWriter::DynamicShapeWriter::find_users() {
  if (!w_.users_.empty()) return;
  w_.users_.assign(w_.p_.slots.size(), {UINT32_MAX, 0});
  const auto use = [&](uint32_t s, uint32_t pc) {
    auto& [first, last] = w_.users_[s];
    first = std::min(first, pc);
    last = std::max(last, pc);
  };
  for (uint32_t pc = 0; pc < w_.p_.code.size(); ++pc) {
    plan::for_each_slot(w_.p_, pc, [&](const plan::SlotUse& of) { use(of.slot, pc); });
  }
  for (const plan::Output& output : w_.p_.outputs) use(output.slot, UINT32_MAX);
}

void LoopWriter::DynamicShapeWriter::survey() {
  for (uint32_t pc = first_; pc < end_; ++pc) survey(pc);
  find_users();
  for (const uint32_t s : order_) {
    if (is_outside(s)) tensors_.at(s).is_placed = true;
  }
  for (const uint32_t s : order_) {
    Tensor& made = tensors_.at(s);
    const bool is_shared = made.uses > 1 && made.cost > kMostRecomputed;
    if (made.code->rule == SizeRule::kConcat || made.code->rule == SizeRule::kReduce || is_shared)
      made.is_placed = true;
  }
  find_joins();
}

// Whether an instruction outside of this code reads `s`.
bool LoopWriter::DynamicShapeWriter::is_outside(uint32_t s) const {
  const auto [first, last] = w_.users_[s];
  return first < first_ || last >= end_;
}

void LoopWriter::DynamicShapeWriter::find_joins() {
  for (const uint32_t s : order_) {
    const Tensor& made = tensors_.at(s);
    std::optional<Join> join;
    if (made.code->rule != SizeRule::kBroadcast || !made.is_placed || !find_join(s, join) || !join) continue;
    for (const uint32_t gone : {join->concat, join->read}) {
      tensors_.at(gone).is_joined = true;
      tensors_.at(gone).is_placed = false;
    }
    joins_[s] = *join;
  }
}

// Whether all that an elementwise value is made of is single elements and at most one regrouped Concat, which nobody
// else reads: `join` then.
bool LoopWriter::DynamicShapeWriter::find_join(uint32_t s, std::optional<Join>& join) const {
  const Tensor& made = tensors_.at(s);
  for (size_t i = 0; i < made.code->step.argument_count; ++i) {
    const uint32_t name = inputs_.at(made.pc)[made.code->step.arguments[i]];
    const auto it = tensors_.find(name);
    if (it == tensors_.end()) {
      if (!is_single(name)) return false;
      continue;
    }
    const Tensor& in = it->second;
    if (in.code->rule == SizeRule::kBroadcast && !in.is_placed) {
      if (!find_join(name, join)) return false;
      continue;
    }
    if (in.code->rule != SizeRule::kReshape || in.uses != 1 || is_outside(name) || join) return false;
    const uint32_t whole = inputs_.at(in.pc)[0];
    const auto concat = tensors_.find(whole);
    if (concat == tensors_.end() || concat->second.code->rule != SizeRule::kConcat) return false;
    if (concat->second.code->appends || concat->second.uses != 1 || is_outside(whole)) return false;
    // A place of the Concat's result has to have a number for each axis, and more than one element along the last.
    const Shape& regrouped = w_.p_.slots[name].type.shape;
    const size_t rank = w_.p_.slots[whole].type.shape.size();
    if (regrouped.empty() || regrouped.back().is_known(1) || regrouped.size() > rank) return false;
    if (w_.p_.slots[s].type.shape.size() > rank) return false;
    join = Join{whole, name};
  }
  return true;
}

// A planned value of one element.
bool LoopWriter::DynamicShapeWriter::is_single(uint32_t name) const {
  return std::ranges::any_of(planned_, [&](const auto& planned) {
    const std::vector<int64_t>& sizes = planned.first.second;
    return planned.second == name && std::ranges::all_of(sizes, [](int64_t size) { return size == 1; });
  });
}

// Values in planned memory may share a slot and have other sizes: each is a tensor by itself.
const std::vector<uint32_t>& LoopWriter::DynamicShapeWriter::name_inputs(uint32_t pc) {
  std::vector<uint32_t>& names = inputs_[pc];
  for (size_t i = 0; i < node(pc).inputs.size(); ++i) {
    const uint32_t s = node(pc).inputs[i];
    names.push_back(s);
    if (s == kNoSlot || is_handle(s)) continue;
    const auto next = static_cast<uint32_t>(w_.p_.slots.size() + planned_.size());
    const Dims& sizes = code(pc).planned[i];
    names.back() = planned_.try_emplace({s, {sizes.begin(), sizes.end()}}, next).first->second;
  }
  return names;
}

void LoopWriter::DynamicShapeWriter::survey(uint32_t pc) {
  const plan::DynamicNode& of = node(pc);
  const DynamicCode& does = code(pc);
  size_t cost = does.rule == SizeRule::kBroadcast ? cost_of(does.step) : 1;
  const std::vector<uint32_t>& inputs = name_inputs(pc);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto it = tensors_.find(inputs[i]);
    const auto before = inputs.begin() + static_cast<std::ptrdiff_t>(i);
    if (it == tensors_.end() || !it->second.code || std::find(inputs.begin(), before, *before) != before) continue;
    Tensor& in = it->second;
    ++in.uses;
    const bool needs_memory = is_part(does) && !is_part(*in.code);
    // Rows of what is cut out of something do not lie one behind the other.
    const bool is_cut = in.code->rule == SizeRule::kSlice || in.code->rule == SizeRule::kSplit;
    if (needs_memory || (does.rule == SizeRule::kReshape && is_cut)) in.is_placed = true;
    if (!in.is_placed && cost + in.cost > kMostInOneLoop) in.is_placed = true;
    if (!in.is_placed) cost += in.cost;
  }
  for (size_t i = 0; i < of.outputs.size(); ++i) {
    const uint32_t s = of.outputs[i];
    Tensor made;
    made.type = w_.p_.slots[s].type.element;
    made.code = &does;
    made.pc = pc;
    made.output = i;
    made.cost = cost;
    tensors_[s] = std::move(made);
    order_.push_back(s);
  }
}

void LoopWriter::DynamicShapeWriter::write() {
  auto& b = w_.b_;
  Block* const elsewhere = Block::Create(b.getContext(), "elsewhere", w_.function_);
  Block* const done = Block::Create(b.getContext(), "changed", w_.function_, w_.exit_);
  w_.publish();
  read_sizes(elsewhere);
  bytes_ = number(0);
  for (uint32_t pc = first_; pc < end_; ++pc) {
    find_sizes(pc);
    const auto count = [&](uint32_t s) {
      const Tensor& of = tensors_.at(s);
      bytes_ = b.CreateAdd(bytes_, b.CreateMul(count_of(of), number(static_cast<int64_t>(byte_width(of.type)))));
    };
    for (const uint32_t s : node(pc).inputs) {
      if (s != kNoSlot && is_handle(s)) count(s);
    }
    for (const uint32_t s : node(pc).outputs) count(s);
  }
  Block* const fits = Block::Create(b.getContext(), "fits", w_.function_, w_.exit_);
  b.CreateCondBr(sizes_.fits(), fits, elsewhere);
  b.SetInsertPoint(fits);
  allocate_results(elsewhere);
  for (const uint32_t s : order_) {
    Tensor& made = tensors_.at(s);
    if (made.is_joined || (!made.is_placed && !is_part(*made.code))) continue;
    if (reads_pieces(s)) write_pieces();
    if (is_part(*made.code)) find_data(s);
    if (made.is_placed) compute(s);
  }
  write_pieces();
  w_.refresh();
  b.CreateBr(done);

  b.SetInsertPoint(elsewhere);
  w_.write_engine(first_, end_);
  b.CreateBr(done);
  b.SetInsertPoint(done);
}

}  // namespace treadle::jit
