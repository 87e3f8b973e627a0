#include "jit/changing.h"

#include <algorithm>

#include "jit/lane_maths.h"
#include "op/dynamic_kernel.h"
#include "plan/roles.h"

namespace treadle::jit {

using plan::DynamicCode;
using plan::kNoSlot;
using Kind = plan::DynamicCode::Kind;

namespace {

constexpr size_t kMostRecomputed = 6;  // operations that are done again for every reader of a value
constexpr size_t kMostInOneLoop = 40;  // operations
constexpr size_t kFunctionCost = 10;
constexpr size_t kMostPieces = 8;  // that are written in one loop

bool has_axis(const DynamicCode& code, size_t axis) {
  return std::ranges::find(code.axes, static_cast<int64_t>(axis)) != code.axes.end();
}

size_t cost_of(const plan::ElementwiseCode::Step& step) {
  return step.converts || kernels::info(step.op).price <= kernels::Price::kArithmetic ? 1 : kFunctionCost;
}

}  // namespace

LoopWriter::ChangingWriter::ChangingWriter(LoopWriter& writer, uint32_t first, uint32_t end)
    : w_(writer), first_(first), end_(end) {
  survey();
}

bool LoopWriter::ChangingWriter::is_number(const Value* v, int64_t n) {
  const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(v);
  return constant && constant->getSExtValue() == n;
}

// --- what there is ---------------------------------------------------------------------------------------------------

bool LoopWriter::ChangingWriter::is_part(const DynamicCode& code) const {
  return code.kind == Kind::kSlice || code.kind == Kind::kReshape || code.kind == Kind::kSqueeze ||
         code.kind == Kind::kUnsqueeze || code.kind == Kind::kSplit;
}

// Once for all rows of a function.
void LoopWriter::ChangingWriter::find_users() {
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

void LoopWriter::ChangingWriter::survey() {
  for (uint32_t pc = first_; pc < end_; ++pc) survey(pc);
  find_users();
  for (const uint32_t s : order_) {
    if (is_outside(s)) tensors_.at(s).is_placed = true;
  }
  for (const uint32_t s : order_) {
    Tensor& made = tensors_.at(s);
    const bool is_shared = made.uses > 1 && made.cost > kMostRecomputed;
    if (made.code->kind == Kind::kConcat || made.code->kind == Kind::kReduction || is_shared) made.is_placed = true;
  }
  find_joins();
}

// Whether somebody else reads it.
bool LoopWriter::ChangingWriter::is_outside(uint32_t s) const {
  const auto [first, last] = w_.users_[s];
  return first < first_ || last >= end_;
}

void LoopWriter::ChangingWriter::find_joins() {
  for (const uint32_t s : order_) {
    const Tensor& made = tensors_.at(s);
    std::optional<Join> join;
    if (made.code->kind != Kind::kElementwise || !made.is_placed || !find_join(s, join) || !join) continue;
    for (const uint32_t gone : {join->concat, join->read}) {
      tensors_.at(gone).is_joined = true;
      tensors_.at(gone).is_placed = false;
    }
    joins_[s] = *join;
  }
}

// Whether all that an elementwise value is made of is single elements and at most one regrouped Concat, which nobody
// else reads: `join` then.
bool LoopWriter::ChangingWriter::find_join(uint32_t s, std::optional<Join>& join) const {
  const Tensor& made = tensors_.at(s);
  for (size_t i = 0; i < made.code->step.argument_count; ++i) {
    const uint32_t name = inputs_.at(made.pc)[made.code->step.arguments[i]];
    const auto it = tensors_.find(name);
    if (it == tensors_.end()) {
      if (!is_single(name)) return false;
      continue;
    }
    const Tensor& in = it->second;
    if (in.code->kind == Kind::kElementwise && !in.is_placed) {
      if (!find_join(name, join)) return false;
      continue;
    }
    if (in.code->kind != Kind::kReshape || in.uses != 1 || is_outside(name) || join) return false;
    const uint32_t whole = inputs_.at(in.pc)[0];
    const auto concat = tensors_.find(whole);
    if (concat == tensors_.end() || concat->second.code->kind != Kind::kConcat) return false;
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
bool LoopWriter::ChangingWriter::is_single(uint32_t name) const {
  return std::ranges::any_of(planned_, [&](const auto& planned) {
    const std::vector<int64_t>& sizes = planned.first.second;
    return planned.second == name && std::ranges::all_of(sizes, [](int64_t size) { return size == 1; });
  });
}

// Values in planned memory may share a slot and have other sizes: each is a tensor by itself.
const std::vector<uint32_t>& LoopWriter::ChangingWriter::name_inputs(uint32_t pc) {
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

void LoopWriter::ChangingWriter::survey(uint32_t pc) {
  const plan::DynamicNode& of = node(pc);
  const DynamicCode& does = code(pc);
  size_t cost = does.kind == Kind::kElementwise ? cost_of(does.step) : 1;
  const std::vector<uint32_t>& inputs = name_inputs(pc);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto it = tensors_.find(inputs[i]);
    const auto before = inputs.begin() + static_cast<std::ptrdiff_t>(i);
    if (it == tensors_.end() || !it->second.code || std::find(inputs.begin(), before, *before) != before) continue;
    Tensor& in = it->second;
    ++in.uses;
    const bool needs_memory = is_part(does) && !is_part(*in.code);
    // Rows of what is cut out of something do not lie one behind the other.
    const bool is_cut = in.code->kind == Kind::kSlice || in.code->kind == Kind::kSplit;
    if (needs_memory || (does.kind == Kind::kReshape && is_cut)) in.is_placed = true;
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

// --- sizes -----------------------------------------------------------------------------------------------------------

LoopWriter::Value* LoopWriter::ChangingWriter::count_of(const Tensor& of) const {
  Value* count = number(1);
  for (Value* size : of.sizes) count = w_.b_.CreateMul(count, size);
  return count;
}

LoopWriter::ChangingWriter::Values LoopWriter::ChangingWriter::row_major(const Values& sizes) const {
  Values strides(sizes.size());
  Value* next = number(1);
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = next;
    next = w_.b_.CreateMul(next, sizes[d]);
  }
  return strides;
}

// The sizes have to be equal.
void LoopWriter::ChangingWriter::agree(Value* size, Value* other) {
  check(w_.b_.CreateICmpEQ(size, other));
  Value *a = as_agreed(size), *b = as_agreed(other);
  if (a != b) agreed_[b] = a;
}

LoopWriter::Value* LoopWriter::ChangingWriter::as_agreed(Value* size) const {
  for (auto it = agreed_.find(size); it != agreed_.end(); it = agreed_.find(size)) size = it->second;
  return size;
}

bool LoopWriter::ChangingWriter::same_sizes(const Tensor& a, const Tensor& b) const {
  return std::ranges::equal(a.sizes, b.sizes, [&](Value* x, Value* y) { return as_agreed(x) == as_agreed(y); });
}

// Sizes that the plan knows are what they have to be.
void LoopWriter::ChangingWriter::know(Tensor& of, uint32_t s) {
  const Shape& planned = w_.p_.slots[s].type.shape;
  for (size_t d = 0; d < planned.size(); ++d) {
    if (!planned[d].is_known() || is_number(of.sizes[d], planned[d].value())) continue;
    check(w_.b_.CreateICmpEQ(of.sizes[d], number(planned[d].value())));
    of.sizes[d] = number(planned[d].value());
  }
}

void LoopWriter::ChangingWriter::add_planned(uint32_t name, uint32_t s, const std::vector<int64_t>& sizes) {
  Tensor& of = tensors_[name];
  of.type = w_.p_.slots[s].type.element;
  for (const int64_t size : sizes) of.sizes.push_back(number(size));
  of.strides = row_major(of.sizes);
  const bool in_register = w_.layout_.locations[s].kind == LocationKind::kRegister;
  of.data = in_register ? w_.b_.CreateLoad(w_.b_.getPtrTy(), w_.slot_address(s)) : w_.pointer(s);
}

// Number `at` of the planned list that is input i.
LoopWriter::Value* LoopWriter::ChangingWriter::listed(uint32_t pc, size_t i, size_t at) {
  const plan::Slot& slot = w_.p_.slots[node(pc).inputs[i]];
  if (slot.storage == plan::Storage::kConstant && slot.constant.byte_size() <= plan::kMaxLiteralBytes) {
    const bool is_wide = slot.type.element == ElementType::kInt64;
    return number(is_wide ? slot.constant.data<int64_t>()[at] : slot.constant.data<int32_t>()[at]);
  }
  const Tensor& list = input(pc, i);
  const auto offset = static_cast<int64_t>(at * byte_width(list.type));
  Value* const loaded = w_.load_at(w_.offset(list.data, offset), list.type, 1);
  return w_.b_.CreateSExt(loaded, w_.b_.getInt64Ty());
}

// How often the row reads a handle.
size_t LoopWriter::ChangingWriter::uses_of(uint32_t s) const {
  size_t uses = 0;
  for (const auto& [pc, inputs] : inputs_) uses += static_cast<size_t>(std::ranges::count(inputs, s));
  return uses;
}

void LoopWriter::ChangingWriter::read_sizes(Block* otherwise) {
  std::vector<plan::NativeValue> asked;
  size_t count = 0;
  for (const auto& [planned, name] : planned_) add_planned(name, planned.first, planned.second);
  for (uint32_t pc = first_; pc < end_; ++pc) {
    const std::vector<uint32_t>& inputs = inputs_.at(pc);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const uint32_t s = inputs[i];
      if (s == kNoSlot || tensors_.contains(s)) continue;
      const auto rank = static_cast<uint32_t>(w_.p_.slots[s].type.shape.size());
      asked.push_back({pc, static_cast<uint32_t>(i), rank, i == 0 && code(pc).appends && uses_of(s) == 1});
      read_.push_back(s);
      count += rank;
      tensors_[s].type = w_.p_.slots[s].type.element;
    }
  }
  if (asked.empty()) return;
  Value* sizes = w_.stack(std::max<size_t>(count, 1) * sizeof(int64_t));
  w_.branch_unless_zero(
      w_.call_host(offsetof(plan::NativeHost, sizes), {w_.context_, w_.constant_values(asked),
                                                       w_.b_.getInt32(static_cast<uint32_t>(asked.size())), sizes}),
      otherwise);
  int64_t at = 0;
  for (const uint32_t s : read_) {
    Tensor& of = tensors_.at(s);
    for (size_t d = 0; d < w_.p_.slots[s].type.shape.size(); ++d, ++at) {
      of.sizes.push_back(w_.b_.CreateLoad(w_.b_.getInt64Ty(), w_.offset(sizes, at * int64_t{sizeof(int64_t)})));
    }
    know(of, s);
    of.strides = row_major(of.sizes);
  }
}

// Of operands whose sizes are equal from the last axis on, or 1 where the plan knows it.
void LoopWriter::ChangingWriter::spread(Tensor& to, uint32_t pc) {
  const DynamicCode& does = code(pc);
  size_t rank = 0;
  for (size_t i = 0; i < does.step.argument_count; ++i) {
    rank = std::max(rank, input(pc, does.step.arguments[i]).sizes.size());
  }
  to.sizes.assign(rank, number(1));
  for (size_t i = 0; i < does.step.argument_count; ++i) {
    const Values& own = input(pc, does.step.arguments[i]).sizes;
    for (size_t d = 0; d < own.size(); ++d) {
      Value*& size = to.sizes[rank - own.size() + d];
      if (is_number(own[d], 1) || size == own[d]) continue;
      if (is_number(size, 1)) {
        size = own[d];
      } else {
        agree(size, own[d]);
      }
    }
  }
}

// As known_range of Slice.
void LoopWriter::ChangingWriter::slice(Tensor& to, uint32_t pc) {
  auto& b = w_.b_;
  const DynamicCode& does = code(pc);
  to.sizes = input(pc, 0).sizes;
  const auto clamped = [&](Value* x, Value* low, Value* high) {
    Value* raised = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, x, low);
    return b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, raised, high);
  };
  to.strides.assign(to.sizes.size(), nullptr);  // where each axis begins, until the data are there
  for (size_t i = 0; i < does.axes.size(); ++i) {
    const auto axis = static_cast<size_t>(does.axes[i]);
    const int64_t step = does.steps[i];
    Value* const size = to.sizes[axis];
    Value* const last = step > 0 ? size : b.CreateSub(size, number(1));
    Value* bounds[2];
    for (size_t k = 0; k < 2; ++k) {
      Value* given = listed(pc, 1 + k, i);
      given = b.CreateSelect(b.CreateICmpSLT(given, number(0)), b.CreateAdd(given, size), given);
      bounds[k] = clamped(given, number(step < 0 && k == 1 ? -1 : 0), last);
    }
    Value* span = step > 0 ? b.CreateSub(bounds[1], bounds[0]) : b.CreateSub(bounds[0], bounds[1]);
    const int64_t stride = step > 0 ? step : -step;
    Value* count = span;
    if (stride != 1) {
      Value* some = b.CreateAdd(b.CreateSDiv(b.CreateSub(span, number(1)), number(stride)), number(1));
      count = b.CreateSelect(b.CreateICmpSGT(span, number(0)), some, number(0));
    }
    count = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, count, number(0));
    to.sizes[axis] = b.CreateSelect(b.CreateICmpEQ(size, number(0)), number(0), count);
    to.strides[axis] = bounds[0];
  }
}

void LoopWriter::ChangingWriter::reshape(Tensor& to, uint32_t pc) {
  auto& b = w_.b_;
  const plan::DynamicNode& of = node(pc);
  const Tensor& in = input(pc, 0);
  const size_t rank = w_.p_.slots[of.outputs[0]].type.shape.size();
  Value* const largest = number(DynamicCall::kMostBytes);
  Value *rest = number(1), *deduced = number(0);
  std::vector<Value*> is_deduced;
  for (size_t d = 0; d < rank; ++d) {
    Value* size = listed(pc, 1, d);
    if (!llvm::isa<llvm::ConstantInt>(size) || is_number(size, 0)) {
      Value* const is_zero = b.CreateICmpEQ(size, number(0));
      if (d < in.sizes.size()) {
        size = b.CreateSelect(is_zero, in.sizes[d], size);
      } else {
        check(b.CreateNot(is_zero));
      }
    }
    is_deduced.push_back(b.CreateICmpEQ(size, number(-1)));
    check(b.CreateICmpSGE(size, number(-1)));
    check(b.CreateICmpSLE(size, largest));
    deduced = b.CreateAdd(deduced, b.CreateZExt(is_deduced[d], b.getInt64Ty()));
    rest = b.CreateMul(rest, b.CreateSelect(is_deduced[d], number(1), size));
    check(b.CreateICmpULE(rest, largest));
    to.sizes.push_back(size);
  }
  check(b.CreateICmpULE(deduced, number(1)));
  Value* const count = count_of(in);
  Value* const divisor = b.CreateSelect(b.CreateICmpEQ(rest, number(0)), number(1), rest);
  Value* const other = b.CreateUDiv(count, divisor);
  // Without a size that is left to find, the others make up all of it.
  check(b.CreateICmpEQ(b.CreateMul(rest, b.CreateSelect(b.CreateICmpEQ(deduced, number(0)), number(1), other)), count));
  check(b.CreateOr(b.CreateICmpNE(rest, number(0)), b.CreateICmpEQ(deduced, number(0))));
  for (size_t d = 0; d < rank; ++d) to.sizes[d] = b.CreateSelect(is_deduced[d], other, to.sizes[d]);
}

void LoopWriter::ChangingWriter::put_together(Tensor& to, uint32_t pc) {
  const auto axis = static_cast<size_t>(code(pc).axis);
  to.sizes = input(pc, 0).sizes;
  for (size_t i = 1; i < node(pc).inputs.size(); ++i) {
    const Values& more = input(pc, i).sizes;
    for (size_t d = 0; d < more.size(); ++d) {
      if (d == axis) {
        to.sizes[d] = w_.b_.CreateAdd(to.sizes[d], more[d]);
      } else if (to.sizes[d] != more[d]) {
        agree(to.sizes[d], more[d]);
      }
    }
  }
}

void LoopWriter::ChangingWriter::find_sizes(uint32_t pc) {
  auto& b = w_.b_;
  const plan::DynamicNode& of = node(pc);
  const DynamicCode& does = code(pc);
  for (const uint32_t s : of.outputs) {
    Tensor& to = tensors_.at(s);
    switch (does.kind) {
      case Kind::kElementwise:
        spread(to, pc);
        break;
      case Kind::kReduction:
        to.sizes = input(pc, 0).sizes;
        check(b.CreateICmpSGT(to.sizes.back(), number(0)));  // of nothing there are results of their own
        to.sizes.pop_back();
        if (does.keep) to.sizes.push_back(number(1));
        break;
      case Kind::kSlice:
        slice(to, pc);
        break;
      case Kind::kConcat:
        put_together(to, pc);
        break;
      case Kind::kReshape:
        reshape(to, pc);
        break;
      case Kind::kSqueeze: {
        const Values& from = input(pc, 0).sizes;
        for (size_t d = 0; d < from.size(); ++d) {
          if (!has_axis(does, d)) {
            to.sizes.push_back(from[d]);
          } else if (!is_number(from[d], 1)) {
            check(b.CreateICmpEQ(from[d], number(1)));
          }
        }
        break;
      }
      case Kind::kUnsqueeze: {
        const Values& from = input(pc, 0).sizes;
        for (size_t d = 0, next = 0; d < from.size() + does.axes.size(); ++d) {
          to.sizes.push_back(has_axis(does, d) ? number(1) : from[next++]);
        }
        break;
      }
      case Kind::kSplit: {
        to.sizes = input(pc, 0).sizes;
        Value*& size = to.sizes[static_cast<size_t>(does.axis)];
        Value* const parts = number(static_cast<int64_t>(of.outputs.size()));
        Value* const part = b.CreateUDiv(size, parts);
        check(b.CreateICmpEQ(b.CreateMul(part, parts), size));
        size = part;
        break;
      }
      case Kind::kRange: {
        Value* numbers[3];
        for (size_t i = 0; i < 3; ++i) numbers[i] = listed(pc, i, 0);
        const auto [start, limit, step] = numbers;
        Value* const limits[] = {number(-(int64_t{1} << 40)), number(int64_t{1} << 40)};
        for (Value* x : numbers) {
          check(b.CreateICmpSGE(x, limits[0]));
          check(b.CreateICmpSLE(x, limits[1]));
        }
        Value* const is_up = b.CreateICmpSGT(step, number(0));
        check(b.CreateICmpNE(step, number(0)));
        Value* const span = b.CreateSelect(is_up, b.CreateSub(limit, start), b.CreateSub(start, limit));
        Value* const stride =
            b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, b.CreateSelect(is_up, step, b.CreateNeg(step)), number(1));
        Value* const some = b.CreateAdd(b.CreateSDiv(b.CreateSub(span, number(1)), stride), number(1));
        to.sizes.push_back(b.CreateSelect(b.CreateICmpSGT(span, number(0)), some, number(0)));
        to.start = start;
        to.step = step;
        break;
      }
    }
    know(to, s);
  }
}

