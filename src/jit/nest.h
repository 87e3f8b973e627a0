#pragma once
// Elementwise work over broadcast operands as loops around a tile: the dimensions that all operands can be walked by,
// and which of them are loops. A tile is a few vectors long and written out; where its elements lie in each operand is
// a list of numbers.

#include <optional>

#include "jit/vector_lanes.h"
#include "plan/native.h"

namespace treadle::jit {

struct Nest {
  std::vector<int64_t> sizes;    // outermost first; the result is dense over them
  std::vector<Numbers> strides;  // by input, by dimension
  Numbers result_strides() const;

  // Tiles cover dimensions [split, rank) and `step` positions of dimension split - 1; the ones before are loops. With
  // `split` 0 a single tile covers everything.
  size_t split = 0;
  int64_t step = 1;
  // Elements of a tile of `rows` positions.
  int64_t tile_count(int64_t rows) const;
  // Where they lie, from the first one on.
  Numbers tile_numbers(const Numbers& strides, int64_t rows) const;
};

// nullopt: operands are broadcast along dimensions that do not divide each other. No dimension crosses `apart`: so many
// elements apart.
std::optional<Nest> common_nest(const plan::ElementwiseCode& code, const Numbers& apart = {});
// Chooses tiles of at most `most` elements, as large as possible.
void cut(Nest& nest, int64_t most);

// Where all elements of a result lie in an input.
Numbers input_numbers(const plan::ElementwiseCode::Input& input, int64_t count);

}  // namespace treadle::jit
