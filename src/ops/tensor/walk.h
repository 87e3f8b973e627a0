#pragma once
// Loops over index spaces of any rank.

#include <cstdint>
#include <span>

#include "base/status.h"

namespace treadle::tensor_ops {

inline constexpr size_t kMaxWalkRank = 16;

inline Status check_walk_rank(int64_t rank) {
  if (rank <= static_cast<int64_t>(kMaxWalkRank)) return {};
  return error(Code::kLimit, "rank {} is more than the {} that this operator takes", rank, kMaxWalkRank);
}

// Calls fn(offset) for each index in row-major order, offset = sum(index * strides); stops at the first result other
// than 0 and returns it. Allocates nothing.
template <class Fn>
uint32_t walk(std::span<const int64_t> dims, std::span<const int64_t> strides, Fn&& fn) {
  int64_t at[kMaxWalkRank] = {};
  for (int64_t d : dims) {
    if (d == 0) return 0;
  }
  for (int64_t offset = 0;;) {
    if (const uint32_t failure = fn(offset)) return failure;
    size_t axis = dims.size();
    for (; axis-- > 0;) {
      offset += strides[axis];
      if (++at[axis] < dims[axis]) break;
      offset -= strides[axis] * dims[axis];
      at[axis] = 0;
    }
    if (axis > dims.size()) return 0;  // wrapped below the outermost axis
  }
}

// An element of W bytes.
template <size_t W>
struct Bytes {
  std::byte bytes[W];
};

// Known indices into a vector, as GatherND and ScatterND have them: one coordinate each.
inline std::optional<Shape> known_coordinates(const InferContext& c, size_t i) {
  const Tensor* t = c.value(i);
  const bool single = t && t->rank() > 0 && t->rank() <= 2 && t->dims().back() == 1;
  if (!single || t->element_count() > 64) return std::nullopt;
  Shape indices;
  for (const int64_t index : t->to_int64s()) indices.emplace_back(index);
  return indices;
}

// An index that may count from the end, as a position in [0, size); -1 when it is out of range.
inline int64_t checked_index(int64_t index, int64_t size) {
  const int64_t i = index < 0 ? index + size : index;
  return static_cast<uint64_t>(i) < static_cast<uint64_t>(size) ? i : -1;
}

}  // namespace treadle::tensor_ops
