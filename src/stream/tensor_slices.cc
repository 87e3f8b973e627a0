#include "stream/tensor_slices.h"

#include <algorithm>
#include <cstring>

namespace treadle {

namespace {

struct Rows {
  int64_t outer = 1;  // product of the sizes before the axis
  int64_t inner = 1;  // elements per position of the axis
};

Rows rows_of(const Dims& dims, int64_t axis) {
  Rows rows;
  for (int64_t i = 0; i < axis; ++i) rows.outer *= dims[static_cast<size_t>(i)];
  for (size_t i = static_cast<size_t>(axis) + 1; i < dims.size(); ++i) rows.inner *= dims[i];
  return rows;
}

// Copies `count` elements of `from`, starting at element `from_at`, to `to` at `to_at`.
void copy_elements(const Tensor& from, int64_t from_at, Tensor& to, int64_t to_at, int64_t count) {
  if (count == 0) return;
  if (is_string(from.type())) {
    std::copy_n(from.data<String>() + from_at, count, to.mutable_data<String>() + to_at);
    return;
  }
  const auto width = static_cast<int64_t>(byte_width(from.type()));
  std::memcpy(to.mutable_data<char>() + to_at * width, from.data<char>() + from_at * width,
              static_cast<size_t>(count * width));
}

}  // namespace

Result<Tensor> slice_axis(const Tensor& tensor, int64_t axis, int64_t begin, int64_t length) {
  const int64_t size = tensor.dims()[static_cast<size_t>(axis)];
  if (begin == 0 && length == size) return tensor;
  const Rows rows = rows_of(tensor.dims(), axis);
  Dims dims = tensor.dims();
  dims[static_cast<size_t>(axis)] = length;
  if (rows.outer == 1 && !is_string(tensor.type()) && tensor.buffer()) {
    const auto width = static_cast<int64_t>(byte_width(tensor.type()));
    const char* data = tensor.data<char>() + begin * rows.inner * width;
    return Tensor::from_buffer(tensor.type(), std::move(dims), tensor.buffer(), data);
  }
  TREADLE_ASSIGN(Tensor part, Tensor::allocate(tensor.type(), std::move(dims)));
  for (int64_t i = 0; i < rows.outer; ++i) {
    copy_elements(tensor, (i * size + begin) * rows.inner, part, i * length * rows.inner, length * rows.inner);
  }
  return part;
}

bool is_free(const AnyValue& place) {
  return place.is_none() || (place.is_tensor() && place.tensor().exclusive());
}

bool can_take(const AnyValue& place, ElementType type, const Dims& dims) {
  const Tensor& tensor = place.tensor();
  return place.is_tensor() && tensor.exclusive() && tensor.type() == type && tensor.dims() == dims && !is_string(type);
}

Status resize(AnyValue& value, ElementType type, const Dims& dims, int64_t axis, int64_t room) {
  if (can_take(value, type, dims)) return {};
  Tensor& tensor = value.tensor();
  if (room == 0) {
    TREADLE_ASSIGN(value, Tensor::allocate(type, dims));
    return {};
  }
  TREADLE_ASSIGN(const int64_t count, element_count(dims));
  const bool has_room = value.is_tensor() && tensor.exclusive() && !is_string(type) &&
                        tensor.raw() == tensor.buffer()->data() &&
                        static_cast<size_t>(count) * byte_width(type) <= tensor.buffer()->size();
  if (!has_room) {
    Dims most = dims;
    most[static_cast<size_t>(axis)] = std::max(room, dims[static_cast<size_t>(axis)]);
    TREADLE_ASSIGN(value, Tensor::allocate(type, std::move(most)));
  }
  tensor = Tensor::from_buffer(type, dims, tensor.buffer());
  return {};
}

Status copy_into(const AnyValue& from, AnyValue& into) {
  if (!from.is_tensor() || is_string(from.tensor().type())) {
    into = from;
    return {};
  }
  const Tensor& tensor = from.tensor();
  TREADLE_TRY(resize(into, tensor.type(), tensor.dims()));
  copy_elements(tensor, 0, into.tensor(), 0, tensor.element_count());
  return {};
}

Status slice_into(const Tensor& from, int64_t axis, int64_t begin, int64_t length, AnyValue& into, int64_t room) {
  Dims dims = from.dims();
  dims[static_cast<size_t>(axis)] = length;
  TREADLE_TRY(resize(into, from.type(), dims, axis, room));
  copy_along(from, begin, length, into.tensor(), 0, axis);
  return {};
}

Status concat_into(std::span<const Tensor* const> parts, int64_t axis, AnyValue& into, int64_t room) {
  const Tensor& first = *parts.front();
  const auto at = static_cast<size_t>(axis);
  Dims dims = first.dims();
  for (const Tensor* part : parts.subspan(1)) {
    Dims other = part->dims();
    const bool same_rank = other.size() == dims.size();
    const int64_t length = same_rank ? other[at] : 0;
    if (same_rank) other[at] = dims[at];
    if (!same_rank || !(other == dims) || part->type() != first.type()) {
      return error(Code::kInvalidArgument, "{}{} does not continue {}{} along axis {}", name(part->type()),
                   to_string(part->dims()), name(first.type()), to_string(first.dims()), axis);
    }
    dims[at] += length;
  }
  TREADLE_TRY(resize(into, first.type(), dims, axis, room));
  int64_t offset = 0;
  for (const Tensor* part : parts) {
    const int64_t length = part->dims()[at];
    copy_along(*part, 0, length, into.tensor(), offset, axis);
    offset += length;
  }
  return {};
}

void copy_along(const Tensor& from, int64_t begin, int64_t length, Tensor& to, int64_t at, int64_t axis) {
  const Rows rows = rows_of(from.dims(), axis);
  const int64_t size = from.dims()[static_cast<size_t>(axis)], room = to.dims()[static_cast<size_t>(axis)];
  for (int64_t i = 0; i < rows.outer; ++i) {
    copy_elements(from, (i * size + begin) * rows.inner, to, (i * room + at) * rows.inner, length * rows.inner);
  }
}

void copy_block(const Tensor& from, const std::array<Positions, 2>& block, Tensor& to,
                const std::array<int64_t, 2>& at) {
  const size_t a = block[0].axis < block[1].axis ? 0 : 1, b = 1 - a;  // the outer axis, the inner axis
  const auto outer = static_cast<size_t>(block[a].axis), inner = static_cast<size_t>(block[b].axis);
  const Rows before = rows_of(from.dims(), block[a].axis), behind = rows_of(from.dims(), block[b].axis);
  int64_t between = 1;
  for (size_t i = outer + 1; i < inner; ++i) between *= from.dims()[i];
  for (int64_t o = 0; o < before.outer; ++o) {
    for (int64_t i = 0; i < block[a].length; ++i) {
      for (int64_t m = 0; m < between; ++m) {
        const int64_t source = (o * from.dims()[outer] + block[a].begin + i) * between + m;
        const int64_t target = (o * to.dims()[outer] + at[a] + i) * between + m;
        copy_elements(from, (source * from.dims()[inner] + block[b].begin) * behind.inner, to,
                      (target * to.dims()[inner] + at[b]) * behind.inner, block[b].length * behind.inner);
      }
    }
  }
}

void copy_row(const Tensor& from, Tensor& to, int64_t at) {
  copy_elements(from, 0, to, at * from.element_count(), from.element_count());
}

Result<Tensor> zeros(ElementType type, Dims dims) {
  TREADLE_ASSIGN(Tensor tensor, Tensor::allocate(type, std::move(dims)));
  if (!is_string(type) && tensor.element_count() > 0) std::memset(tensor.mutable_raw(), 0, tensor.byte_size());
  return tensor;
}

}  // namespace treadle
