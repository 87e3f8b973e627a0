#pragma once
// Whether runs of a program keep real time: a run like an earlier one asks for no memory, takes no lock, and makes no
// system call.

#include <string>

#include "plan/program.h"

namespace treadle::run {

class NativeLoops;

// Why runs of the program may not keep real time, with the first node that is the reason; empty if they do.
// `native`: null without native code.
std::string breaks_realtime(const plan::Program& program, const NativeLoops* native);

// The first node whose memory is known only in the run, and why; empty if all memory is planned.
std::string asks_for_memory(const plan::Program& program);

}  // namespace treadle::run
