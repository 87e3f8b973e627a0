#pragma once
// The locations of the values of a native loop: registers, memory behind a pointer that the code holds, or memory that
// is looked up in the table of slots each time.

#include <vector>

#include "jit/code_shape.h"
#include "plan/native.h"

namespace treadle::jit {

enum class LocationKind : uint8_t {
  kUnused,
  kRegister,  // in vectors of the function; kernels and the engine do not access it while the function runs
  kPointer,   // memory; only the function knows its address, or the address never changes
  kTable,     // memory; its address changes, and kernels and the engine look it up in the table of slots
};

struct Location {
  LocationKind kind = LocationKind::kUnused;
  ElementType type = ElementType::kUndefined;  // kRegister
  int64_t count = 0;                           // kRegister: number of elements
  bool moves = false;                          // kPointer: the address changes
};

// How an instruction is written.
enum class Written : uint8_t { kInline, kCall };

struct Layout {
  std::vector<Location> locations;  // by slot
  std::vector<Written> written;     // by instruction, from the loop's first one on
  std::vector<bool> inline_loop;    // by loop of the program: begin, back edge and end are inline
  CodeShape shape;                  // of the inlined elementwise instructions
};

Layout lay_out(const plan::NativeRequest& request, const Chunks& chunks);

}  // namespace treadle::jit