// --- elements --------------------------------------------------------------------------------------------------------

void LoopWriter::ChangingWriter::make_places(Block* otherwise) {
  std::vector<plan::NativeValue> wanted;
  std::vector<uint32_t> slots;
  Values sizes;
  for (const uint32_t s : order_) {
    const Tensor& of = tensors_.at(s);
    if (!of.is_placed) continue;
    wanted.push_back(
        {of.pc, static_cast<uint32_t>(of.output), static_cast<uint32_t>(of.sizes.size()), code(of.pc).appends});
    slots.push_back(s);
    sizes.insert(sizes.end(), of.sizes.begin(), of.sizes.end());
  }
  Value* const list = w_.stack(std::max<size_t>(sizes.size(), 1) * sizeof(int64_t));
  for (size_t i = 0; i < sizes.size(); ++i) {
    w_.b_.CreateStore(sizes[i], w_.offset(list, static_cast<int64_t>(i * sizeof(int64_t))));
  }
  Value* const places = w_.stack(std::max<size_t>(slots.size(), 1) * sizeof(void*));
  Value* const found = w_.call_host(offsetof(plan::NativeHost, make),
                                    {w_.context_, w_.constant_values(wanted),
                                     w_.b_.getInt32(static_cast<uint32_t>(wanted.size())), list, bytes_, places});
  Block* next = Block::Create(w_.b_.getContext(), "places", w_.function_, w_.exit_);
  w_.b_.CreateCondBr(w_.b_.CreateICmpEQ(found, w_.b_.getInt32(plan::kNativeElsewhere)), otherwise, next);
  w_.b_.SetInsertPoint(next);
  w_.leave_unless_zero(found);
  for (size_t i = 0; i < slots.size(); ++i) {
    tensors_.at(slots[i]).place =
        w_.b_.CreateLoad(w_.b_.getPtrTy(), w_.offset(places, static_cast<int64_t>(i * sizeof(void*))));
  }
  for (const uint32_t s : read_) tensors_.at(s).data = w_.pointer(s);  // what has grown may lie elsewhere
}

