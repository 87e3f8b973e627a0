#pragma once
// A tensor around one of its axes, as [outer, n, inner].

#include "op/context.h"

namespace treadle {

struct AxisView {
  size_t outer = 1, n = 1, inner = 1;
};

// With dimensions [first, last) taken as one.
inline AxisView view_along(const Dims& dims, int64_t first, int64_t last) {
  AxisView view;
  for (int64_t d = 0; d < static_cast<int64_t>(dims.size()); ++d) {
    (d < first ? view.outer : d < last ? view.n : view.inner) *= static_cast<size_t>(dims[static_cast<size_t>(d)]);
  }
  return view;
}
inline AxisView view_along(const Dims& dims, int64_t axis) {
  return view_along(dims, axis, axis + 1);
}

}  // namespace treadle
