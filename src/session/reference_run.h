#pragma once
// Runs of the reference interpreter, under the limits that every run has.

#include <span>

#include "run/options.h"
#include "session/inputs.h"
#include "session/loaded.h"

namespace treadle::session {

// `places`: where to put the graph's outputs, null for an output that is not wanted. Errors: those of the model's
// nodes, and of limits.
Status run_reference(const Loaded& loaded, Values values, std::span<AnyValue* const> places, const RunOptions& options);

}  // namespace treadle::session
