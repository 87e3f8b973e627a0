#pragma once
// Values to which a loop appends. The memory of such a value has spare room behind the elements, or along an inner axis
// (plan/growing.h). Appending writes new elements into the spare room if nobody has appended to the same value before;
// otherwise the value moves to memory of twice the size. Where the new elements go behind picked rows of the value
// (PickedConcat), rows that nobody else reads move where they lie.

#include "run/frame.h"
#include "run/picked_rows.h"
#include "run/polls.h"

namespace treadle::run {

class Appends {
 public:
  // All must outlive the object.
  Appends(Frame& frame, RunMemory& memory, Polls& polls) : frame_(frame), memory_(memory), polls_(polls) {}

  // Runs a node that joins tensors along an axis by appending to the first. False where the node is no such case, and
  // nothing has happened.
  Result<bool> append(const plan::DynamicNode& node);
  // Makes room behind a row-major first operand, which is then the beginning of the result of sizes `dims`. Returns
  // where the rest of the result goes.
  Result<std::byte*> make_room(const plan::DynamicNode& node, Dims dims);

 private:
  void grow_in_place(uint32_t s, size_t bytes);
  Result<BufferRef> row_major_room(const plan::DynamicNode& node, size_t bytes, const Dims& dims);
  Status append_row_major(const plan::DynamicNode& node, Dims dims);
  Status append_in_layout(const plan::DynamicNode& node, size_t axis, Dims dims);
  Status append_to_picked(const plan::DynamicNode& node, size_t axis, Dims dims);
  Status add_in_layout(const plan::DynamicNode& node, size_t axis, Dims dims, int64_t at, BufferRef buffer,
                       StrideLayout layout);
  // Memory with room for twice the elements that `dims` says.
  Result<BufferRef> room_in_layout(ElementType type, size_t axis, const Dims& dims, plan::Growth growth,
                                   StrideLayout& made);
  // The elements of `base`, or those of rows of it, to where the layout says. `strides`: null: it is row-major.
  Status copy_base(const Tensor& base, const Dims* strides, Buffer& to, const StrideLayout& layout);
  Status copy_rows(const PickedRows& rows, const Tensor& base, const Dims* strides, size_t axis, Buffer& to,
                   const StrideLayout& layout);
  Status move_rows(const PickedRows& rows, const Tensor& base, size_t axis, const Dims& strides);

  Frame& frame_;
  RunMemory& memory_;
  Polls& polls_;
};

}  // namespace treadle::run
