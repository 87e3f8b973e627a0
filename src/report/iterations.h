#pragma once
// What the iterations of a run's loops (run/iterations.h) look like, for people and as JSON.

#include <string>

#include "run/iterations.h"
#include "run/profile.h"

namespace treadle::report {

// Of one recorded run.
run::Iterations iterations_of(const run::Profile::Run& run);

// A line for each loop, those inside indented; empty without loops.
std::string to_text(const run::Iterations& iterations);
// A list of the loops, outer ones before those inside.
std::string loops_json(const run::Iterations& iterations);
// {"loops": the list, "idle": the names of the loops that made no iteration}
std::string to_json(const run::Iterations& iterations);

}  // namespace treadle::report
