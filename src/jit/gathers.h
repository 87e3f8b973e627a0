#pragma once
// Which Gathers by indices of the run are written out.

#include "jit/chunks.h"
#include "plan/kernel_code.h"

namespace treadle::jit {

bool gathers(const plan::GatherCode& code);
// Whether indices and result are walked over in memory; else the result is put together in vectors.
bool gathers_to_memory(const plan::GatherCode& code, const Chunks& chunks);

}  // namespace treadle::jit
