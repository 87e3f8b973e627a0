#pragma once
// Formats the iteration counts of a run's loops (run/iterations.h) as text and as JSON.

#include <string>

#include "run/iterations.h"
#include "run/profile.h"

namespace treadle::report {

// The counts of one recorded run.
run::Iterations iterations_of(const run::Profile::Run& run);

// A line for each loop, inner ones indented; empty without loops.
std::string to_text(const run::Iterations& iterations);
// A list of the loops; outer ones precede inner ones.
std::string loops_json(const run::Iterations& iterations);
// {"loops": the list, "idle": names of loops that made no iteration}
std::string to_json(const run::Iterations& iterations);

}  // namespace treadle::report
