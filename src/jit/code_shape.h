#pragma once
// How the elementwise instructions of a loop are written out. Code grows with their steps and with the vectors that
// each is written for, and the time that LLVM takes grows faster than code. Where everything written out would be too
// much, long steps become functions that are called, and where even that is too much, instructions over several vectors
// calls of their kernels.

#include <map>
#include <set>
#include <span>

#include "jit/chunks.h"
#include "jit/steps.h"

namespace treadle::jit {

// What tells functions of steps apart.
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
  // By instruction: vectors of a tile. Those that are in neither are written out whole.
  std::map<uint32_t, int64_t> tiles;
  std::set<uint32_t> kernels;  // called after all
  // Steps that are functions.
  std::set<StepKind> functions;
};

// `inlined`: the elementwise instructions that are not calls of their kernels.
CodeShape choose_shape(const plan::NativeRequest& request, const Chunks& chunks, std::span<const uint32_t> inlined);

// Vectors that a function of a step takes of each argument, and gives, at most: as many as registers pass.
constexpr size_t vectors_of_call(size_t argument_count) {
  return argument_count < 3 ? 4 : 2;
}

}  // namespace treadle::jit
