#pragma once
// Rules for OpDef::axes and OpDef::widen that several families of operators share.

#include "op/axes.h"

namespace treadle::axes {

// --- which axis an axis becomes (OpDef::axes)

// Refuses unless the first input alone runs along the axis. For the rules below that do not combine operands.
Status only_first(const AxisContext& c);

// Operands are aligned at the last axis, and those of size 1 are broadcast.
Status broadcast(AxisContext& c);
// All results have the axes of the first input, whose elements are independent. Other inputs apply to all elements.
Status element_by_element(AxisContext& c);
// Axis 0 of the first input and of the results counts independent entries.
Status entries(AxisContext& c);
// As entries(), for a table [entries, features]. A table with one axis only holds the features of a single entry.
Status rows_of_table(AxisContext& c);
// Entries along axis 0 of several inputs: input i for each set bit. All of these that are given must run along the
// axis.
template <uint32_t kInputs>
Status entries_of(AxisContext& c);
// Elements keep their order under other sizes.
Status reshaped(AxisContext& c);
// Works along attribute `axis` of the first input; other axes keep their places.
Status along_axis_attribute(AxisContext& c);
// Merges the first input's axes from attribute `axis` on.
Status from_axis_attribute(AxisContext& c);
// Works along the one axis that input 1 or attribute `axis` names.
Status along_axis_input(AxisContext& c);
// Reduces the axes that input 1 or attribute `axes` names.
Status reduced(AxisContext& c);
// Matrices in the last two axes of operands `a` and `b`, with further axes broadcast as in numpy's matmul.
Status matrix_product(AxisContext& c, size_t a, size_t b);
// A product of operands that the operator transposes first; returns the axis of the product.
struct Matrices {
  Shape shape;
  int64_t axis = kNoAxis;

  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  bool runs_along() const { return axis != kNoAxis; }
};
Matrices matrices(const AxisContext& c, size_t input);
// The operand in the order of attribute `permutation`, if that is given.
Matrices permuted(const AxisContext& c, size_t input, const char* permutation);
Result<int64_t> matrix_product(const Matrices& a, const Matrices& b);
// Data, indices and updates of one shape, along attribute `axis`.
Status elements_along_axis(AxisContext& c);
// Refuses unless the size of the first input's axis stays. `otherwise`: what the node does to it, as the end of a
// sentence.
Status of_kept_size(AxisContext& c, const char* otherwise);

// --- for operators with bodies

// Refuses unless both values run along the same axis, as a state and its next value must.
Status agree(const AxisMap& axes, const ir::Value* a, const ir::Value* b);
// `to` runs along the same axis as `from`.
void hand_over(AxisMap& axes, const ir::Value* from, const ir::Value* to);
// `whole` is `row`s stacked along its axis `at`.
void hand_over_stacked(AxisMap& axes, const ir::Value* row, const ir::Value* whole, int64_t at);

// The implementation of entries_of.
Status entries_of_inputs(AxisContext& c, uint32_t inputs);
template <uint32_t kInputs>
Status entries_of(AxisContext& c) {
  return entries_of_inputs(c, kInputs);
}

// --- changes for one more leading axis (OpDef::widen)

// No change: axes are counted from the back, or none are named.
Status unchanged(WidenContext& c);
// Inserts axes of size 1 behind the new one, so that operands have as many axes as the result.
Status aligned(WidenContext& c);
// Moves attribute `axis` behind the new axis.
Status shift_axis(WidenContext& c);
// As shift_axis(), and repeats operands that do not vary: all operands must have one shape.
Status shift_axis_of_all(WidenContext& c);
// Moves the one axis that input 1, or else attribute `axis`, names.
Status shift_axis_input(WidenContext& c);
// Moves the axes that input 1 or attribute `axes` names. If there are none, all axes are meant, or none with
// `noop_with_empty_axes`.
Status shift_axes(WidenContext& c);
// Input 1 has a size or a count for each axis; puts `first` in front for the new axis.
template <int64_t kFirst>
Status prefix_list(WidenContext& c);

Status prefix_list(WidenContext& c, int64_t first);
template <int64_t kFirst>
Status prefix_list(WidenContext& c) {
  return prefix_list(c, kFirst);
}

// A constant of `values`, with the type of input `like` (int32 or int64).
Tensor ints_like(const ir::Node& node, size_t like, std::span<const int64_t> values);

}  // namespace treadle::axes
