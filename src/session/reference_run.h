#pragma once
// Runs of the reference interpreter's tier, under the limits that every run has.

#include <span>

#include "run/options.h"
#include "session/inputs.h"
#include "session/loaded.h"

namespace treadle::session {

// `places`: of the graph's outputs, null where nobody wants one. Errors: those of the model's nodes, and of limits.
Status run_reference(const Loaded& loaded, Values values, std::span<AnyValue* const> places, const RunOptions& options);

}  // namespace treadle::session