// Of a part: where its elements lie in what it is a part of.
void LoopWriter::ChangingWriter::find_data(uint32_t s) {
  auto& b = w_.b_;
  Tensor& to = tensors_.at(s);
  const Tensor& from = input(to.pc, 0);
  llvm::Type* const scalar = element_ir_type(b.getContext(), to.type);
  const auto moved = [&](Value* data, Value* turns, Value* stride) {
    return b.CreateGEP(scalar, data, b.CreateMul(turns, stride));
  };
  const Values begins = std::exchange(to.strides, {});
  to.data = from.data;
  switch (to.code->kind) {
    case Kind::kSlice:
      to.strides = from.strides;
      for (size_t i = 0; i < to.code->axes.size(); ++i) {
        const auto axis = static_cast<size_t>(to.code->axes[i]);
        to.data = moved(to.data, begins[axis], from.strides[axis]);
        to.strides[axis] = b.CreateMul(from.strides[axis], number(to.code->steps[i]));
      }
      break;
    case Kind::kSplit: {
      const auto axis = static_cast<size_t>(to.code->axis);
      to.strides = from.strides;
      Value* const before = b.CreateMul(number(static_cast<int64_t>(to.output)), to.sizes[axis]);
      to.data = moved(to.data, before, from.strides[axis]);
      break;
    }
    case Kind::kSqueeze:
      for (size_t d = 0; d < from.strides.size(); ++d) {
        if (!has_axis(*to.code, d)) to.strides.push_back(from.strides[d]);
      }
      break;
    case Kind::kUnsqueeze:
      for (size_t d = 0, next = 0; d < to.sizes.size(); ++d) {
        to.strides.push_back(has_axis(*to.code, d) ? number(0) : from.strides[next++]);
      }
      break;
    default:
      to.strides = row_major(to.sizes);
  }
}

