// A walk down a tree is a chain of dependent loads: node, feature, comparison, next node. Eight walks side by side hide
// each other's latency. There is no branch on the comparison, so nothing is mispredicted.
#include "kernels/forest.h"

#include <algorithm>

namespace treadle::kernels {

namespace {

constexpr uint32_t kStepsBetweenChecks = 4;

template <class T, bool kNanLeft>
inline uint32_t step(const TreeNode<T>* nodes, uint32_t at, const T* x) {
  const TreeNode<T>& node = nodes[at];
  if constexpr (kNanLeft) {
    const T v = x[node.feature & ~TreeNode<T>::kNanLeft];
    const bool nan_right = (node.feature & TreeNode<T>::kNanLeft) == 0;
    const bool right = !(v <= node.threshold);
    return node.left + static_cast<uint32_t>(right & ((v == v) | nan_right));
  } else {
    return node.left + static_cast<uint32_t>(!(x[node.feature] <= node.threshold));
  }
}

// Walks all lanes to their leaves. A deep tree is rarely deep everywhere, so the loop checks now and then whether any
// lane still moves.
template <class T, bool kNanLeft>
inline void walk(const TreeNode<T>* nodes, uint32_t depth, const T* const (&x)[kWalkLanes],
                 uint32_t (&at)[kWalkLanes]) {
  for (;;) {
    const uint32_t steps = std::min(depth, kStepsBetweenChecks);
    for (uint32_t s = 0; s < steps; ++s) {
      for (size_t l = 0; l < kWalkLanes; ++l) at[l] = step<T, kNanLeft>(nodes, at[l], x[l]);
    }
    depth -= steps;
    if (depth == 0) return;
    bool arrived = true;
    for (size_t l = 0; l < kWalkLanes; ++l) arrived &= nodes[at[l]].is_leaf(at[l]);
    if (arrived) return;
  }
}

// The lanes beyond `rows` repeat the last row.
template <class T, bool kNanLeft>
void walk_rows_as(const TreeNode<T>* nodes, Tree tree, const T* x, size_t rows, size_t stride, uint32_t* leaves) {
  for (size_t first = 0; first < rows; first += kWalkLanes) {
    const size_t lanes = std::min(kWalkLanes, rows - first);
    const T* row[kWalkLanes];
    uint32_t at[kWalkLanes];
    for (size_t l = 0; l < kWalkLanes; ++l) {
      row[l] = x + (first + std::min(l, lanes - 1)) * stride;
      at[l] = tree.root;
    }
    walk<T, kNanLeft>(nodes, tree.depth, row, at);
    for (size_t l = 0; l < lanes; ++l) leaves[first + l] = nodes[at[l]].leaf;
  }
}

template <class T, bool kNanLeft>
void walk_trees_as(const TreeNode<T>* nodes, const Tree* trees, size_t count, const T* x, uint32_t* leaves) {
  const T* row[kWalkLanes];
  std::fill_n(row, kWalkLanes, x);
  for (size_t first = 0; first < count; first += kWalkLanes) {
    const size_t lanes = std::min(kWalkLanes, count - first);
    uint32_t at[kWalkLanes];
    uint32_t depth = 0;
    for (size_t l = 0; l < kWalkLanes; ++l) {
      const Tree& tree = trees[first + std::min(l, lanes - 1)];
      at[l] = tree.root;
      depth = std::max(depth, tree.depth);
    }
    walk<T, kNanLeft>(nodes, depth, row, at);
    for (size_t l = 0; l < lanes; ++l) leaves[first + l] = nodes[at[l]].leaf;
  }
}

}  // namespace

template <class T>
void walk_rows(const TreeNode<T>* nodes, Tree tree, bool nan_left, const T* x, size_t rows, size_t stride,
               uint32_t* leaves) {
  (nan_left ? walk_rows_as<T, true> : walk_rows_as<T, false>)(nodes, tree, x, rows, stride, leaves);
}

template <class T>
void walk_trees(const TreeNode<T>* nodes, const Tree* trees, size_t count, bool nan_left, const T* x,
                uint32_t* leaves) {
  (nan_left ? walk_trees_as<T, true> : walk_trees_as<T, false>)(nodes, trees, count, x, leaves);
}

template void walk_rows(const TreeNode<float>*, Tree, bool, const float*, size_t, size_t, uint32_t*);
template void walk_rows(const TreeNode<double>*, Tree, bool, const double*, size_t, size_t, uint32_t*);
template void walk_trees(const TreeNode<float>*, const Tree*, size_t, bool, const float*, uint32_t*);
template void walk_trees(const TreeNode<double>*, const Tree*, size_t, bool, const double*, uint32_t*);

}  // namespace treadle::kernels
