#pragma once

#include "ir/graph.h"

namespace treadle::session {

// Puts what lives already in the place of constants of equal contents: sessions of one model, whatever their options,
// keep each weight once (type/shared_tensor.h).
void share_weights(ir::Graph& graph);

}  // namespace treadle::session
