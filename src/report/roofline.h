#pragma once
// How fast one core of this machine is, measured with treadle's own kernels. Reports compare the time of a loop with
// these speeds (roofline).

#include <cstddef>
#include <vector>

namespace treadle::report {

struct Roofline {
  struct Level {
    size_t bytes = 0;         // a working set of this size and
    double bytes_per_ns = 0;  // how fast a row times a matrix reads it
  };
  double flops_per_ns = 0;    // of a product whose operands are in the nearest cache
  double function_ns = 0;     // of an element of a long row, by the kernel of Exp
  double latency_ns = 0;      // of an addition of floats that waits for the one before
  std::vector<Level> levels;  // ascending; the last is that of main memory

  double bytes_per_ns(double working_set) const;
};

// Measured on the first call, which takes about 30 ms.
const Roofline& measured_roofline();

}  // namespace treadle::report