// fn(i) for i = 0, ..., count - 1.
void LoopWriter::ChangingWriter::each(Value* count, const std::function<void(Value*)>& fn) {
  if (is_number(count, 0)) return;
  if (llvm::isa<llvm::ConstantInt>(count)) {
    return w_.count_to(llvm::cast<llvm::ConstantInt>(count)->getSExtValue(), fn);
  }
  Block* some = Block::Create(w_.b_.getContext(), "some", w_.function_, w_.exit_);
  Block* done = Block::Create(w_.b_.getContext(), "done", w_.function_, w_.exit_);
  w_.b_.CreateCondBr(w_.b_.CreateICmpSGT(count, number(0)), some, done);
  w_.b_.SetInsertPoint(some);
  w_.count_up_to(count, fn);
  w_.b_.CreateBr(done);
  w_.b_.SetInsertPoint(done);
}

// fn(at) for every place of all axes but the last; `at` has one number for each.
void LoopWriter::ChangingWriter::each_row(Tensor& to, size_t d, Values& at, const std::function<void(Values&)>& fn) {
  if (d + 1 >= to.sizes.size()) return fn(at);
  each(to.sizes[d], [&](Value* i) {
    at[d] = i;
    each_row(to, d + 1, at, fn);
  });
}

// Whole vectors, the last of which ends with the row; elements one by one where there are fewer than a vector has.
// What is written does not depend on what is written before, so some of it may be written twice.
void LoopWriter::ChangingWriter::along_row(Value* n, const std::function<void(Value* first, unsigned lanes)>& fn) {
  auto& b = w_.b_;
  const unsigned lanes = w_.chunks_.full;
  if (is_number(n, 1)) return fn(number(0), 1);
  Block* vectors = Block::Create(b.getContext(), "vectors", w_.function_, w_.exit_);
  Block* few = Block::Create(b.getContext(), "few", w_.function_, w_.exit_);
  Block* done = Block::Create(b.getContext(), "row", w_.function_, w_.exit_);
  b.CreateCondBr(b.CreateICmpSGE(n, number(lanes)), vectors, few);
  b.SetInsertPoint(vectors);
  Value* const last = b.CreateSub(n, number(lanes));
  Value* const turns = b.CreateUDiv(b.CreateAdd(n, number(lanes - 1)), number(lanes));
  w_.count_up_to(turns, [&](Value* i) {
    Value* const first = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b.CreateMul(i, number(lanes)), last);
    fn(first, lanes);
  });
  b.CreateBr(done);
  b.SetInsertPoint(few);
  each(n, [&](Value* i) { fn(i, 1); });
  b.CreateBr(done);
  b.SetInsertPoint(done);
}

