#pragma once
// Values to which a loop appends. The memory of such a value has spare room behind the elements, or along an inner axis
// (plan/growing.h). The first append to a value writes new elements into the spare room. A second append to the same
// value, or an append without enough room, moves the value to memory of twice the size. PickedConcat appends to picked
// rows of a value; if nothing else reads the rows, they are moved within their memory.

#include "run/frame.h"
#include "run/picked_rows.h"
#include "run/polls.h"

namespace treadle::run {

class Appends {
 public:
  // All must outlive the object.
  Appends(Frame& frame, RunMemory& memory, Polls& polls) : frame_(frame), memory_(memory), polls_(polls) {}

  // Runs a node that concatenates tensors by appending to the first. False: the node is no such case, and nothing has
  // changed.
  Result<bool> append(const plan::DynamicNode& node);
  // Makes room behind a row-major first operand, whose elements are the beginning of the result of sizes `dims`.
  // Returns the address at which the appended elements go.
  Result<std::byte*> make_room(const plan::DynamicNode& node, Dims dims);

 private:
  void grow_in_place(uint32_t s, size_t bytes);
  Result<BufferRef> row_major_room(const plan::DynamicNode& node, size_t bytes, const Dims& dims);
  Status append_row_major(const plan::DynamicNode& node, Dims dims);
  Status append_in_layout(const plan::DynamicNode& node, size_t axis, Dims dims);
  Status append_to_picked(const plan::DynamicNode& node, size_t axis, Dims dims);
  Status add_in_layout(const plan::DynamicNode& node, size_t axis, Dims dims, int64_t at, BufferRef buffer,
                       StrideLayout layout);
  // Memory with room for twice the elements of `dims`.
  Result<BufferRef> room_in_layout(ElementType type, size_t axis, const Dims& dims, plan::Growth growth,
                                   StrideLayout& made);
  // Copies the elements of `base`, or of picked rows of it, to the layout. `strides` of `base`: null for row-major.
  Status copy_base(const Tensor& base, const Dims* strides, Buffer& to, const StrideLayout& layout);
  Status copy_rows(const PickedRows& rows, const Tensor& base, const Dims* strides, size_t axis, Buffer& to,
                   const StrideLayout& layout);
  Status move_rows(const PickedRows& rows, const Tensor& base, size_t axis, const Dims& strides);

  Frame& frame_;
  RunMemory& memory_;
  Polls& polls_;
};

}  // namespace treadle::run
