#pragma once
// The number of elements in a vector.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/cpu.h"

namespace treadle::jit {

// The division of elements into vectors; the same for all values of one length.
struct Chunks {
  unsigned full;  // lanes of every vector but the last
  explicit Chunks(Isa isa) : full(isa == Isa::kAvx512 ? 16 : isa == Isa::kAvx2 ? 8 : 4) {}
  size_t size(int64_t count) const { return static_cast<size_t>((count + full - 1) / full); }
  unsigned lanes(int64_t count, size_t chunk) const {
    return static_cast<unsigned>(std::min<int64_t>(full, count - static_cast<int64_t>(chunk) * full));
  }
  // Up to so many elements (eight vectors and a few around them), instructions are written out; longer ones are loops.
  bool is_short(int64_t count) const { return count <= 10 * static_cast<int64_t>(full); }
};

}  // namespace treadle::jit
