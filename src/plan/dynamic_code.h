#pragma once
// What nodes compute whose sizes only the run knows, apart from these sizes: for who writes code of its own for them
// (plan/native.h). Operands are the node's inputs; how many axes each of them has is known.

#include <algorithm>

#include "plan/kernel_code.h"

namespace treadle::plan {

struct DynamicCode {
  enum class Kind : uint8_t {
    kElementwise,  // `step`, whose arguments are inputs of the node
    kReduction,    // `reduce` of the last axis, which stays with size 1 where `keep`
    kSlice,        // bounds are inputs 1 and 2; of each, the axis of `axes` and the step of `steps`
    kConcat,       // along `axis`
    kReshape,      // to the sizes of input 1
    kSqueeze,      // without the axes `axes`
    kUnsqueeze,    // with axes of size 1, the result's `axes`
    kSplit,        // into equal parts of `axis`
    kRange,        // of integers
  };
  Kind kind{};
  ElementwiseCode::Step step;
  kernels::ReduceOp reduce{};
  bool keep = false;
  bool appends = false;  // of kConcat: makes a state of a loop longer where it lies, row-major
  int64_t axis = 0;
  Dims axes, steps;
  bool has_axis(size_t d) const { return std::ranges::find(axes, static_cast<int64_t>(d)) != axes.end(); }

  std::vector<Dims> planned;  // by input: sizes of what lies in planned memory; none for other values
};

// Of a kGuarded instruction; nullopt where the node is another one, computes with texts or elements that native code
// does not hold, or works on values without a known number of axes.
std::optional<DynamicCode> dynamic_code(const Program& program, uint32_t pc);

}  // namespace treadle::plan
