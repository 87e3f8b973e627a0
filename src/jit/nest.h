#pragma once
// Elementwise work over broadcast operands as loops around a tile: the dimensions along which all operands have
// constant strides, and which of them are loops. A tile is a few vectors long and written out. A list of numbers gives
// the positions of its elements in each operand.

#include <optional>

#include "jit/vector_lanes.h"
#include "plan/native.h"

namespace treadle::jit {

struct Nest {
  std::vector<int64_t> sizes;    // outermost first; the result is contiguous over them
  std::vector<Numbers> strides;  // by input, by dimension
  Numbers result_strides() const;

  // Tiles cover the dimensions [split, rank) and `step` positions of dimension split - 1; the dimensions before it are
  // loops. With `split` 0, one tile covers everything.
  size_t split = 0;
  int64_t step = 1;
  // The number of elements in a tile of `rows` positions.
  int64_t tile_count(int64_t rows) const;
  // The positions of these elements, relative to the first one.
  Numbers tile_numbers(const Numbers& strides, int64_t rows) const;
};

// nullopt: operands are broadcast along dimensions that do not divide each other. A boundary between dimensions exists
// at each distance in `apart`, in elements.
std::optional<Nest> common_nest(const plan::ElementwiseCode& code, const Numbers& apart = {});
// Chooses tiles of at most `most` elements, as large as possible.
void cut(Nest& nest, int64_t most);

// The positions in an input of all elements of a result.
Numbers input_numbers(const plan::ElementwiseCode::Input& input, int64_t count);

}  // namespace treadle::jit
