// Sizes of what a row reads and makes.

#include <algorithm>

#include "jit/dynamic_shapes.h"
#include "op/size_rules.h"

namespace treadle::jit {

using plan::DynamicCode;
using plan::kNoSlot;

LoopWriter::Value* LoopWriter::DynamicShapeWriter::count_of(const Tensor& of) const {
  Value* count = number(1);
  for (Value* size : of.sizes) count = w_.b_.CreateMul(count, size);
  return count;
}

LoopWriter::DynamicShapeWriter::Values LoopWriter::DynamicShapeWriter::row_major(const Values& sizes) const {
  Values strides(sizes.size());
  Value* next = number(1);
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = next;
    next = w_.b_.CreateMul(next, sizes[d]);
  }
  return strides;
}

bool LoopWriter::DynamicShapeWriter::same_sizes(const Tensor& a, const Tensor& b) const {
  return std::ranges::equal(a.sizes, b.sizes,
                            [&](Value* x, Value* y) { return sizes_.representative(x) == sizes_.representative(y); });
}

// Sizes that the plan knows are what they have to be.
void LoopWriter::DynamicShapeWriter::check_planned(Tensor& of, uint32_t s) {
  const Shape& planned = w_.p_.slots[s].type.shape;
  for (size_t d = 0; d < planned.size(); ++d) {
    if (!planned[d].is_known()) continue;
    sizes_.check(sizes_.is(of.sizes[d], planned[d].value()));
    of.sizes[d] = number(planned[d].value());
  }
}

void LoopWriter::DynamicShapeWriter::add_planned(uint32_t name, uint32_t s, const std::vector<int64_t>& sizes) {
  Tensor& of = tensors_[name];
  of.type = w_.p_.slots[s].type.element;
  for (const int64_t size : sizes) of.sizes.push_back(number(size));
  of.strides = row_major(of.sizes);
  const bool in_register = w_.layout_.locations[s].kind == LocationKind::kRegister;
  of.data = in_register ? w_.b_.CreateLoad(w_.b_.getPtrTy(), w_.slot_address(s)) : w_.pointer(s);
}

// Number `at` of the planned list that is input i.
LoopWriter::Value* LoopWriter::DynamicShapeWriter::element_of_list(uint32_t pc, size_t i, size_t at) {
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
size_t LoopWriter::DynamicShapeWriter::uses_of(uint32_t s) const {
  size_t uses = 0;
  for (const auto& [pc, inputs] : inputs_) uses += static_cast<size_t>(std::ranges::count(inputs, s));
  return uses;
}

void LoopWriter::DynamicShapeWriter::read_sizes(Block* otherwise) {
  std::vector<plan::NativeValue> requested;
  size_t count = 0;
  for (const auto& [planned, name] : planned_) add_planned(name, planned.first, planned.second);
  for (uint32_t pc = first_; pc < end_; ++pc) {
    const std::vector<uint32_t>& inputs = inputs_.at(pc);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const uint32_t s = inputs[i];
      if (s == kNoSlot || tensors_.contains(s)) continue;
      const auto rank = static_cast<uint32_t>(w_.p_.slots[s].type.shape.size());
      requested.push_back({pc, static_cast<uint32_t>(i), rank, i == 0 && code(pc).appends && uses_of(s) == 1});
      read_.push_back(s);
      count += rank;
      tensors_[s].type = w_.p_.slots[s].type.element;
    }
  }
  if (requested.empty()) return;
  Value* sizes = w_.stack(std::max<size_t>(count, 1) * sizeof(int64_t));
  w_.branch_unless_zero(
      w_.call_host(offsetof(plan::NativeHost, sizes), {w_.context_, w_.constant_values(requested),
                                                       w_.b_.getInt32(static_cast<uint32_t>(requested.size())), sizes}),
      otherwise);
  int64_t at = 0;
  for (const uint32_t s : read_) {
    Tensor& of = tensors_.at(s);
    for (size_t d = 0; d < w_.p_.slots[s].type.shape.size(); ++d, ++at) {
      of.sizes.push_back(w_.b_.CreateLoad(w_.b_.getInt64Ty(), w_.offset(sizes, at * int64_t{sizeof(int64_t)})));
    }
    check_planned(of, s);
    of.strides = row_major(of.sizes);
  }
}

// Broadcast. Only sizes that the plan knows to be 1 are spread.
void LoopWriter::DynamicShapeWriter::size_elementwise(Tensor& to, uint32_t pc) {
  const DynamicCode& does = code(pc);
  size_t rank = 0;
  for (size_t i = 0; i < does.step.argument_count; ++i) {
    rank = std::max(rank, input(pc, does.step.arguments[i]).sizes.size());
  }
  to.sizes.assign(rank, number(1));
  for (size_t i = 0; i < does.step.argument_count; ++i) {
    const Values& own = input(pc, does.step.arguments[i]).sizes;
    for (size_t d = 0; d < own.size(); ++d) size_rules::broadcast(sizes_, to.sizes[rank - own.size() + d], own[d]);
  }
}

