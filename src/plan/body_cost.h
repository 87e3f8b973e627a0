#pragma once
// What an iteration of a loop takes beside its arithmetic: one walk over the instructions of the body. Two sums are
// made of it: what native code saves (expected_gain), and what reports say of an iteration (report/loop_cost.h).

#include <cstdint>
#include <vector>

#include "plan/kernel_code.h"

namespace treadle::plan {

// An instruction of a body. A loop inside is one part with all of its own instructions.
struct BodyPart {
  enum class Kind : uint8_t {
    kGroup,    // elementwise operations that native code can write out: `group`
    kKernel,   // any other kernel: `code`; null where native code has to call it
    kDynamic,  // sizes are known only while it runs
    kLoop,     // `loop`, by its place in Program::loops
    kGlue,     // copies, branches, the back edge
  };
  Kind kind = Kind::kGlue;
  uint32_t pc = 0, loop = 0;
  const ElementwiseCode* group = nullptr;
  const InstructionCode* code = nullptr;
};

std::vector<BodyPart> parts_of_body(const Program& program, const Loop& loop);

// What compiling a loop is expected to cost, and what it is expected to save.
struct NativeGain {
  double compile_ns = 0;  // with the loops inside
  double trip_ns = 0;     // of a trip as the interpreter runs it, without what loops inside do
  double saved_ns = 0;    // of that
  double ahead_ns = 0;    // saved in a trip with the trips of the loops inside: one, where the plan does not know more
};
NativeGain expected_gain(const Program& program, uint32_t loop);

}  // namespace treadle::plan
