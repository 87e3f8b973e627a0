#pragma once
// What fixes an opened size: a walk over a model's graph with the symbols, beside the same graph with numbers.

#include "open/edits.h"
#include "open/reading.h"
#include "open/reshaped.h"

namespace treadle::open {

// What one walk finds. Types behind a node that has to change are not known yet, so nodes behind it are left for the
// next walk. Obstacles are final only if there is no edit.
struct Found {
  std::vector<Edit> edits;
  std::vector<Obstacle> obstacles;
};

// `old`: with the sizes that the model has; `twice`: with twice these sizes.
Found walk(const Reading& now, const Reading& old, const Reading& twice, const Openings& openings);

}  // namespace treadle::open
