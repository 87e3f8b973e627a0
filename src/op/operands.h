#pragma once
// Helpers to read operands: lists of integers, axes, output sizes.

#include <span>
#include <string_view>
#include <vector>

#include "op/context.h"

namespace treadle {

using Ints = InlineVector<int64_t, 8>;

// Integers that some versions of an operator take as an attribute and others as an input.
struct IntList {
  enum class State : uint8_t { kAbsent, kUnknown, kKnown };
  State state = State::kAbsent;
  Ints values;  // only if kKnown

  bool absent() const { return state == State::kAbsent; }
  bool known() const { return state == State::kKnown; }
};
// The attribute if it is given, else the input.
IntList int_list(const InferContext& context, const char* attribute, size_t input);
IntList int_list(const PrepareContext& context, const char* attribute, size_t input);

// Turns axes in [-rank, rank) into [0, rank). Errors: an axis that is out of range or named twice.
Result<Ints> normalize_axes(std::span<const int64_t> axes, int64_t rank, std::string_view what = "axes");

// Whether both sizes are known and differ.
inline bool differ(const Dim& a, const Dim& b) {
  return a.is_known() && b.is_known() && a.value() != b.value();
}

// False if the ranks differ, or if two known sizes of one axis differ.
bool may_equal(const Shape& a, const Shape& b);

// A shape of `rank` unknown sizes.
Shape unknown_shape(size_t rank);
// The number of elements of input i, a vector; unknown if its size is.
Dim length_of(const InferContext& context, size_t i);

// A value of known sizes as an operand: row-major, with its contents if it is a constant.
Operand operand_of(const ir::Value& value);

// Types of the outputs of the node that is being computed, inferred from the values of its inputs.
Result<std::vector<Type>> infer_outputs(const ComputeContext& context);

// Output 0 has the element type, the shape and the known contents of input 0.
Status infer_same_as_first(InferContext& context);

// A kernel that copies input 0 to output 0 byte by byte.
Status prepare_plain_copy(PrepareContext& context);
// Output 0 shares the memory of input 0, with inferred sizes.
Status compute_reshaped(ComputeContext& context);

// Runs an operator that only moves elements on strings: prepares the node's own kernel for positions in place of
// strings, runs it, and copies the strings at the resulting positions. Position 0 is the empty string, so zero bytes
// that a kernel fills in become empty strings.
Status compute_by_position(ComputeContext& context);

}  // namespace treadle