LoopWriter::Value* LoopWriter::ChangingWriter::address(const Tensor& of, const Values& at) const {
  Value* offset = number(0);
  for (size_t d = 0; d < at.size(); ++d) offset = w_.b_.CreateAdd(offset, w_.b_.CreateMul(at[d], of.strides[d]));
  return w_.b_.CreateGEP(element_ir_type(w_.b_.getContext(), of.type), of.data, offset);
}

// `lanes` neighbours along the last axis.
LoopWriter::Value* LoopWriter::ChangingWriter::load(const Tensor& of, const Values& at, unsigned lanes) {
  auto& b = w_.b_;
  Value* const from = address(of, at);
  if (lanes == 1) return w_.load_at(from, of.type, 1);
  Value* const stride = of.strides.back();
  if (is_number(stride, 1)) return w_.load_at(from, of.type, lanes);
  if (is_number(stride, -1)) {
    const int64_t width = static_cast<int64_t>(byte_width(of.type));
    return b.CreateVectorReverse(w_.load_at(w_.offset(from, -static_cast<int64_t>(lanes - 1) * width), of.type, lanes));
  }
  if (is_number(stride, 0)) return b.CreateVectorSplat(lanes, w_.load_at(from, of.type, 1));
  llvm::Type* const scalar = element_ir_type(b.getContext(), of.type);
  Value* vector = llvm::PoisonValue::get(lanes_of(scalar, lanes));
  for (unsigned lane = 0; lane < lanes; ++lane) {
    Value* const place = b.CreateGEP(scalar, from, b.CreateMul(stride, number(lane)));
    vector = b.CreateInsertElement(vector, w_.load_at(place, of.type, 1), lane);
  }
  return vector;
}

