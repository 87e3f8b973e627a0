#pragma once
// Where the values of a native loop live: in registers, in memory behind a pointer that the code holds, or in memory
// that is found through the table of slots every time.

#include <vector>

#include "jit/code_shape.h"
#include "plan/native.h"

namespace treadle::jit {

enum class LocationKind : uint8_t {
  kUnused,
  kRegister,  // in vectors of the function; nobody else looks at it while the function runs
  kPointer,   // memory; its address is known to the function alone, or does not change
  kTable,     // memory; its address changes and others look it up in the table of slots
};

struct Location {
  LocationKind kind = LocationKind::kUnused;
  ElementType type = ElementType::kUndefined;  // kRegister
  int64_t count = 0;                           // kRegister: elements
  bool moves = false;                          // kPointer: the address changes
};

// What is done with an instruction.
enum class Written : uint8_t { kInline, kCall };

struct Layout {
  std::vector<Location> locations;  // by slot
  std::vector<Written> written;     // by instruction of the loop, from its first one on
  std::vector<bool> inline_loop;    // by loop of the program: begin, step and end are written out
  CodeShape shape;                  // of elementwise instructions that are written out
};

Layout lay_out(const plan::NativeRequest& request, const Chunks& chunks);

}  // namespace treadle::jit
