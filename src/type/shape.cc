#include "type/shape.h"

namespace treadle {

namespace {
constexpr int64_t kMaxElements = int64_t{1} << 62;
}

Result<int64_t> element_count(std::span<const int64_t> dims) {
  int64_t count = 1;
  bool overflow = false, empty = false;
  for (int64_t d : dims) {
    if (d < 0)
      return error(Code::kInvalidArgument, "shape {} has a negative size, expected sizes of at least 0",
                   to_string(Dims(dims)));
    empty |= d == 0;
    if (d == 0) continue;
    overflow |= __builtin_mul_overflow(count, d, &count) || count > kMaxElements;
    if (overflow) count = 1;
  }
  if (overflow) return error(Code::kLimit, "shape {} has more elements than can be addressed", to_string(Dims(dims)));
  return empty ? int64_t{0} : count;
}

int64_t element_count_unchecked(const Dims& dims) {
  return element_count_unchecked(dims.span());
}

Dim element_count(const Shape& shape) {
  Dim count = 1;
  for (const Dim& d : shape) {
    if (d.is_known(0)) return 0;
    count = count * d;
  }
  return count;
}

int64_t known_element_count(const Shape& shape) {
  const Result<int64_t> count = element_count(known_dims(shape));
  return count.ok() ? *count : kMaxElements;
}

namespace {

// Wraps on overflow. Sizes of an existing tensor do not overflow, since larger products are refused.
int64_t wrapping_product(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

}  // namespace

Dims contiguous_strides(const Dims& dims) {
  Dims strides(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride = wrapping_product(stride, dims[i]);
  }
  return strides;
}

bool is_contiguous(const Dims& dims, const Dims& strides) {
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    if (dims[i] == 0) return true;
    if (dims[i] != 1 && strides[i] != stride) return false;
    stride = wrapping_product(stride, dims[i]);
  }
  return true;
}

bool is_known(const Shape& shape) {
  for (const Dim& d : shape) {
    if (!d.is_known()) return false;
  }
  return true;
}

Dims known_dims(const Shape& shape) {
  Dims dims;
  dims.reserve(shape.size());
  for (const Dim& d : shape) dims.push_back(d.value());
  return dims;
}

Shape to_shape(const Dims& dims) {
  Shape shape;
  shape.reserve(dims.size());
  for (int64_t d : dims) shape.emplace_back(d);
  return shape;
}

bool same(const Shape& a, const Shape& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!same(a[i], b[i])) return false;
  }
  return true;
}

bool identical(const Shape& a, const Shape& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!identical(a[i], b[i])) return false;
  }
  return true;
}

std::string to_string(const Dims& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += (i ? "," : "") + std::to_string(dims[i]);
  return text + "]";
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? "," : "") + shape[i].to_string();
  return text + "]";
}

namespace {

// The axis of `longer` at which known sizes contradict each other; its rank if there is none.
size_t find_mismatch(const Shape& longer, const Shape& shorter) {
  const size_t skip = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    const Dim &x = longer[skip + i], &y = shorter[i];
    if (x.is_known() && y.is_known() && x.value() != y.value() && x.value() != 1 && y.value() != 1) return skip + i;
  }
  return longer.size();
}

void take_sizes(Shape& longer, const Shape& shorter) {
  const size_t skip = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    Dim& x = longer[skip + i];
    const Dim& y = shorter[i];
    if (y.is_known(1) || same(x, y)) continue;
    if (x.is_known(1) || y.is_known()) {
      x = y;  // a symbolic x is 1 or equals y
    } else if (!x.is_known()) {
      x = Dim::unknown();
    }
  }
}

}  // namespace

Status broadcast_into(Shape& a, const Shape& b) {
  const bool grows = a.size() < b.size();
  const Shape &longer = grows ? b : a, &shorter = grows ? a : b;
  if (const size_t axis = find_mismatch(longer, shorter); axis < longer.size()) {
    return error(Code::kInvalidArgument,
                 "shapes {} and {} do not broadcast: {} against {} at axis {}, expected equal sizes or 1", to_string(a),
                 to_string(b), longer[axis].value(), shorter[axis - (longer.size() - shorter.size())].value(), axis);
  }
  if (grows) {
    Shape result = b;
    take_sizes(result, a);
    a = std::move(result);
  } else {
    take_sizes(a, b);
  }
  return {};
}

Result<Shape> broadcast(const Shape& a, const Shape& b) {
  Shape out = a;
  TREADLE_TRY(broadcast_into(out, b));
  return out;
}

Result<int64_t> normalize_axis(int64_t axis, int64_t rank, std::string_view what) {
  if (rank == 0) {
    return error(Code::kInvalidArgument, "{} is {}, expected an input with axes, found a scalar", what, axis);
  }
  if (axis < -rank || axis >= rank) {
    return error(Code::kInvalidArgument, "{} is {}, expected {} to {} for rank {}", what, axis, -rank, rank - 1, rank);
  }
  return axis < 0 ? axis + rank : axis;
}

}  // namespace treadle
