#include "run/growing.h"

#include "base/in_pieces.h"
#include "kernels/move.h"
#include "op/axes.h"
#include "op/op_def.h"

namespace treadle::run {

using plan::DynamicNode;
using plan::Growth;

namespace {

// The distance between lines is made an odd number of cache lines. Elements of one column then fall into different sets
// of the cache.
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

Dims one_row(Dims dims, size_t axis) {
  dims[axis] = 1;
  return dims;
}

bool picks(const DynamicNode& node) {
  return node.node->attributes.has("pick_axis");
}

// The first operand that is appended.
size_t first_added(const DynamicNode& node) {
  return picks(node) ? 2 : 1;
}

}  // namespace

Result<bool> Appends::append(const DynamicNode& node) {
  const uint32_t base_slot = node.inputs[0];
  const bool picked = picks(node);
  if (base_slot == plan::kNoSlot || !frame_.is_handle(base_slot)) return false;
  const Tensor& base = frame_.handle(base_slot).tensor();
  const int64_t rank = base.rank();
  const int64_t axis = from_front(node.node->attributes.get_int("axis", 1), rank);
  if (axis < 0 || axis >= rank) return false;
  bool is_outermost = true;
  for (int64_t d = 0; d < axis; ++d) is_outermost &= base.dims()[static_cast<size_t>(d)] == 1;
  if ((picked || !is_outermost) && node.growth == Growth::kNone) return false;
  Dims dims = base.dims();
  Dims storage;
  if (picked) {
    const auto rows = static_cast<size_t>(node.node->attributes.get_int("pick_axis"));
    dims[rows] = frame_.dims_of(node.inputs[1], *node.node->inputs[1], storage)[0];
  }
  for (size_t i = first_added(node); i < node.inputs.size(); ++i) {
    const Dims& more = frame_.dims_of(node.inputs[i], *node.node->inputs[i], storage);
    if (static_cast<int64_t>(more.size()) != rank) return false;
    for (int64_t d = 0; d < rank; ++d) {
      const auto k = static_cast<size_t>(d);
      if (d != axis && more[k] != dims[k]) return false;
    }
    dims[static_cast<size_t>(axis)] += more[static_cast<size_t>(axis)];
  }
  if (picked) {
    TREADLE_TRY(append_to_picked(node, static_cast<size_t>(axis), std::move(dims)));
  } else if (is_outermost && node.growth != Growth::kColumns) {
    TREADLE_TRY(append_row_major(node, std::move(dims)));
  } else {
    TREADLE_TRY(append_in_layout(node, static_cast<size_t>(axis), std::move(dims)));
  }
  return true;
}

// Makes the memory of a handle's tensor at least `bytes` long. The tensor is the last thing in its memory.
void Appends::grow_in_place(uint32_t s, size_t bytes) {
  Tensor& base = frame_.handle(s).tensor();
  Buffer& memory = *base.buffer().get();
  if (!memory_.grow(memory, memory_.with_room_to_grow(bytes, memory.size()))) return;
  base = Tensor::from_buffer(base.type(), base.dims(), base.buffer());
  frame_.point(s, base.mutable_raw());
}

// Memory of at least `bytes` that begins with the elements of the node's first input. It is the input's own memory if
// that has enough room behind the elements and no other append has used the room.
Result<BufferRef> Appends::row_major_room(const DynamicNode& node, size_t bytes, const Dims& dims) {
  const Tensor& base = frame_.handle(node.inputs[0]).tensor();
  const size_t old_bytes = base.byte_size();
  const bool ends_here = base.buffer() && base.buffer()->writable() && base.raw() == base.buffer()->data() &&
                         old_bytes == base.buffer()->used();
  if (ends_here && bytes > base.buffer()->size()) {
    // The result of the iteration before is the base of this one.
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
  TREADLE_TRY(element_count(dims).status());
  // In such memory, Buffer::used() counts positions along the axis.
  int64_t at = base.dims()[axis];
  StrideLayout layout = frame_.layout(base_slot);
  BufferRef buffer = base.buffer();
  const bool in_place =
      !layout.strides.empty() && dims[axis] <= layout.room && buffer->used() == static_cast<size_t>(at);
  if (!in_place) {
    TREADLE_ASSIGN(buffer, room_in_layout(type, axis, dims, node.growth, layout));
    TREADLE_TRY(copy_base(base, frame_.strides_of(base_slot), *buffer.get(), layout));
  }
  return add_in_layout(node, axis, std::move(dims), at, std::move(buffer), std::move(layout));
}

// Writes the appended operands behind the first `at` positions, and puts the result into its slot.
Status Appends::add_in_layout(const DynamicNode& node, size_t axis, Dims dims, int64_t at, BufferRef buffer,
                              StrideLayout layout) {
  const ElementType type = frame_.handle(node.inputs[0]).tensor().type();
  const size_t width = byte_width(type);
  Dims storage;
  for (size_t i = first_added(node); i < node.inputs.size(); ++i) {
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

// As append_in_layout(), with picked rows of the first operand as the base. The second operand lists the rows.
Status Appends::append_to_picked(const DynamicNode& node, size_t axis, Dims dims) {
  const uint32_t base_slot = node.inputs[0];
  // The result of the iteration before is the base of this one.
  if (node.outputs[0] != base_slot) frame_.handle(node.outputs[0]) = {};
  const Tensor& base = frame_.handle(base_slot).tensor();
  const auto picked = static_cast<size_t>(node.node->attributes.get_int("pick_axis"));
  TREADLE_TRY(element_count(dims).status());
  const bool wide = node.node->inputs[1]->type.element == ElementType::kInt64;
  TREADLE_ASSIGN(const PickedRows rows,
                 PickedRows::read(frame_.address(node.inputs[1]), wide, base.dims()[picked], dims[picked]));
  const int64_t at = base.dims()[axis];
  StrideLayout layout = frame_.layout(base_slot);
  const bool in_place = !layout.strides.empty() && dims[axis] <= layout.room && dims[picked] == base.dims()[picked] &&
                        base.exclusive() && base.buffer()->used() == static_cast<size_t>(at);
  BufferRef buffer = base.buffer();
  if (in_place) {
    TREADLE_TRY(move_rows(rows, base, picked, layout.strides));
  } else {
    TREADLE_ASSIGN(buffer, room_in_layout(base.type(), axis, dims, node.growth, layout));
    TREADLE_TRY(copy_rows(rows, base, frame_.strides_of(base_slot), picked, *buffer.get(), layout));
  }
  return add_in_layout(node, axis, std::move(dims), at, std::move(buffer), std::move(layout));
}

Result<BufferRef> Appends::room_in_layout(ElementType type, size_t axis, const Dims& dims, Growth growth,
                                          StrideLayout& made) {
  const size_t width = byte_width(type);
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
  return buffer;
}

Status Appends::copy_base(const Tensor& base, const Dims* strides, Buffer& to, const StrideLayout& layout) {
  if (base.element_count() == 0) return {};
  kernels::CopyPlan copy;
  const Dims row_major = strides ? Dims() : contiguous_strides(base.dims());
  TREADLE_TRY(kernels::prepare_copy(&copy, byte_width(base.type()), base.dims(), strides ? *strides : row_major,
                                    layout.strides));
  copy(base.raw(), to.data());
  return polls_.charge(base.byte_size());
}

Status Appends::copy_rows(const PickedRows& rows, const Tensor& base, const Dims* strides, size_t axis, Buffer& to,
                          const StrideLayout& layout) {
  if (base.element_count() == 0) return {};
  const size_t width = byte_width(base.type());
  const Dims from = strides ? *strides : contiguous_strides(base.dims());
  kernels::CopyPlan copy;
  TREADLE_TRY(kernels::prepare_copy(&copy, width, one_row(base.dims(), axis), from, layout.strides));
  for (size_t i = 0; i < rows.rows().size(); ++i) {
    const size_t source = static_cast<size_t>(rows.rows()[i] * from[axis]) * width;
    copy(static_cast<const std::byte*>(base.raw()) + source,
         to.data() + i * static_cast<size_t>(layout.strides[axis]) * width);
  }
  return polls_.charge(base.byte_size());
}

// Moves rows of `base` in place. Nothing else reads `base`.
Status Appends::move_rows(const PickedRows& rows, const Tensor& base, size_t axis, const Dims& strides) {
  const PickedRows::Moves moves = rows.in_place();
  if (moves.empty() || base.element_count() == 0) return {};
  const size_t width = byte_width(base.type());
  const Dims row = one_row(base.dims(), axis), spare_strides = contiguous_strides(row);
  const size_t step = static_cast<size_t>(strides[axis]) * width, row_bytes = base.byte_size() / rows.rows().size();
  TREADLE_ASSIGN(std::byte* const spare, memory_.scratch(row_bytes));
  kernels::CopyPlan move, save, restore;
  TREADLE_TRY(kernels::prepare_copy(&move, width, row, strides, strides));
  auto* data = const_cast<std::byte*>(static_cast<const std::byte*>(base.raw()));
  const auto place = [&](int64_t i) { return data + static_cast<size_t>(i) * step; };
  for (const auto [to, from] : moves) {
    if (to == rows.from()) {
      if (!save.run) TREADLE_TRY(kernels::prepare_copy(&save, width, row, strides, spare_strides));
      save(place(from), spare);
    } else if (from == rows.from()) {
      if (!restore.run) TREADLE_TRY(kernels::prepare_copy(&restore, width, row, spare_strides, strides));
      restore(spare, place(to));
    } else {
      move(place(from), place(to));
    }
  }
  return polls_.charge(row_bytes * moves.size());
}

}  // namespace treadle::run
