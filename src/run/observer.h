#pragma once
// The party that a run tells of each instruction. A run with an observer is interpreted one instruction at a time, so
// the observer can read the values that each instruction has written. Results are the same. A run without an observer
// does no work for it.

#include <cstdint>

#include "base/status.h"

namespace treadle {

namespace plan {
struct Program;
}  // namespace plan

namespace run {

class Frame;
class Loops;

class Observer {
 public:
  virtual ~Observer() = default;

  // A run of `program` begins; its inputs are bound. All arguments live until end().
  virtual void begin(const plan::Program& program, const Frame& frame, const Loops& loops) = 0;
  // Instruction `pc` has run, and `next` is the one to run now. At the first instruction of a body, the states,
  // elements and counter of the iteration are set. An error ends the run; its place is that of `next`.
  virtual Status ran(uint32_t pc, uint32_t next) = 0;
  // The run has ended, or has failed at the instruction behind the last that it told of.
  virtual void end() = 0;
};

}  // namespace run
}  // namespace treadle
