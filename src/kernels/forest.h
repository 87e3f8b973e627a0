#pragma once
// Decision trees as one flat array of nodes, and a walk of many rows through them at once.

#include <cstddef>
#include <cstdint>

namespace treadle::kernels {

// The two children of a node are neighbours: a row goes to `left` if its feature is at most the threshold, otherwise to
// `left` + 1. A leaf sends every row to itself: its threshold is NaN, and `left` is its own index - 1. So a row at its
// leaf may take further steps while other rows still walk.
template <class T>
struct TreeNode {
  // Set in `feature`: a NaN goes left.
  static constexpr uint32_t kNanLeft = uint32_t{1} << 31;

  T threshold = 0;
  uint32_t feature = 0;
  uint32_t left = 0;
  uint32_t leaf = 0;  // number of the leaf

  bool is_leaf(uint32_t self) const { return left == self - 1; }
};

struct Tree {
  uint32_t root = 0;
  uint32_t depth = 0;  // steps to the deepest leaf
};

inline constexpr size_t kWalkLanes = 8;

// The numbers of the leaves that `rows` rows reach in one tree; rows are `stride` elements apart. `nan_left`: some node
// has kNanLeft set.
template <class T>
void walk_rows(const TreeNode<T>* nodes, Tree tree, bool nan_left, const T* x, size_t rows, size_t stride,
               uint32_t* leaves);

// The numbers of the leaves that one row reaches in `count` trees.
template <class T>
void walk_trees(const TreeNode<T>* nodes, const Tree* trees, size_t count, bool nan_left, const T* x, uint32_t* leaves);

}  // namespace treadle::kernels
