// Values to which a loop appends. The memory of such a value has spare room behind the elements, or along an inner axis
// (plan/growing.h). Appending writes new elements into the spare room if nobody has appended to the same value before;
// otherwise the value moves to memory of twice the size.
#include <cstring>

#include "base/in_pieces.h"
#include "kernels/move.h"
#include "op/op_def.h"
#include "run/context.h"

namespace treadle::run {

using plan::DynamicNode;
using plan::Growth;
using plan::Storage;

namespace {

template <class T>
void scatter_line(const std::byte* from, std::byte* to, int64_t count, int64_t stride) {
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(to + i * stride * int64_t{sizeof(T)}, from + i * int64_t{sizeof(T)}, sizeof(T));
  }
}

// Row-major elements to where strides say. Few of them, so nothing is prepared.
const std::byte* scatter(const std::byte* from, std::byte* to, std::span<const int64_t> dims,
                         std::span<const int64_t> strides, size_t width) {
  const int64_t count = dims.empty() ? 1 : dims[0];
  const int64_t stride = dims.empty() ? 1 : strides[0];
  const auto bytes = static_cast<int64_t>(width);
  if (dims.size() > 1) {
    for (int64_t i = 0; i < count; ++i) {
      from = scatter(from, to + i * stride * bytes, dims.subspan(1), strides.subspan(1), width);
    }
    return from;
  }
  if (stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(count) * width);
  } else if (width == 4) {
    scatter_line<uint32_t>(from, to, count, stride);
  } else if (width == 8) {
    scatter_line<uint64_t>(from, to, count, stride);
  } else {
    for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * stride * bytes, from + i * bytes, width);
  }
  return from + count * bytes;
}

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

Result<bool> Context::append(const DynamicNode& node) {
  const uint32_t base_slot = node.inputs[0];
  if (base_slot == plan::kNoSlot || program_->slots[base_slot].storage != Storage::kHandle) return false;
  const Tensor& base = handles_[base_slot].tensor();
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
    const Dims& more = dims_of(node.inputs[i], *node.node->inputs[i], storage);
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
    TREADLE_TRY(append_spread(node, static_cast<size_t>(axis), std::move(dims)));
  }
  return true;
}

size_t Context::with_room_to_grow(size_t bytes, size_t have) {
  const size_t want = bytes <= SIZE_MAX / 2 ? 2 * bytes : bytes;
  if (account_->fits(want - have)) return want;
  spare_.clear();
  const size_t most = have + account_->room();
  if (most >= want) return want;
  // Half of what is left: the limit is come close to in a few steps, and others find something as well.
  return most > bytes ? bytes + (most - bytes) / 2 : bytes;
}

void Context::grow_in_place(uint32_t s, size_t bytes) {
  Tensor& base = handles_[s].tensor();
  Buffer& memory = *base.buffer().get();
  const size_t room = with_room_to_grow(bytes, memory.size());
  if (!account_->fits(room - memory.size()) || !MemoryAccount::grow(*account_, memory, room)) return;
  base = Tensor::from_buffer(base.type(), base.dims(), base.buffer());
  slots_[s] = base.mutable_raw();
}