LoopWriter::Value* LoopWriter::ChangingWriter::elements(uint32_t s, const Values& at, unsigned lanes, Seen& seen) {
  auto& b = w_.b_;
  if (const auto it = seen.find(s); it != seen.end()) return it->second;
  const Tensor& of = tensors_.at(s);
  Value* result = nullptr;
  if (of.data) {
    result = load(of, at, lanes);
  } else if (of.code->kind == Kind::kRange) {
    llvm::Type* const scalar = element_ir_type(b.getContext(), of.type);
    const auto spread = [&](Value* x) {
      Value* const narrow = b.CreateTrunc(x, scalar);
      return lanes == 1 ? narrow : b.CreateVectorSplat(lanes, narrow);
    };
    result = spread(b.CreateAdd(of.start, b.CreateMul(at.back(), of.step)));
    if (lanes > 1) {
      result = b.CreateAdd(result, b.CreateMul(b.CreateStepVector(result->getType()), spread(of.step)));
    }
  } else {
    const plan::ElementwiseCode::Step& step = of.code->step;
    llvm::SmallVector<Value*, 3> arguments;
    for (size_t i = 0; i < step.argument_count; ++i) {
      const uint32_t argument = inputs_.at(of.pc)[step.arguments[i]];
      const Values& sizes = tensors_.at(argument).sizes;
      Values own(at.end() - static_cast<std::ptrdiff_t>(sizes.size()), at.end());
      for (size_t d = 0; d < own.size(); ++d) {
        if (is_number(sizes[d], 1)) own[d] = number(0);
      }
      const auto is_only = [](const Value* size) { return is_number(size, 1); };
      const bool spreads = !sizes.empty() && is_only(sizes.back()) && !is_number(of.sizes.back(), 1);
      const bool is_one = spreads || std::ranges::all_of(sizes, is_only);
      Seen apart;  // of one element at a time
      Value* value = elements(argument, own, is_one ? 1 : lanes, is_one && lanes > 1 ? apart : seen);
      if (is_one && lanes > 1) value = b.CreateVectorSplat(lanes, value);
      arguments.push_back(value);
    }
    result = w_.step_of(step, arguments);
  }
  if (lanes > 1 || of.sizes.empty() || !is_number(of.sizes.back(), 1)) seen[s] = result;
  return result;
}

