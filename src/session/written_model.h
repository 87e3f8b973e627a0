#pragma once
// The model as a session writes it for other programs.

#include <string>

#include "session/inputs.h"

namespace treadle::session {

// The graph that a session has loaded, with the rewrites that other programs expect of a model before they quantise or
// run it (opt/standard_form.h). Operators are those of the standard, and inputs and outputs keep their names and types.
Result<std::unique_ptr<ir::Graph>> written_model(const ir::Graph& loaded, const Inputs& inputs);

}  // namespace treadle::session
