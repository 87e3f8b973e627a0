#pragma once

#include "ir/graph.h"

namespace treadle::session {

// Replaces constants by existing ones with equal contents: sessions of one model share each weight, whatever their
// options are (type/shared_tensor.h).
void share_weights(ir::Graph& graph);

}  // namespace treadle::session