// As reduce_block of kernels/isa/reduce.cc, block by block, whose sums are added in double.
LoopWriter::Value* LoopWriter::ChangingWriter::reduce_row(const Tensor& to, uint32_t s, const Values& at, Value* n) {
  auto& b = w_.b_;
  using kernels::ElementwiseOp;
  using kernels::ReduceOp;
  const LaneMaths maths(w_.lanes_, w_, w_.request_.isa);
  const ReduceOp op = to.code->reduce;
  const bool adds = op != ReduceOp::kMax && op != ReduceOp::kMin;
  const ElementwiseOp combine = adds                   ? ElementwiseOp::kAdd
                                : op == ReduceOp::kMax ? ElementwiseOp::kMax
                                                       : ElementwiseOp::kMin;
  const ElementType type = to.type;
  const auto lanes = static_cast<unsigned>(maths.lanes_of_kernel(type));
  llvm::Type* const scalar = element_ir_type(b.getContext(), type);
  const auto apply = [&](Value* x, Value* y, unsigned count) {
    plan::ElementwiseCode::Step step;
    step.op = combine;
    step.from = step.to = type;
    step.argument_count = 2;
    const IrScope scope(b, count, w_.request_.isa);
    return write_step(step, {x, y}, w_);
  };
  const auto term = [&](Value* i, unsigned count) {
    Values here = at;
    here.push_back(i);
    Seen seen;
    Value* x = elements(s, here, count, seen);
    const bool squares = op == ReduceOp::kL2 || op == ReduceOp::kSumSquare;
    return squares ? b.CreateFMul(x, x) : x;
  };
  const auto variable = [&](unsigned count) { return w_.variable(lanes_of(scalar, count), "sum"); };
  auto* const total = w_.variable(adds ? b.getDoubleTy() : scalar, "total");
  if (adds) w_.set(total, llvm::ConstantFP::get(b.getDoubleTy(), 0));
  auto* const sum = variable(1);
  auto* const position = w_.variable(b.getInt64Ty(), "position");
  Value* const block = number(static_cast<int64_t>(kernels::reduce_block(type, false)));
  Value* const blocks = b.CreateUDiv(b.CreateAdd(n, b.CreateSub(block, number(1))), block);
  const auto while_below = [&](Value* end, int64_t step, const std::function<void(Value*)>& fn) {
    Block* head = Block::Create(b.getContext(), "while", w_.function_, w_.exit_);
    Block* body = Block::Create(b.getContext(), "do", w_.function_, w_.exit_);
    Block* done = Block::Create(b.getContext(), "done", w_.function_, w_.exit_);
    b.CreateBr(head);
    b.SetInsertPoint(head);
    Value* const next = b.CreateAdd(w_.get(position), number(step));
    b.CreateCondBr(b.CreateICmpSLE(next, end), body, done);
    b.SetInsertPoint(body);
    fn(w_.get(position));
    w_.set(position, b.CreateAdd(w_.get(position), number(step)));
    b.CreateBr(head);
    b.SetInsertPoint(done);
  };
  const auto either = [&](Value* condition, const std::function<void()>& yes, const std::function<void()>& no) {
    Block* first = Block::Create(b.getContext(), "yes", w_.function_, w_.exit_);
    Block* second = Block::Create(b.getContext(), "no", w_.function_, w_.exit_);
    Block* done = Block::Create(b.getContext(), "joined", w_.function_, w_.exit_);
    b.CreateCondBr(condition, first, second);
    b.SetInsertPoint(first);
    yes();
    b.CreateBr(done);
    b.SetInsertPoint(second);
    no();
    b.CreateBr(done);
    b.SetInsertPoint(done);
  };
  w_.count_up_to(blocks, [&](Value* number_of_block) {
    Value* const first = b.CreateMul(number_of_block, block);
    Value* const end = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b.CreateAdd(first, block), n);
    Value* const size = b.CreateSub(end, first);
    either(
        b.CreateICmpSLT(size, number(lanes)),
        [&] {
          w_.set(sum, term(first, 1));
          w_.set(position, b.CreateAdd(first, number(1)));
        },
        [&] {
          auto* const all = variable(lanes);
          either(
              b.CreateICmpSGE(size, number(4 * lanes)),
              [&] {
                llvm::AllocaInst* sums[4];
                for (unsigned k = 0; k < 4; ++k) {
                  sums[k] = variable(lanes);
                  w_.set(sums[k], term(b.CreateAdd(first, number(k * lanes)), lanes));
                }
                w_.set(position, b.CreateAdd(first, number(4 * lanes)));
                while_below(end, 4 * lanes, [&](Value* i) {
                  for (unsigned k = 0; k < 4; ++k) {
                    Value* const next = term(b.CreateAdd(i, number(k * lanes)), lanes);
                    w_.set(sums[k], apply(w_.get(sums[k]), next, lanes));
                  }
                });
                Value* const low = apply(w_.get(sums[0]), w_.get(sums[1]), lanes);
                Value* const high = apply(w_.get(sums[2]), w_.get(sums[3]), lanes);
                w_.set(all, apply(low, high, lanes));
              },
              [&] {
                w_.set(all, term(first, lanes));
                w_.set(position, b.CreateAdd(first, number(lanes)));
              });
          while_below(end, lanes, [&](Value* i) { w_.set(all, apply(w_.get(all), term(i, lanes), lanes)); });
          Value* halves = w_.get(all);
          for (unsigned width = lanes; width > 1; width /= 2) {
            llvm::SmallVector<int, 8> low, high;
            for (unsigned i = 0; i < width / 2; ++i) {
              low.push_back(static_cast<int>(i));
              high.push_back(static_cast<int>(i + width / 2));
            }
            Value *x = b.CreateShuffleVector(halves, low), *y = b.CreateShuffleVector(halves, high);
            if (width == 2) {
              x = b.CreateExtractElement(halves, uint64_t{0});
              y = b.CreateExtractElement(halves, uint64_t{1});
            }
            halves = apply(x, y, width / 2);
          }
          w_.set(sum, halves);
        });
    while_below(end, 1, [&](Value* i) { w_.set(sum, apply(w_.get(sum), term(i, 1), 1)); });
    if (adds) {
      w_.set(total, b.CreateFAdd(w_.get(total), b.CreateFPCast(w_.get(sum), b.getDoubleTy())));
    } else {
      // Nothing is before the first block.
      Value* const is_first = b.CreateICmpEQ(number_of_block, number(0));
      either(
          is_first, [&] { w_.set(total, w_.get(sum)); }, [&] { w_.set(total, apply(w_.get(total), w_.get(sum), 1)); });
    }
  });
  Value* result = w_.get(total);
  if (op == ReduceOp::kMean) result = b.CreateFDiv(result, b.CreateSIToFP(n, b.getDoubleTy()));
  if (op == ReduceOp::kL2) result = b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, result);
  return b.CreateFPCast(result, scalar);
}

