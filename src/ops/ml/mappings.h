#pragma once
// What LabelEncoder and CategoryMapper look up.

#include <algorithm>
#include <vector>

#include "ops/ml/dictionary.h"

namespace treadle::ml {

// Maps keys to values, element by element. An unknown key becomes the last value.
struct Mapping {
  Dictionary keys;
  Tensor values;

  // False: the work is to stop.
  bool run(const void* x, void* y, int64_t count) const;
};

// The mapping of a node. If there are two, one for each direction, X's type selects one.
struct Mappings {
  std::vector<Mapping> list;

  const Mapping* find(ElementType x) const {
    const auto found = std::find_if(list.begin(), list.end(), [&](const Mapping& m) { return m.keys.type() == x; });
    return found == list.end() ? nullptr : &*found;
  }
};

}  // namespace treadle::ml
