#pragma once
// Which loops may run at the same time.
//
//   projection 1, loop 1, projection 2, loop 2     ->     stage 0: rows of projection 1, trips of loop 1
//                                                         stage 1: rows of projection 2, trips of loop 2
//
// Trip t of a layer needs the rows up to t of the layer below it and nothing behind them. So a stretch of the program
// is cut into stages that run in blocks of trips: stage 1 works on a block while stage 0 works on the next one. Loops
// that need nothing of each other (two directions) are the same with no needs at all.
//
// A pipeline is an offer: the instructions stay as they were, and the interpreter takes them where one thread is
// enough. Everything in a pipeline writes memory of its own, and kernels over part of the rows do with each row what
// they do over all of them, so both ways give the same bits.

#include "plan/program.h"

namespace treadle::plan {

// The pipelines of a program whose instructions are complete, outermost code only, in ascending order. `first` and
// `last` are the first and last instruction that a pipeline stands for; nothing is put into the code. Slots for scratch
// are added.
std::vector<Pipeline> find_pipelines(Program& program);

}  // namespace treadle::plan
