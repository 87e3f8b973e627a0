#pragma once
// Whether a model computes with other sizes what its symbols say, and what depends on them.

#include <unordered_set>

#include "open/opening.h"
#include "open/reading.h"

namespace treadle::open {

// Nodes where the sizes of `other`, a reading at so many times the old sizes, are not those that the symbols of `now`
// stand for.
std::vector<Obstacle> differences(const Reading& now, const Reading& old, const Reading& other,
                                  const Openings& openings, int64_t times);

// The values that are computed from inputs with opened sizes.
std::unordered_set<const ir::Value*> opened_values(const Reading& now, const Openings& openings);

}  // namespace treadle::open
