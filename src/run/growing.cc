#include "run/growing.h"

#include "base/in_pieces.h"
#include "kernels/move.h"
#include "op/op_def.h"

namespace treadle::run {

using plan::DynamicNode;
using plan::Growth;

namespace {

// Lines of memory are an odd number of cache lines apart: columns of elements then do not compete for the same few
// places of the cache.
int64_t room_of_lines(int64_t room, size_t width) {
  constexpr int64_t kLine = 64;
  const int64_t in_line = std::max<int64_t>(kLine / static_cast<int64_t>(width), 1);
  return ((room + in_line - 1) / in_line | 1) * in_line;
}

Dims strides_with_room(const Dims& dims, size_t axis, Growth growth, int64_t room) {
  Dims strides(dims.size());
  int64_t step = 1;
  if (growth == Growth::kColumns) {
    strides[axis] = 1;
    step = room;
  }
  for (size_t d = dims.size(); d-- > 0;) {
    if (d == axis && growth == Growth::kColumns) continue;
    strides[d] = step;
    step *= d == axis ? room : dims[d];
  }
  return strides;
}

}  // namespace

Result<bool> Appends::append(const DynamicNode& node) {
  const uint32_t base_slot = node.inputs[0];
  if (base_slot == plan::kNoSlot || !frame_.is_handle(base_slot)) return false;
  const Tensor& base = frame_.handle(base_slot).tensor();
  const int64_t rank = base.rank();
  int64_t axis = node.node->attributes.get_int("axis", 1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return false;
  bool is_outermost = true;
  for (int64_t d = 0; d < axis; ++d) is_outermost &= base.dims()[static_cast<size_t>(d)] == 1;
  if (!is_outermost && node.growth == Growth::kNone) return false;
  Dims dims = base.dims();
  Dims storage;
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    const Dims& more = frame_.dims_of(node.inputs[i], *node.node->inputs[i], storage);
    if (static_cast<int64_t>(more.size()) != rank) return false;
    for (int64_t d = 0; d < rank; ++d) {
      const auto k = static_cast<size_t>(d);
      if (d != axis && more[k] != dims[k]) return false;
    }
    dims[static_cast<size_t>(axis)] += more[static_cast<size_t>(axis)];
  }
  if (is_outermost && node.growth != Growth::kColumns) {
    TREADLE_TRY(append_row_major(node, std::move(dims)));
  } else {
    TREADLE_TRY(append_in_layout(node, static_cast<size_t>(axis), std::move(dims)));
  }
  return true;
}

// Makes the memory of a handle's tensor, which ends with the memory, at least `bytes` long where it lies.
void Appends::grow_in_place(uint32_t s, size_t bytes) {
  Tensor& base = frame_.handle(s).tensor();
  Buffer& memory = *base.buffer().get();
  if (!memory_.grow(memory, memory_.with_room_to_grow(bytes, memory.size()))) return;
  base = Tensor::from_buffer(base.type(), base.dims(), base.buffer());
  frame_.point(s, base.mutable_raw());
}

// Memory of at least `bytes` that begins with the elements of the node's first input: that input's own where it has
// room behind them that nobody has taken.
Result<BufferRef> Appends::row_major_room(const DynamicNode& node, size_t bytes, const Dims& dims) {
  const Tensor& base = frame_.handle(node.inputs[0]).tensor();
  const size_t old_bytes = base.byte_size();
  const bool ends_here = base.buffer() && base.buffer()->writable() && base.raw() == base.buffer()->data() &&
                         old_bytes == base.buffer()->used();
  if (ends_here && bytes > base.buffer()->size()) {
    // What the node made in the trip before is the base of this one.
    if (node.outputs[0] != node.inputs[0]) frame_.handle(node.outputs[0]) = {};
    grow_in_place(node.inputs[0], bytes);
  }
  if (ends_here && bytes <= base.buffer()->size()) return base.buffer();
  TREADLE_ASSIGN(BufferRef buffer, memory_.allocate_growable(memory_.with_room_to_grow(bytes, 0), dims));
  if (old_bytes > 0) copy_in_pieces(buffer->data(), base.raw(), old_bytes);
  TREADLE_TRY(polls_.charge(old_bytes));
  return buffer;
}

Result<std::byte*> Appends::make_room(const DynamicNode& node, Dims dims) {
  const Tensor& base = frame_.handle(node.inputs[0]).tensor();
  const ElementType type = base.type();
  const size_t old_bytes = base.byte_size();
  TREADLE_ASSIGN(const int64_t count, element_count(dims));
  const size_t bytes = static_cast<size_t>(count) * byte_width(type);
  TREADLE_ASSIGN(BufferRef buffer, row_major_room(node, bytes, dims));
  std::byte* const rest = buffer->data() + old_bytes;
  buffer->set_used(bytes);
  const void* data = buffer->data();
  TREADLE_TRY(frame_.set_handle(node.outputs[0],
                                AnyValue(Tensor::from_buffer(type, std::move(dims), std::move(buffer), data))));
  return rest;
}

Status Appends::append_row_major(const DynamicNode& node, Dims dims) {
  const size_t width = byte_width(frame_.handle(node.inputs[0]).tensor().type());
  TREADLE_ASSIGN(std::byte * to, make_room(node, std::move(dims)));
  Dims storage;
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    const Dims& more = frame_.dims_of(node.inputs[i], *node.node->inputs[i], storage);
    const size_t added = static_cast<size_t>(element_count_unchecked(more)) * width;
    if (added > 0) copy_in_pieces(to, frame_.address(node.inputs[i]), added);
    to += added;
  }
  return {};
}

