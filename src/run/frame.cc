#include "run/frame.h"

#include <algorithm>

#include "kernels/move.h"
#include "plan/roles.h"

namespace treadle::run {

using plan::Slot;
using plan::Storage;

namespace {

bool has_sizes(const Shape& planned, std::span<const int64_t> dims) {
  return std::ranges::equal(dims, planned, [](int64_t size, const Dim& d) { return d.value() == size; });
}

}  // namespace

Frame::Frame(const plan::Program& program, RunMemory& memory)
    : program_(program), memory_(memory), slots_(program.slots.size(), nullptr), handles_(program.slots.size()) {
  first_slots_ = slots_;
  for (uint32_t s = 0; s < program.slots.size(); ++s) {
    const Slot& slot = program.slots[s];
    if (slot.storage == Storage::kConstant) first_slots_[s] = const_cast<void*>(slot.constant.raw());
    if (slot.storage == Storage::kHandle) handle_slots_.push_back(s);
  }
  for (const Slot& slot : program.slots) is_fixed_.push_back(slot.type.is_concrete());
  const bool any_grows = std::any_of(program.dynamic.begin(), program.dynamic.end(),
                                     [](const plan::DynamicNode& node) { return node.growth != plan::Growth::kNone; });
  if (any_grows) layouts_.resize(program.slots.size());
}

Status Frame::need_arena() {
  if (arena_) return {};
  arena_ = BufferRef::allocate(program_.arena_bytes);
  if (!arena_) return error(Code::kLimit, "no memory for an arena of {} bytes", program_.arena_bytes);
  for (uint32_t s = 0; s < program_.slots.size(); ++s) {
    const Slot& slot = program_.slots[s];
    if (slot.storage == Storage::kArena) first_slots_[s] = arena_->data() + slot.offset;
  }
  for (uint32_t at = 0; at < program_.code.size(); ++at) {
    plan::for_each_slot(program_, at, [this](const plan::SlotUse& use) {
      if (use.role == plan::Role::kKeeps) std::memset(first_slots_[use.slot], 0, program_.slots[use.slot].bytes);
    });
  }
  return {};
}

void Frame::begin() {
  std::copy(first_slots_.begin(), first_slots_.end(), slots_.begin());
}

void Frame::end() {
  for (const uint32_t s : handle_slots_) handles_[s] = {};
  for (StrideLayout& layout : layouts_) layout.strides.clear();
}

Status Frame::read_flag(uint32_t s, const char* what, bool& value) const {
  if (is_handle(s)) {
    const AnyValue& v = handles_[s];
    if (!v.is_tensor() || v.tensor().type() != ElementType::kBool || v.tensor().element_count() != 1) {
      return error(Code::kRuntime, "{} is {}, expected one bool", what, v.type().to_string());
    }
  }
  value = *static_cast<const bool*>(slots_[s]);
  return {};
}

Result<AnyValue> Frame::value_of(uint32_t s, const Type& type) {
  const Slot& slot = program_.slots[s];
  switch (slot.storage) {
    case Storage::kNull:
      return AnyValue();
    case Storage::kHandle:
      if (const Dims* strides = strides_of(s)) return row_major_copy(handles_[s].tensor(), *strides);
      return handles_[s];
    case Storage::kConstant:
      return AnyValue(slot.constant);
    default:
      break;
  }
  TREADLE_ASSIGN(Tensor copy, memory_.allocate(type.element, known_dims(type.shape)));
  if (!copy_in_pieces(copy.mutable_raw(), slots_[s], copy.byte_size())) return stopped();
  return AnyValue(std::move(copy));
}

Status Frame::set_handle(uint32_t s, AnyValue value) {
  if (s == plan::kNoSlot) return {};
  const Type& expected = program_.slots[s].type;
  if (value.is_tensor()) {
    const Tensor& t = value.tensor();
    // Kernels that were planned with known sizes read this memory.
    if (is_fixed_[s] && !(has_sizes(expected.shape, t.dims()) && expected.element == t.type())) {
      return error(Code::kInternal, "planned for {}, found {}", expected.to_string(), value.type().to_string());
    }
    slots_[s] = const_cast<void*>(t.raw());
  } else {
    slots_[s] = nullptr;
  }
  if (!layouts_.empty()) layouts_[s].strides.clear();
  handles_[s] = std::move(value);
  return {};
}

const Dims& Frame::dims_of(uint32_t s, const ir::Value& value, Dims& storage) const {
  if (is_handle(s)) return handles_[s].tensor().dims();
  storage = known_dims(value.type.shape);
  return storage;
}

Status Frame::renew(uint32_t s, ElementType type, const Dims& dims) {
  AnyValue& old = handles_[s];
  if (old.is_tensor() && old.tensor().exclusive()) {
    if (old.tensor().type() == type && old.tensor().dims() == dims) {
      slots_[s] = old.tensor().mutable_raw();
      return {};
    }
  }
  if (old.is_tensor() && !is_string(type) && old.tensor().exclusive()) {
    const BufferRef& memory = old.tensor().buffer();
    const size_t bytes = static_cast<size_t>(element_count_unchecked(dims)) * byte_width(type);
    const bool whole = old.tensor().raw() == memory->data() && memory->size() >= bytes && memory->size() / 4 <= bytes;
    if (whole && !is_string(old.tensor().type())) {
      memory->seal();
      return set_handle(s, AnyValue(Tensor::from_buffer(type, dims, memory)));
    }
    if (bytes > memory->size() && bytes < RunMemory::kLargeBytes && !memory_.is_limited()) {
      TREADLE_ASSIGN(BufferRef larger, memory_.allocate_bytes(2 * bytes, dims));
      return set_handle(s, AnyValue(Tensor::from_buffer(type, dims, std::move(larger))));
    }
  }
  TREADLE_ASSIGN(Tensor tensor, memory_.allocate(type, dims));
  return set_handle(s, AnyValue(std::move(tensor)));
}

void* Frame::renew_for(uint32_t s, ElementType type, std::span<const int64_t> dims) {
  if (is_fixed_[s] && !has_sizes(program_.slots[s].type.shape, dims)) return nullptr;
  return renew(s, type, Dims(dims)).ok() ? slots_[s] : nullptr;
}

void Frame::release_handles(const std::vector<uint32_t>& slots, bool in_loop) {
  for (const uint32_t s : slots) {
    AnyValue& value = handles_[s];
    if (in_loop && value.is_tensor()) {
      if (value.tensor().byte_size() < RunMemory::kLargeBytes) continue;
      memory_.recycle(value.tensor());
    }
    value = {};
  }
}

Result<AnyValue> Frame::row_major_copy(const Tensor& tensor, const Dims& strides) {
  TREADLE_ASSIGN(Tensor copy, memory_.allocate(tensor.type(), tensor.dims()));
  if (tensor.element_count() > 0) {
    kernels::CopyPlan plan;
    TREADLE_TRY(kernels::prepare_copy(&plan, byte_width(tensor.type()), tensor.dims(), strides,
                                      contiguous_strides(tensor.dims())));
    plan(tensor.raw(), copy.mutable_raw());
  }
  return AnyValue(std::move(copy));
}

}  // namespace treadle::run