void LoopWriter::DynamicShapeWriter::size_reduction(Tensor& to, uint32_t pc) {
  const Values& from = input(pc, 0).sizes;
  sizes_.check(sizes_.is_at_least(from.back(), 1));  // an empty reduction has a special result: the engine computes it
  size_rules::reduce(sizes_, from, [&](size_t d) { return d + 1 == from.size(); }, code(pc).keep, to.sizes);
}

void LoopWriter::DynamicShapeWriter::size_slice(Tensor& to, uint32_t pc) {
  const DynamicCode& does = code(pc);
  to.sizes = input(pc, 0).sizes;
  to.begins.resize(to.sizes.size());
  for (size_t i = 0; i < does.axes.size(); ++i) {
    const auto axis = static_cast<size_t>(does.axes[i]);
    const auto part =
        size_rules::slice(sizes_, to.sizes[axis], element_of_list(pc, 1, i), element_of_list(pc, 2, i), does.steps[i]);
    to.begins[axis] = part.start;
    to.sizes[axis] = part.count;
  }
}

void LoopWriter::DynamicShapeWriter::size_reshape(Tensor& to, uint32_t pc) {
  const size_t rank = w_.p_.slots[node(pc).outputs[0]].type.shape.size();
  for (size_t d = 0; d < rank; ++d) to.sizes.push_back(element_of_list(pc, 1, d));
  size_rules::reshape(sizes_, &input(pc, 0).sizes, false, to.sizes);
}

void LoopWriter::DynamicShapeWriter::size_concat(Tensor& to, uint32_t pc) {
  to.sizes = input(pc, 0).sizes;
  for (size_t i = 1; i < node(pc).inputs.size(); ++i) {
    size_rules::concat(sizes_, to.sizes, input(pc, i).sizes, static_cast<size_t>(code(pc).axis));
  }
}

void LoopWriter::DynamicShapeWriter::size_squeeze(Tensor& to, uint32_t pc) {
  size_rules::squeeze(sizes_, input(pc, 0).sizes, [&](size_t d) { return code(pc).has_axis(d); }, to.sizes);
}

void LoopWriter::DynamicShapeWriter::size_unsqueeze(Tensor& to, uint32_t pc) {
  const DynamicCode& does = code(pc);
  size_rules::unsqueeze(
      sizes_, input(pc, 0).sizes, does.axes.size(), [&](size_t d) { return does.has_axis(d); }, to.sizes);
}

// Where the parts are not equal, the engine cuts them.
void LoopWriter::DynamicShapeWriter::size_split(Tensor& to, uint32_t pc) {
  to.sizes = input(pc, 0).sizes;
  Value*& size = to.sizes[static_cast<size_t>(code(pc).axis)];
  size_rules::split_evenly(sizes_, size, static_cast<int64_t>(node(pc).outputs.size()), size);
}

void LoopWriter::DynamicShapeWriter::size_range(Tensor& to, uint32_t pc) {
  constexpr int64_t kLargest = int64_t{1} << 40;  // so that no sum of them overflows
  Value* numbers[3];
  for (size_t i = 0; i < 3; ++i) {
    numbers[i] = element_of_list(pc, i, 0);
    sizes_.check(sizes_.is_at_least(numbers[i], -kLargest));
    sizes_.check(sizes_.negated(sizes_.is_at_least(numbers[i], kLargest)));
  }
  Value* count = nullptr;
  size_rules::range(sizes_, numbers[0], numbers[1], numbers[2], count);
  to.sizes.push_back(count);
  to.start = numbers[0];
  to.step = numbers[2];
}

void LoopWriter::DynamicShapeWriter::size_by_rule(Tensor& to, uint32_t pc) {
  switch (code(pc).rule) {
    case SizeRule::kBroadcast:
      return size_elementwise(to, pc);
    case SizeRule::kReduce:
      return size_reduction(to, pc);
    case SizeRule::kSlice:
      return size_slice(to, pc);
    case SizeRule::kConcat:
      return size_concat(to, pc);
    case SizeRule::kReshape:
      return size_reshape(to, pc);
    case SizeRule::kSqueeze:
      return size_squeeze(to, pc);
    case SizeRule::kUnsqueeze:
      return size_unsqueeze(to, pc);
    case SizeRule::kSplit:
      return size_split(to, pc);
    case SizeRule::kRange:
      return size_range(to, pc);
    case SizeRule::kNone:
    case SizeRule::kGather:
      TREADLE_ASSERT(false);  // has no DynamicCode
  }
}

void LoopWriter::DynamicShapeWriter::find_sizes(uint32_t pc) {
  for (const uint32_t s : node(pc).outputs) {
    Tensor& to = tensors_.at(s);
    size_by_rule(to, pc);
    check_planned(to, s);
  }
}

}  // namespace treadle::jit
