#pragma once
// A group of elementwise nodes whose results reductions take in, as a kernel: strip by strip of elements that belong
// to some positions of the outermost axis that is kept, so that what only reductions read stays in cache.

#include <vector>

#include "kernels/fused.h"
#include "kernels/reduce.h"
#include "plan/fusion.h"

namespace treadle::plan {

struct ReducedGroup {
  struct Reduction {
    kernels::ReducePlan plan;
    size_t place = 0;    // of what it reduces, in the plan's table
    size_t operand = 0;  // of its result
  };

  kernels::FusedPlan plan;
  size_t operands = 0;               // inputs and outputs of the plan that are the caller's; others lie in scratch
  std::vector<size_t> hidden_bytes;  // of the others, for each element
  std::vector<Reduction> reductions;
  size_t scratch_operand = 0;
  size_t strip = 0;  // elements

  int64_t strips() const { return static_cast<int64_t>((plan.count + strip - 1) / strip); }
  double strip_ns() const;
  size_t strip_bytes(size_t hidden) const { return (hidden_bytes[hidden] * strip + 63) / 64 * 64; }
  size_t scratch_bytes() const;
  uint32_t run_strip(void* const* slots, const uint32_t* operands, std::byte* scratch, size_t first) const;
};

// Of a group with reductions; its builder is used up.
ReducedGroup make_reduced_group(FusedGroup& group);

// The kernel: operands are the group's inputs and outputs, the reductions' results, scratch.
uint32_t run_reduced_group(const void* state, void* const* slots, const uint32_t* operands);

}  // namespace treadle::plan