Status Context::append_row_major(const DynamicNode& node, Dims dims) {
  const Tensor& base = handles_[node.inputs[0]].tensor();
  TREADLE_ASSIGN(const int64_t count, element_count(dims));
  const size_t bytes = static_cast<size_t>(count) * byte_width(base.type());
  const size_t old_bytes = base.byte_size();
  const bool ends_here = base.buffer() && base.buffer()->writable() && base.raw() == base.buffer()->data() &&
                         old_bytes == base.buffer()->used();
  if (ends_here && bytes > base.buffer()->size()) {
    // What the node made in the trip before is the base of this one.
    if (node.outputs[0] != node.inputs[0]) handles_[node.outputs[0]] = {};
    grow_in_place(node.inputs[0], bytes);
  }
  BufferRef buffer = base.buffer();
  if (!ends_here || bytes > buffer->size()) {
    const size_t room = with_room_to_grow(bytes, 0);
    TREADLE_TRY(check_memory(room, dims));
    ++allocations_;
    buffer = MemoryAccount::allocate_growable(account_, room);
    if (!buffer) return error(Code::kLimit, "no memory for a tensor of shape {} ({} bytes)", to_string(dims), room);
    if (old_bytes > 0) copy_in_pieces(buffer->data(), base.raw(), old_bytes);
    TREADLE_TRY(charge(old_bytes));
  }
  std::byte* to = buffer->data() + old_bytes;
  Dims storage;
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    const Dims& more = dims_of(node.inputs[i], *node.node->inputs[i], storage);
    const size_t added = static_cast<size_t>(element_count_unchecked(more)) * byte_width(base.type());
    if (added > 0) copy_in_pieces(to, slots_[node.inputs[i]], added);
    to += added;
  }
  buffer->set_used(bytes);
  const ElementType type = base.type();
  const void* data = buffer->data();
  return set_handle(node.outputs[0], AnyValue(Tensor::from_buffer(type, std::move(dims), std::move(buffer), data)));
}

Status Context::append_spread(const DynamicNode& node, size_t axis, Dims dims) {
  const uint32_t base_slot = node.inputs[0];
  const Tensor& base = handles_[base_slot].tensor();
  const ElementType type = base.type();
  const size_t width = byte_width(type);
  TREADLE_TRY(element_count(dims).status());
  // Of such memory, Buffer::used() counts positions along the axis.
  int64_t at = base.dims()[axis];
  StrideLayout spread = layouts_[base_slot];
  BufferRef buffer = base.buffer();
  const bool in_place =
      !spread.strides.empty() && dims[axis] <= spread.room && buffer->used() == static_cast<size_t>(at);
  if (!in_place) {
    TREADLE_ASSIGN(buffer, spread_out(base, strides_of(base_slot), axis, dims, node.growth, spread));
  }
  Dims storage;
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    const Dims& more = dims_of(node.inputs[i], *node.node->inputs[i], storage);
    if (element_count_unchecked(more) == 0) continue;
    const auto offset = static_cast<size_t>(at * spread.strides[axis]) * width;
    scatter(static_cast<const std::byte*>(slots_[node.inputs[i]]), buffer->data() + offset, more, spread.strides,
            width);
    at += more[axis];
  }
  buffer->set_used(static_cast<size_t>(dims[axis]));
  TREADLE_TRY(set_handle(node.outputs[0], AnyValue(Tensor::from_buffer(type, std::move(dims), std::move(buffer)))));
  layouts_[node.outputs[0]] = std::move(spread);
  return {};
}

Result<BufferRef> Context::spread_out(const Tensor& base, const Dims* strides, size_t axis, const Dims& dims,
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
  const size_t room = with_room_to_grow(bytes, 0), row = bytes / static_cast<size_t>(made.room);
  if (row > 0 && room > bytes) {
    TREADLE_ASSIGN(bytes, bytes_with(static_cast<int64_t>(room / row)));
  }
  TREADLE_ASSIGN(BufferRef buffer, allocate_bytes(bytes, dims));
  made.strides = strides_with_room(dims, axis, growth, made.room);
  if (base.element_count() > 0) {
    kernels::CopyPlan copy;
    const Dims row_major = strides ? Dims() : contiguous_strides(base.dims());
    TREADLE_TRY(kernels::prepare_copy(&copy, width, base.dims(), strides ? *strides : row_major, made.strides));
    copy(base.raw(), buffer->data());
    TREADLE_TRY(charge(base.byte_size()));
  }
  return buffer;
}

Result<AnyValue> Context::gathered(const Tensor& tensor, const Dims& strides) {
  TREADLE_ASSIGN(Tensor copy, allocate(tensor.type(), tensor.dims()));
  if (tensor.element_count() > 0) {
    kernels::CopyPlan plan;
    TREADLE_TRY(kernels::prepare_copy(&plan, byte_width(tensor.type()), tensor.dims(), strides,
                                      contiguous_strides(tensor.dims())));
    plan(tensor.raw(), copy.mutable_raw());
  }
  return AnyValue(std::move(copy));
}

}  // namespace treadle::run
