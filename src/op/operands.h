#pragma once
// What many operators read from their operands: lists of integers, axes, output sizes.

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
  Ints values;  // of kKnown

  bool absent() const { return state == State::kAbsent; }
  bool known() const { return state == State::kKnown; }
};
// The attribute if it is there, else the input.
IntList int_list(const InferContext& context, const char* attribute, size_t input);
IntList int_list(const PrepareContext& context, const char* attribute, size_t input);

// Each in [-rank, rank) to [0, rank); an error when one is out of range or named twice.
Result<Ints> normalize_axes(std::span<const int64_t> axes, int64_t rank, std::string_view what = "axes");

// Whether both sizes are known and differ.
inline bool differ(const Dim& a, const Dim& b) {
  return a.is_known() && b.is_known() && a.value() != b.value();
}

// False where the ranks differ, or two sizes of one axis are known and differ.
bool may_equal(const Shape& a, const Shape& b);

// Shape of `rank` unknown sizes.
Shape unknown_shape(size_t rank);
// Number of elements of input i, a vector; unknown when its size is.
Dim length_of(const InferContext& context, size_t i);

// A value of known sizes as preparation sees it: row-major, with its contents if it is a constant.
Operand operand_of(const ir::Value& value);

// Types of the outputs of the node that is being computed, from the values at hand.
Result<std::vector<Type>> infer_outputs(const ComputeContext& context);

// Output 0 has the element type and the shape of input 0; carries known contents along.
Status infer_same_as_first(InferContext& context);

// A kernel that copies input 0 to output 0 byte by byte.
Status prepare_plain_copy(PrepareContext& context);
// Output 0 is input 0 with inferred sizes; shares its memory.
Status compute_reshaped(ComputeContext& context);

// For operators that only move elements, on strings: runs the node's own preparation on positions in place of strings,
// then copies the strings at the positions that come out. Position 0 is the empty string, so what a kernel fills with
// zero bytes becomes empty strings.
Status compute_by_position(ComputeContext& context);

}  // namespace treadle
