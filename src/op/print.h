#pragma once
// A readable listing of a graph (treadle run --dump PASS, treadle show).

#include <string>

#include "ir/graph.h"

namespace treadle {

std::string print(const ir::Graph& graph);
std::string print(const ir::Region& region, int indent = 0);

}  // namespace treadle