Status Appends::append_in_layout(const DynamicNode& node, size_t axis, Dims dims) {
  const uint32_t base_slot = node.inputs[0];
  const Tensor& base = frame_.handle(base_slot).tensor();
  const ElementType type = base.type();
  const size_t width = byte_width(type);
  TREADLE_TRY(element_count(dims).status());
  // Of such memory, Buffer::used() counts positions along the axis.
  int64_t at = base.dims()[axis];
  StrideLayout layout = frame_.layout(base_slot);
  BufferRef buffer = base.buffer();
  const bool in_place =
      !layout.strides.empty() && dims[axis] <= layout.room && buffer->used() == static_cast<size_t>(at);
  if (!in_place) {
    TREADLE_ASSIGN(buffer, lay_out(base, frame_.strides_of(base_slot), axis, dims, node.growth, layout));
  }
  Dims storage;
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    const Dims& more = frame_.dims_of(node.inputs[i], *node.node->inputs[i], storage);
    if (element_count_unchecked(more) == 0) continue;
    const auto offset = static_cast<size_t>(at * layout.strides[axis]) * width;
    copy_strided(width, more, frame_.address(node.inputs[i]), contiguous_strides(more), buffer->data() + offset,
                 layout.strides);
    at += more[axis];
  }
  buffer->set_used(static_cast<size_t>(dims[axis]));
  TREADLE_TRY(
      frame_.set_handle(node.outputs[0], AnyValue(Tensor::from_buffer(type, std::move(dims), std::move(buffer)))));
  frame_.set_layout(node.outputs[0], std::move(layout));
  return {};
}

Result<BufferRef> Appends::lay_out(const Tensor& base, const Dims* strides, size_t axis, const Dims& dims,
                                   Growth growth, StrideLayout& made) {
  const size_t width = byte_width(base.type());
  Dims larger = dims;
  const auto bytes_with = [&](int64_t room) -> Result<size_t> {
    if (growth == Growth::kColumns) room = room_of_lines(room, width);
    larger[axis] = made.room = std::max<int64_t>(room, 1);
    TREADLE_ASSIGN(const int64_t count, element_count(larger));
    return static_cast<size_t>(count) * width;
  };
  TREADLE_ASSIGN(size_t bytes, bytes_with(dims[axis]));
  const size_t room = memory_.with_room_to_grow(bytes, 0), row = bytes / static_cast<size_t>(made.room);
  if (row > 0 && room > bytes) {
    TREADLE_ASSIGN(bytes, bytes_with(static_cast<int64_t>(room / row)));
  }
  TREADLE_ASSIGN(BufferRef buffer, memory_.allocate_bytes(bytes, dims));
  made.strides = strides_with_room(dims, axis, growth, made.room);
  if (base.element_count() > 0) {
    kernels::CopyPlan copy;
    const Dims row_major = strides ? Dims() : contiguous_strides(base.dims());
    TREADLE_TRY(kernels::prepare_copy(&copy, width, base.dims(), strides ? *strides : row_major, made.strides));
    copy(base.raw(), buffer->data());
    TREADLE_TRY(polls_.charge(base.byte_size()));
  }
  return buffer;
}

}  // namespace treadle::run
