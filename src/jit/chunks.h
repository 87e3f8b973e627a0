#pragma once
// How many elements a vector has.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/cpu.h"

namespace treadle::jit {

// How elements are cut into vectors: the same for all values of one length.
struct Chunks {
  unsigned full;  // lanes of all but the last one
  explicit Chunks(Isa isa) : full(isa == Isa::kAvx512 ? 16 : isa == Isa::kAvx2 ? 8 : 4) {}
  size_t size(int64_t count) const { return static_cast<size_t>((count + full - 1) / full); }
  unsigned lanes(int64_t count, size_t chunk) const {
    return static_cast<unsigned>(std::min<int64_t>(full, count - static_cast<int64_t>(chunk) * full));
  }
  // Instructions over so many elements are written out, longer ones are loops: eight vectors and what stands around
  // them.
  bool is_short(int64_t count) const { return count <= 10 * static_cast<int64_t>(full); }
};

}  // namespace treadle::jit
