#pragma once
// How the elementwise instructions of a loop are written. Code grows with their steps, and with the number of vectors
// for which each step is written; LLVM's time grows faster than code. If all steps written out would be too much code,
// long steps become functions. If that is still too much, instructions over several vectors become calls of their
// kernels.

#include <map>
#include <set>
#include <span>

#include "jit/chunks.h"
#include "jit/steps.h"

namespace treadle::jit {

// The properties that distinguish functions of steps.
struct StepKind {
  explicit StepKind(const plan::ElementwiseCode::Step& step);
  std::strong_ordering operator<=>(const StepKind&) const = default;

  bool converts;
  kernels::ElementwiseOp op;
  ElementType from, to;
  uint8_t argument_count;
  uint64_t alpha, beta;  // bits of the parameters
};

struct CodeShape {
  // By instruction: vectors of a tile. Instructions in neither `tiles` nor `kernels` are written out whole.
  std::map<uint32_t, int64_t> tiles;
  std::set<uint32_t> kernels;  // instructions that become calls of their kernels
  // Steps that become functions.
  std::set<StepKind> functions;
};

// `inlined`: the elementwise instructions that are not calls of their kernels.
CodeShape choose_shape(const plan::NativeRequest& request, const Chunks& chunks, std::span<const uint32_t> inlined);

// The largest number of vectors of each argument that a function of a step takes, and of its result: as many as
// registers pass.
constexpr size_t vectors_of_call(size_t argument_count) {
  return argument_count < 3 ? 4 : 2;
}

}  // namespace treadle::jit
