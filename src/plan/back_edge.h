#pragma once
// The order of the steps from the end of an iteration to the beginning of the next, defined in this one place. An
// `Edge` does each step in its own way: the interpreter moves memory (run::HandOn), a loop that is one chain adds steps
// (chain_loops.cc), a native loop emits code (jit/loops.cc).
//
//   edge.ask(continues)    the body's condition, while states still are where the body left them
//   edge.put_row(row)      a row of a scan output
//   edge.exchange(swap)    a state and its successor change places
//   edge.advance(pointer)  to the next row
//   edge.count(counter)    the iteration is over; the slot is kNoSlot if the counter has no reader
//
// The steps after these are the same for all as well, but are not taken in every iteration: whether another iteration
// runs, then its price (poll), a new strip of rows or room for them. The interpreter takes them for as many iterations
// as it runs at once (run/loop_runner.cc), native code for each iteration, in registers.

#include "plan/program.h"

namespace treadle::plan {

template <class Edge>
[[gnu::always_inline]] inline void take_back_edge(const Loop& loop, Edge&& edge) {
  if (loop.continues != kNoSlot) edge.ask(loop.continues);
  for (const LoopStep::Row& row : loop.step.rows) edge.put_row(row);
  for (const LoopStep::Swap& swap : loop.step.swaps) edge.exchange(swap);
  for (const LoopStep::Advance& pointer : loop.step.advances) edge.advance(pointer);
  edge.count(loop.counter);
}

}  // namespace treadle::plan
