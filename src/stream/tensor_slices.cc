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

Result<Tensor> concat_axis(std::span<const Tensor> parts, int64_t axis) {
  const auto at = static_cast<size_t>(axis);
  Dims dims = parts.front().dims();
  for (const Tensor& part : parts.subspan(1)) {
    Dims other = part.dims();
    const bool same_rank = other.size() == dims.size();
    const int64_t length = same_rank ? other[at] : 0;
    if (same_rank) other[at] = dims[at];
    if (!same_rank || !(other == dims) || part.type() != parts.front().type()) {
      return error(Code::kInvalidArgument, "{}{} does not continue {}{} along axis {}", name(part.type()),
                   to_string(part.dims()), name(parts.front().type()), to_string(parts.front().dims()), axis);
    }
    dims[at] += length;
  }
  const Rows rows = rows_of(dims, axis);
  const int64_t row = dims[at] * rows.inner;
  TREADLE_ASSIGN(Tensor joined, Tensor::allocate(parts.front().type(), std::move(dims)));
  int64_t offset = 0;
  for (const Tensor& part : parts) {
    const int64_t length = part.dims()[at] * rows.inner;
    for (int64_t i = 0; i < rows.outer; ++i) copy_elements(part, i * length, joined, i * row + offset, length);
    offset += length;
  }
  return joined;
}

void copy_along(const Tensor& from, int64_t begin, int64_t length, Tensor& to, int64_t at, int64_t axis) {
  const Rows rows = rows_of(from.dims(), axis);
  const int64_t size = from.dims()[static_cast<size_t>(axis)], room = to.dims()[static_cast<size_t>(axis)];
  for (int64_t i = 0; i < rows.outer; ++i) {
    copy_elements(from, (i * size + begin) * rows.inner, to, (i * room + at) * rows.inner, length * rows.inner);
  }
}

Result<Tensor> stack(std::span<const Tensor> parts) {
  Dims dims = {static_cast<int64_t>(parts.size())};
  for (const int64_t d : parts.front().dims()) dims.push_back(d);
  TREADLE_ASSIGN(Tensor stacked, Tensor::allocate(parts.front().type(), std::move(dims)));
  int64_t offset = 0;
  for (const Tensor& part : parts) {
    copy_elements(part, 0, stacked, offset, part.element_count());
    offset += part.element_count();
  }
  return stacked;
}

Result<Tensor> zeros(ElementType type, Dims dims) {
  TREADLE_ASSIGN(Tensor tensor, Tensor::allocate(type, std::move(dims)));
  if (!is_string(type) && tensor.element_count() > 0) std::memset(tensor.mutable_raw(), 0, tensor.byte_size());
  return tensor;
}

}  // namespace treadle
