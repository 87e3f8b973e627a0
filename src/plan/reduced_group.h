#pragma once
// A group of elementwise nodes with reductions of its results, as a kernel. It runs strip by strip; a strip has the
// elements at some positions of the outermost kept axis. So values that only reductions read stay in cache.

#include <vector>

#include "kernels/fused.h"
#include "kernels/reduce.h"
#include "plan/fusion.h"

namespace treadle::plan {

struct ReducedGroup {
  struct Reduction {
    kernels::ReducePlan plan;
    size_t place = 0;    // position of its operand in the plan's table
    size_t operand = 0;  // operand of its result
  };

  kernels::FusedPlan plan;
  size_t operands = 0;  // inputs and outputs of the plan in the caller's memory; other outputs are in scratch
  std::vector<size_t> hidden_bytes;  // bytes of an element of each other output
  std::vector<Reduction> reductions;
  size_t scratch_operand = 0;
  size_t strip = 0;  // elements of a strip

  int64_t strips() const { return static_cast<int64_t>((plan.count + strip - 1) / strip); }
  double strip_ns() const;
  size_t strip_bytes(size_t hidden) const { return (hidden_bytes[hidden] * strip + 63) / 64 * 64; }
  size_t scratch_bytes() const;
  uint32_t run_strip(void* const* slots, const uint32_t* operands, std::byte* scratch, size_t first) const;
};

// Makes the kernel of a group with reductions; consumes its builder.
ReducedGroup make_reduced_group(FusedGroup& group);

// The kernel. Operands: inputs and outputs of the group, results of the reductions, scratch.
uint32_t run_reduced_group(const void* state, void* const* slots, const uint32_t* operands);

}  // namespace treadle::plan
