#pragma once
// Gathers by run-time indices: which of them native code inlines.

#include "jit/chunks.h"
#include "plan/kernel_code.h"

namespace treadle::jit {

bool gathers(const plan::GatherCode& code);
// Whether a loop reads indices and writes results in memory; otherwise vectors hold the result.
bool gathers_to_memory(const plan::GatherCode& code, const Chunks& chunks);

}  // namespace treadle::jit
