#pragma once
// The speed of one core of this machine, measured with treadle's own kernels. Reports compare the time of a loop with
// it.

#include <cstddef>
#include <vector>

namespace treadle::report {

struct Roofline {
  struct Level {
    size_t bytes = 0;         // size of the working set
    double bytes_per_ns = 0;  // speed at which a row times a matrix reads such a working set
  };
  double flops_per_ns = 0;    // of a product with operands in the first-level cache
  double function_ns = 0;     // per element of a long row, by the kernel of Exp
  double latency_ns = 0;      // of an addition of floats that depends on the one before
  std::vector<Level> levels;  // ascending; the last is main memory

  double bytes_per_ns(double working_set) const;
};

// Measures on the first call, which takes about 30 ms.
const Roofline& measured_roofline();

}  // namespace treadle::report
