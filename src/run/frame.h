#pragma once
// The values of a run: the arena, the table of slots, and the handles of values whose size is known only at run time.
// The interpreter, native code and pipelines read and write values here.

#include <cstring>
#include <memory>
#include <vector>

#include "base/in_pieces.h"
#include "plan/program.h"
#include "run/memory.h"
#include "type/any_value.h"

namespace treadle::run {

// Most rows and states of small bodies are one or two elements.
inline void copy_bytes(void* to, const void* from, size_t bytes) {
  if (bytes == 4) {
    std::memcpy(to, from, 4);
  } else if (bytes == 8) {
    std::memcpy(to, from, 8);
  } else {
    copy_in_pieces(to, from, bytes);
  }
}

// Layout of a handle's value that has spare room along an axis (plan::Growth).
struct StrideLayout {
  Dims strides;      // in elements; empty: row-major
  int64_t room = 0;  // positions that fit along the grown axis
};

class Frame {
 public:
  // Both must outlive the frame.
  Frame(const plan::Program& program, RunMemory& memory);
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  // Allocates the arena if there is none. The caller has counted its memory. Errors: kLimit.
  Status need_arena();
  size_t arena_bytes() const { return arena_ ? program_.arena_bytes : 0; }
  // Sets all slots to their values at the beginning of a run: addresses in the arena and of constants.
  void begin();
  // Releases all handles, so that a pooled frame does not keep the caller's values alive.
  void end();

  // --- addresses
  void** slots() { return slots_.data(); }
  void* address(uint32_t s) const { return slots_[s]; }
  void point(uint32_t s, void* to) { slots_[s] = to; }
  // The same for this run and all later ones.
  void point_first(uint32_t s, void* to) { first_slots_[s] = slots_[s] = to; }
  void copy(const plan::Copy& of) { copy_bytes(slots_[of.to], slots_[of.from], of.bytes); }
  // Points a slot at the row that an index tensor names. Returns 0 or a KernelError.
  [[gnu::always_inline]] uint32_t point_at_row(const plan::Row& row) {
    void** const slots = slots_.data();
    const int64_t index = row.wide ? *static_cast<const int64_t*>(slots[row.index])
                                   : int64_t{*static_cast<const int32_t*>(slots[row.index])};
    const int64_t i = index < 0 ? index + row.count : index;
    if (i < 0 || i >= row.count) {
      return fail(KernelError::kIndexOutOfRange, index, row.count);
    }
    slots[row.to] = static_cast<std::byte*>(slots[row.from]) + static_cast<size_t>(i) * row.bytes;
    return 0;
  }
  // Reads a single bool, called `what` in errors. Errors: kRuntime if the handle holds anything else.
  Status read_flag(uint32_t s, const char* what, bool& value) const;

  // --- values
  bool is_handle(uint32_t s) const { return program_.slots[s].storage == plan::Storage::kHandle; }
  // Whether slot `s` is a handle whose value is row-major.
  bool is_plain_handle(uint32_t s) const { return is_handle(s) && !strides_of(s); }
  const AnyValue& handle(uint32_t s) const { return handles_[s]; }
  // A caller that changes the value through this reference has to keep the slot's address right.
  AnyValue& handle(uint32_t s) { return handles_[s]; }
  // The value in slot `s` as a value of `type`: shared if it is reference-counted, copied if it lies in planned memory.
  Result<AnyValue> value_of(uint32_t s, const Type& type);
  Status set_handle(uint32_t s, AnyValue value);
  // Moves the value of `successor` to `state`. The old value of `state` goes to `successor` if nothing else refers to
  // its memory, so that the memory can be written again.
  void exchange(uint32_t state, uint32_t successor) {
    std::swap(handles_[state], handles_[successor]);
    std::swap(slots_[state], slots_[successor]);
    AnyValue& old = handles_[successor];
    if (!old.is_tensor() || !old.tensor().exclusive()) old = {};
  }
  // Whether kernels were planned for the exact sizes that the type of slot `s` has.
  bool is_fixed(uint32_t s) const { return is_fixed_[s]; }
  // The sizes of slot `s`, which holds `value`. Planned sizes are written to `storage`, to which the result then
  // refers.
  const Dims& dims_of(uint32_t s, const ir::Value& value, Dims& storage) const;
  // Makes the handle in slot `s` a tensor of these sizes to be written. It takes the memory of its last value if
  // nothing else refers to that memory and it is large enough. A small value that has grown gets twice the room, for it
  // will grow again.
  Status renew(uint32_t s, ElementType type, const Dims& dims);
  // As renew(), for a result of a dynamic kernel. Null if new memory is needed and cannot be had.
  void* renew_for(uint32_t s, ElementType type, std::span<const int64_t> dims);
  // Releases handles after their last use. In a loop small tensors stay, and the next iteration writes into their
  // memory.
  void release(const std::vector<uint32_t>& slots, bool in_loop) {
    if (!slots.empty()) release_handles(slots, in_loop);
  }

  // --- values with spare room, which are not row-major
  bool has_layouts() const { return !layouts_.empty(); }
  // Only for a frame that has_layouts().
  const StrideLayout& layout(uint32_t s) const { return layouts_[s]; }
  void set_layout(uint32_t s, StrideLayout layout) { layouts_[s] = std::move(layout); }
  // Strides of a handle that is not row-major; null for any other slot.
  const Dims* strides_of(uint32_t s) const {
    return layouts_.empty() || layouts_[s].strides.empty() ? nullptr : &layouts_[s].strides;
  }

 private:
  void release_handles(const std::vector<uint32_t>& slots, bool in_loop);
  Result<AnyValue> row_major_copy(const Tensor& tensor, const Dims& strides);

  const plan::Program& program_;
  RunMemory& memory_;
  BufferRef arena_;  // null before the first run
  std::vector<void*> slots_;
  std::vector<void*> first_slots_;      // the slots at the beginning of a run
  std::vector<AnyValue> handles_;       // by slot; used for kHandle only
  std::vector<uint32_t> handle_slots_;  // slots with handles
  std::vector<bool> is_fixed_;          // by slot: kernels were planned for the sizes of its type
  std::vector<StrideLayout> layouts_;   // by slot; empty where nothing grows
};

}  // namespace treadle::run
