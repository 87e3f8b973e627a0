#pragma once
// Rules for OpDef::axes and OpDef::widen that several families of operators share.

#include "op/axes.h"

namespace treadle::axes {

// --- where axes go (OpDef::axes)

// Only the first input runs along the axis, as the rules below want that are not about several operands.
Status only_first(const AxisContext& c);

// Aligned at the last axis, operands of size 1 spread.
Status broadcast(AxisContext& c);
// All results have the axes of the first input, each element on its own; other inputs hold for all elements.
Status element_by_element(AxisContext& c);
// Axis 0 of the first input counts entries that have nothing to do with each other, and so does axis 0 of the results.
Status entries(AxisContext& c);
// The same, of a table [entries, features]: one axis alone is the features of a single entry.
Status rows_of_table(AxisContext& c);
// Entries that several inputs have: input i for each set bit. Those that run along the axis do all.
template <uint32_t kInputs>
Status entries_of(AxisContext& c);
// Elements keep their order under other sizes.
Status reshaped(AxisContext& c);
// Works along attribute `axis` of the first input, the others are as they were.
Status along_axis_attribute(AxisContext& c);
// From attribute `axis` on, the first input's axes are taken together.
Status from_axis_attribute(AxisContext& c);
// Works along the one axis that input 1 or attribute `axis` names.
Status along_axis_input(AxisContext& c);
// Reduces the axes that input 1 or attribute `axes` names.
Status reduced(AxisContext& c);
// Matrices in the last two axes of operands `a` and `b`, stacked in those before as numpy's matmul has them.
Status matrix_product(AxisContext& c, size_t a, size_t b);
// The same of operands that the operator permutes first: the axis of the product.
struct Matrices {
  Shape shape;
  int64_t axis = kNoAxis;

  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  bool runs_along() const { return axis != kNoAxis; }
};
Matrices matrices(const AxisContext& c, size_t input);
// In the order that the attribute `permutation` says, where it is there.
Matrices permuted(const AxisContext& c, size_t input, const char* permutation);
Result<int64_t> matrix_product(const Matrices& a, const Matrices& b);
// Data, indices and updates of one shape, along attribute `axis`.
Status elements_along_axis(AxisContext& c);
// The size stays that of the first input's axis: nothing is added to it or cut from it.
Status of_kept_size(AxisContext& c, const char* otherwise);

// --- for operators with bodies

// Two values of a body that are one (a state and its next value) must run along the axis alike.
Status agree(const AxisMap& axes, const ir::Value* a, const ir::Value* b);
// `to` runs along the axis as `from` does.
void hand_over(AxisMap& axes, const ir::Value* from, const ir::Value* to);
// `whole` is made of `row`s, put together along its axis `at`.
void hand_over_stacked(AxisMap& axes, const ir::Value* row, const ir::Value* whole, int64_t at);

// What entries_of is made of.
Status entries_of_inputs(AxisContext& c, uint32_t inputs);
template <uint32_t kInputs>
Status entries_of(AxisContext& c) {
  return entries_of_inputs(c, kInputs);
}

// --- what changes for one more leading axis (OpDef::widen)

// Nothing: axes are counted from the back, or none are named.
Status unchanged(WidenContext& c);
// Operands get axes of 1 behind the new one, as many as the result has.
Status aligned(WidenContext& c);
// Attribute `axis` is counted behind the new one.
Status shift_axis(WidenContext& c);
// The same, and operands that do not vary are repeated: all have one shape.
Status shift_axis_of_all(WidenContext& c);
// The one axis that input 1, or else attribute `axis`, names.
Status shift_axis_input(WidenContext& c);
// The axes that input 1 or attribute `axes` names. None: all of them, or none with `noop_with_empty_axes`.
Status shift_axes(WidenContext& c);
// Input 1 says a size, or how often, for each axis: `first` for the new one.
template <int64_t kFirst>
Status prefix_list(WidenContext& c);

Status prefix_list(WidenContext& c, int64_t first);
template <int64_t kFirst>
Status prefix_list(WidenContext& c) {
  return prefix_list(c, kFirst);
}

// Contents for an input in the place of input `like`, which is of int32 or int64.
Tensor ints_like(const ir::Node& node, size_t like, std::span<const int64_t> values);

}  // namespace treadle::axes
