#pragma once
// Where the opened sizes of an operand go in a result that has the same elements in the same order.

#include <map>
#include <span>
#include <string>
#include <vector>

#include "open/opening.h"

namespace treadle::open {

// Axes that a Reshape made one, by the text of the product: `10*batch` was [batch,10]. A later Reshape that takes the
// axis apart needs their order. A product that was made in two orders is not known.
class MergedAxes {
 public:
  void add(const Dim& product, std::span<const Dim> axes);
  // The axes of which `dim` was made, or `dim` itself.
  Shape apart(const Dim& dim) const;

 private:
  std::map<std::string, Shape> axes_;  // empty: in several orders
};

struct Reshaping {
  const Shape& in;                     // with opened sizes
  const Shape& out_old;                // of the model as it was
  const std::vector<int64_t>* target;  // as the model states it; null if it is not a constant
};

struct Reshaped {
  Shape out;        // empty where `why` says something
  std::string why;  // it cannot be told
};

// The sizes of the result, if the places of the opened sizes are certain. Adds to `merged` what becomes one axis.
Reshaped reshaped(const Reshaping& reshaping, const Openings& openings, MergedAxes& merged);

}  // namespace treadle::open
