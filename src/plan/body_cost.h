#pragma once
// The cost of an iteration beside its arithmetic, from one walk over the instructions of the body. Two sums use it: the
// gain of native code (expected_gain), and the costs in reports (report/loop_cost.h).

#include <cstdint>
#include <vector>

#include "plan/kernel_code.h"

namespace treadle::plan {

// An instruction of a body. An inner loop is one part, with all its instructions.
struct BodyPart {
  enum class Kind : uint8_t {
    kGroup,    // elementwise operations that native code can inline: `group`
    kKernel,   // any other kernel: `code`; null if native code has to call the kernel
    kDynamic,  // sizes are unknown at planning
    kLoop,     // `loop`, its index in Program::loops
    kGlue,     // copies, branches, the back edge
  };
  Kind kind = Kind::kGlue;
  uint32_t pc = 0, loop = 0;
  const ElementwiseCode* group = nullptr;
  const InstructionCode* code = nullptr;
};

std::vector<BodyPart> parts_of_body(const Program& program, const Loop& loop);

// The expected cost of compiling a loop, and the expected gain.
struct NativeGain {
  double compile_ns = 0;    // inner loops included
  double iteration_ns = 0;  // time of an iteration in the interpreter, without inner loops
  double saved_ns = 0;      // the part of iteration_ns that native code saves
  double ahead_ns = 0;      // with inner loops; one of unknown length counts with one iteration
};
NativeGain expected_gain(const Program& program, uint32_t loop);

}  // namespace treadle::plan