// Puts the elements of a value where they are read from, or has that done with what comes next.
void LoopWriter::ChangingWriter::compute(uint32_t s) {
  if (tensors_.at(s).code->kind == Kind::kReduction) return reduce(s);
  put_pieces(s);
}

LoopWriter::ChangingWriter::Tensor LoopWriter::ChangingWriter::place_of(const Tensor& of) const {
  Tensor place;
  place.type = of.type;
  place.sizes = of.sizes;
  place.strides = row_major(of.sizes);
  place.data = of.place;
  return place;
}

void LoopWriter::ChangingWriter::reduce(uint32_t s) {
  Tensor& to = tensors_.at(s);
  const Tensor place = place_of(to);
  const uint32_t from = inputs_.at(to.pc)[0];
  Value* const n = tensors_.at(from).sizes.back();
  Tensor kept = place;  // with an axis at the end in place of the one that goes
  if (!to.code->keep) kept.sizes.push_back(number(1)), kept.strides.push_back(number(0));
  Values at(kept.sizes.size());
  each_row(kept, 0, at, [&](Values& row) {
    row.pop_back();
    Value* const result = reduce_row(to, from, row, n);
    row.push_back(number(0));
    w_.store_at(address(kept, row), to.type, result);
  });
  to.data = place.data;
  to.strides = place.strides;
}

void LoopWriter::ChangingWriter::put_pieces(uint32_t s) {
  const Tensor& to = tensors_.at(s);
  const auto join = joins_.find(s);
  const uint32_t whole = join == joins_.end() ? s : join->second.concat;
  const Tensor& made = tensors_.at(whole);
  Tensor place = place_of(to);
  if (made.code->kind != Kind::kConcat) {
    put_piece({s, place});
  } else {
    place.sizes = made.sizes;
    place.strides = row_major(made.sizes);
    const auto axis = static_cast<size_t>(made.code->axis);
    for (size_t i = made.code->appends ? 1 : 0; i < inputs_.at(made.pc).size(); ++i) {
      Piece piece{inputs_.at(made.pc)[i], place};
      if (whole != s) piece.reader = s, piece.read = join->second.read;
      piece.to.sizes = tensors_.at(piece.from).sizes;
      Value* const taken = w_.b_.CreateMul(piece.to.sizes[axis], place.strides[axis]);
      place.data = w_.b_.CreateGEP(element_ir_type(w_.b_.getContext(), to.type), place.data, taken);
      put_piece(std::move(piece));
    }
  }
  filled_.push_back(s);
}

// With the pieces before it where these have its sizes.
void LoopWriter::ChangingWriter::put_piece(Piece piece) {
  size_t cost = tensors_.at(piece.from).code ? tensors_.at(piece.from).cost : 1;
  if (piece.reader != UINT32_MAX) {
    const size_t whole = tensors_.at(piece.reader).cost, part = tensors_.at(piece.read).cost;
    cost += whole > part ? whole - part : whole;
  }
  const bool is_next = !pieces_.empty() && pieces_.size() < kMostPieces && pieces_cost_ + cost <= kMostInOneLoop &&
                       same_sizes(pieces_.front().to, piece.to);
  if (!is_next) write_pieces();
  pieces_cost_ += cost;
  pieces_.push_back(std::move(piece));
}

void LoopWriter::ChangingWriter::write_pieces() {
  const std::vector<Piece> pieces = std::exchange(pieces_, {});
  pieces_cost_ = 0;
  if (!pieces.empty()) {
    Tensor all = pieces.front().to;
    Values at(all.sizes.size());
    each_row(all, 0, at, [&](Values& row) {
      const auto store = [&](Value* first, unsigned lanes) {
        if (!row.empty()) row.back() = first;
        Seen seen;
        for (const Piece& piece : pieces) {
          Value* value = elements(piece.from, row, lanes, seen);
          if (piece.reader != UINT32_MAX) {
            Seen joined{{piece.read, value}};
            value = elements(piece.reader, row, lanes, joined);
          }
          w_.store_at(address(piece.to, row), piece.to.type, value);
        }
      };
      if (row.empty()) return store(nullptr, 1);
      along_row(all.sizes.back(), store);
    });
  }
  for (const uint32_t s : std::exchange(filled_, {})) {
    Tensor& to = tensors_.at(s);
    const Tensor place = place_of(to);
    to.data = to.code->appends ? w_.pointer(s) : place.data;
    to.strides = place.strides;
  }
}

// Whether a value is made of what is still to be written.
bool LoopWriter::ChangingWriter::reads_pieces(uint32_t s) const {
  const Tensor& made = tensors_.at(s);
  return std::ranges::any_of(inputs_.at(made.pc), [&](uint32_t name) {
    const auto it = tensors_.find(name);
    if (it == tensors_.end() || !it->second.code) return false;
    if (std::ranges::find(filled_, name) != filled_.end()) return true;
    return !it->second.is_placed && reads_pieces(name);
  });
}

void LoopWriter::ChangingWriter::write() {
  auto& b = w_.b_;
  Block* const elsewhere = Block::Create(b.getContext(), "elsewhere", w_.function_);
  Block* const done = Block::Create(b.getContext(), "changed", w_.function_, w_.exit_);
  w_.publish();
  fits_ = b.getTrue();
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
  b.CreateCondBr(fits_, fits, elsewhere);
  b.SetInsertPoint(fits);
  make_places(elsewhere);
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
