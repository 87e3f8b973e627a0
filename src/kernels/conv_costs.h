#pragma once
// What the choice of a method of convolution goes by, for tests and for bench/bench_costs.py.

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "kernels/conv.h"

namespace treadle::kernels {

inline constexpr size_t kConvCounts = 8;  // kinds of work that a method counts: isa/conv/work.h

struct ConvCost {
  std::string_view method;
  int order;                               // of its sums: methods of one order give the same bits
  std::array<double, kConvCounts> counts;  // of a run
  double ns;                               // the counts at their prices: isa/conv/prices.h
};
// The cost of each method that computes the convolution in the layouts of `shape`, whatever the order of its sums.
std::vector<ConvCost> conv_costs(ComputeType type, const ConvShape& shape);

}  // namespace treadle::kernels
