#pragma once
// The model that a session exports for other programs.

#include <string>

#include "session/inputs.h"

namespace treadle::session {

// The loaded graph with the rewrites that other programs expect before they quantise or run a model
// (opt/standard_form.h). It has operators of the standard only. Inputs and outputs keep their names and types.
Result<std::unique_ptr<ir::Graph>> written_model(const ir::Graph& loaded, const Inputs& inputs);

}  // namespace treadle::session
