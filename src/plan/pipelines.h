#pragma once
// Finds loops that may run at the same time.
//
//   projection 1, loop 1, projection 2, loop 2     ->     stage 0: rows of projection 1, iterations of loop 1
//                                                         stage 1: rows of projection 2, iterations of loop 2
//
// Iteration t of a layer needs the rows of the layer below up to t, and no later ones. So a stretch of the program is
// cut into stages that run in strips of iterations: stage 1 works on a strip while stage 0 works on the next one. Loops
// that do not need each other (two directions) become stages without needs.
//
// A pipeline is an offer: the instructions stay, and the interpreter takes them if one thread is enough. Every value of
// a pipeline has memory of its own, and a kernel computes each row of a strip as it computes the row among all rows, so
// both ways give the same bits.

#include "plan/program.h"

namespace treadle::plan {

// The pipelines of a complete program, outside of loops, in ascending order. `first` and `last` are the instructions
// that a pipeline replaces; no instruction is inserted. Adds slots for scratch.
std::vector<Pipeline> find_pipelines(Program& program);

}  // namespace treadle::plan
