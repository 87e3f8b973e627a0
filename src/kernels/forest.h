#pragma once
// Decision trees as one flat array of nodes, and the walk of many rows through them at once.

#include <cstddef>
#include <cstdint>

namespace treadle::kernels {

// The children of a node stand side by side: a row goes to `left` where its feature is at most the threshold, else to
// `left` + 1. A leaf goes to itself whatever the row holds (no number is at most NaN, and `left` is its own index - 1),
// so that rows may go on walking while others have arrived.
template <class T>
struct TreeNode {
  // Set in `feature`: a NaN goes left.
  static constexpr uint32_t kNanLeft = uint32_t{1} << 31;

  T threshold = 0;
  uint32_t feature = 0;
  uint32_t left = 0;
  uint32_t leaf = 0;  // a leaf's number

  bool is_leaf(uint32_t self) const { return left == self - 1; }
};

struct Tree {
  uint32_t root = 0;
  uint32_t depth = 0;  // steps to the deepest leaf
};

inline constexpr size_t kWalkLanes = 8;

// The numbers of the leaves that `rows` rows (each `stride` elements after the one before) reach in one tree.
// `nan_left`: some node has kNanLeft.
template <class T>
void walk_rows(const TreeNode<T>* nodes, Tree tree, bool nan_left, const T* x, size_t rows, size_t stride,
               uint32_t* leaves);

// The numbers of the leaves that one row reaches in `count` trees.
template <class T>
void walk_trees(const TreeNode<T>* nodes, const Tree* trees, size_t count, bool nan_left, const T* x, uint32_t* leaves);

}  // namespace treadle::kernels
