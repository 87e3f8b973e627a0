#pragma once
// Where the values of a native loop live: in registers, in memory behind a pointer that the code holds, or in memory
// that is found through the table of slots every time.

#include <vector>

#include "jit/steps.h"
#include "plan/native.h"

namespace treadle::jit {

enum class PlaceKind : uint8_t {
  kUnused,
  kRegister,  // in vectors of the function; nobody else looks at it while the function runs
  kPointer,   // memory; its address is known to the function alone, or does not change
  kTable,     // memory; its address changes and others look it up in the table of slots
};

struct Place {
  PlaceKind kind = PlaceKind::kUnused;
  ElementType type = ElementType::kUndefined;  // kRegister
  int64_t count = 0;                           // kRegister: elements
  bool moves = false;                          // kPointer: the address changes
};

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

// What is done with an instruction.
enum class Written : uint8_t { kInline, kCall };

struct Layout {
  std::vector<Place> places;      // by slot
  std::vector<Written> written;   // by instruction of the loop, from its first one on
  std::vector<bool> inline_loop;  // by loop of the program: begin, step and end are written out
};

Layout lay_out(const plan::NativeRequest& request, const Chunks& chunks);

}  // namespace treadle::jit
