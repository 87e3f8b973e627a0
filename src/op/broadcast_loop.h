#pragma once
// Walks a broadcast element by element, for operators that are too rare or too slow per element for a row kernel
// (strings).

#include "base/stop.h"
#include "type/shape.h"

namespace treadle {

// Calls fn(i, offsets) for each element i of a result of `dims`, in row-major order. offsets[k] is the position of the
// element in operand k, by the operand's strides (0 along broadcast axes). fn returns a rough estimate of the time that
// it took, in nanoseconds.
template <size_t kOperands, class Fn>
Status for_each_broadcast(const Dims& dims, const Dims (&strides)[kOperands], Fn&& fn) {
  StopPoll stop;
  const int64_t count = element_count_unchecked(dims);
  Dims index(dims.size(), 0);
  int64_t offsets[kOperands] = {};
  for (int64_t i = 0; i < count; ++i) {
    if (stop.after(fn(i, offsets))) return stopped();
    for (size_t d = dims.size(); d-- > 0;) {
      for (size_t k = 0; k < kOperands; ++k) offsets[k] += strides[k][d];
      if (++index[d] < dims[d]) break;
      for (size_t k = 0; k < kOperands; ++k) offsets[k] -= strides[k][d] * dims[d];
      index[d] = 0;
    }
  }
  return {};
}

// Strides of a row-major operand of sizes `dims`, broadcast to `result`.
inline Dims broadcast_strides(const Dims& dims, const Dims& result) {
  const Dims own = contiguous_strides(dims);
  const size_t skip = result.size() - dims.size();
  Dims strides(result.size(), 0);
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != 1) strides[skip + i] = own[i];
  }
  return strides;
}

// The sizes of two shapes after broadcasting.
inline Result<Dims> broadcast_dims(const Dims& a, const Dims& b) {
  if (a == b || b.empty()) return a;
  if (a.empty()) return b;
  TREADLE_ASSIGN(const Shape shape, broadcast(to_shape(a), to_shape(b)));
  return known_dims(shape);
}

}  // namespace treadle
