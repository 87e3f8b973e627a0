#pragma once
// From the end of one trip to the beginning of the next: the one place that says in which order. Whoever runs loops
// takes part as an `Edge` that does each thing by its own means: the interpreter moves memory (run::HandOn), a loop
// that is one chain gets steps (chain_loops.cc), a native loop gets code (jit/loops.cc).
//
//   edge.ask(continues)    the body's condition, while states still are where the body left them
//   edge.put_row(row)      a row of a scan output
//   edge.exchange(swap)    a state and its successor change places
//   edge.advance(pointer)  to the next row
//   edge.count(counter)    the trip is over; the slot is kNoSlot where nobody reads the counter
//
// What follows is the same for all as well, but is not done in every trip: whether there is another trip, then its
// price (poll), a new block of rows or room for them. The interpreter does that for as many trips as are granted at
// once (run/trips.cc), native code trip by trip, in registers.

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
