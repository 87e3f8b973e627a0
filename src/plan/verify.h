#pragma once
// Checks rules that hold for every program that the planner makes.

#include "base/status.h"
#include "plan/program.h"

namespace treadle::plan {

// Ok, or an internal error that names the instruction, its operand and the broken rule: "instruction 3 (copy), to: s4
// is a constant, which nothing may write". Runs after planning in debug builds (fuzzing among them) and in every test
// that plans. Visits each operand once, and all planned memory by instruction.
Status verify(const Program& program);

}  // namespace treadle::plan
