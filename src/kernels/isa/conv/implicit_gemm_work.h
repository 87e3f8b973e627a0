#pragma once
// What the walks of implicit_gemm.h do for a shape.

#include <algorithm>
#include <cstdint>

#include "kernels/isa/conv/implicit_gemm_layout.h"
#include "kernels/isa/conv/work.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

// Tiles of a row of a band, or of all of it.
struct TilesAcross {
  double tiles = 0, vectors = 0, products = 0;  // products: of all filters
};

// The walk takes tiles of `most` vectors, and narrower ones where the rest is narrower.
template <class T>
TilesAcross tiles_across(int64_t filters, int64_t steps, int64_t vectors, int64_t most, int64_t reads = kApart) {
  TilesAcross all;
  for (int64_t wide = most; vectors > 0; wide /= 2) {
    const int64_t tiles = vectors / wide;
    all.tiles += count(tiles);
    all.vectors += count(tiles * wide);
    all.products += count(tiles) * column_products<T>(steps, filters, wide, reads);
    vectors -= tiles * wide;
  }
  return all;
}

// The copy of the input that bands read, in rows of `pitch` elements, `planes` of them for all groups and images.
template <class T>
void count_copy(const ConvGeometry& g, double planes, int64_t row_bands, int64_t column_bands, int64_t pitch,
                ConvWork& work) {
  const double rows = planes * count(column_bands * (g.height.out + row_bands * g.height.largest_shift()));
  work.begun += rows;
  if (g.width.stride <= 2) {
    work.copies += rows * count(vectors_of<T>(pitch * g.width.stride));
  } else {
    work.elements += rows * count(std::min(pitch, g.width.in / g.width.stride + 1));
  }
}

// Loads are, by walk: of partial sums; of what is stored in pieces; of pieces that are gathered.
template <class T, int kWalk>
ConvWork shift_work(const ConvGeometry& g) {
  using Layout = ImplicitGemmLayout<T>;
  constexpr int64_t kPair = 2 * Lanes<T>::kCount;
  const Layout layout(g, static_cast<typename Layout::Walk>(kWalk));
  const int64_t filters = g.out_per_group, blocks = parts_of(g.k, layout.steps), tiles = tiles_of<T>(filters);
  const int64_t most = tile_vectors(balanced_rows<T>(filters)), rows = std::min(layout.rows, g.height.out);
  const double groups = count(g.shape.batch * g.shape.groups * g.outer_out);
  const double bands = groups * count(layout.row_bands * layout.column_bands);
  ConvWork work;
  count_copy<T>(g, groups * count(layout.planes), layout.row_bands, layout.column_bands, layout.pitch, work);
  if (kWalk == Layout::kByRow) {
    const int64_t columns = parts_of(g.width.out, layout.column_bands);
    const TilesAcross row = tiles_across<T>(filters, g.k, vectors_of<T>(columns), most);
    const double all = groups * count(g.height.out * layout.column_bands);
    work.products = all * row.products;
    work.loads = all * row.vectors * count(filters * (blocks - 1));
    work.stores = all * row.vectors * count(filters);
    work.begun += all * row.tiles * count(tiles * blocks);
    work.weights = weight_reads<T>(all * row.tiles, filters * g.k);
    work.elements += all * tail_elements<T>(g.k, filters, columns);
  } else if (kWalk == Layout::kFlat) {
    const int64_t positions = (rows - 1) * layout.pitch + layout.columns;
    const TilesAcross band = tiles_across<T>(filters, g.k, vectors_of<T>(positions), most);
    work.products = bands * band.products;
    work.loads = bands * count(filters) * (count(rows * vectors_of<T>(layout.columns)) + band.tiles);
    work.stores = bands * band.vectors * count(filters);
    work.begun += bands * band.tiles * count(tiles);
    work.weights = weight_reads<T>(bands * band.tiles, filters * g.k);
  } else {
    const int64_t positions = rows * layout.columns, pairs = parts_of(positions, kPair);
    const double even = kPair % layout.columns == 0 ? count(std::max<int64_t>(kPair / layout.columns, 2)) : 0;
    const double pieces = even > 0 ? count(pairs) * even : count(rows * vectors_of<T>(layout.columns)) + count(pairs);
    work.products = bands * tiles_across<T>(filters, g.k, vectors_of<T>(positions), 2, 1).products;
    work.loads = bands * pieces * count(g.k);
    work.stores = bands * count(vectors_of<T>(positions) * filters * (2 * blocks - 1));
    work.begun += bands * count(pairs * tiles * blocks);
    work.weights = weight_reads<T>(bands * count(pairs), filters * g.k);
    work.elements += bands * tail_elements<T>(g.k, filters, positions);
  }
  return work;
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
