#pragma once
// The random numbers of a node come from its seed, or from the process.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/thread_pool.h"
#include "ir/attribute.h"
#include "kernels/convert.h"
#include "kernels/random.h"

namespace treadle::random {

// Nodes without a seed attribute depend on `seed` and on the order in which they run, from now on.
void set_process_seed(uint64_t seed);

// The sequence of one run of a node. With an attribute `seed` that is not NaN, it is the same in every run. Otherwise
// it differs from that of any other run of the process; its key is set by set_process_seed(), or taken from the
// machine's entropy.
struct Source {
  bool seeded = false;
  uint64_t key = 0;

  static Source of(const ir::Attributes& attributes);
  kernels::RandomKey sequence() const;
};

// Calls fn(begin, n) for all tiles of `count` elements, on any thread.
template <class Fn>
void for_each_tile(size_t count, double element_ns, Fn&& fn) {
  static_assert(kernels::kTile % kernels::kRandomGroup == 0);
  const size_t tiles = (count + kernels::kTile - 1) / kernels::kTile;
  parallel_for(static_cast<int64_t>(tiles), element_ns * static_cast<double>(kernels::kTile),
               [&](int64_t first, int64_t last, int) {
                 for (size_t at = static_cast<size_t>(first) * kernels::kTile;
                      at < std::min(static_cast<size_t>(last) * kernels::kTile, count); at += kernels::kTile) {
                   fn(at, std::min(kernels::kTile, count - at));
                 }
               });
}

// Numbers of 53 bits, uniform in [0, 1), for comparison with probabilities.
class UnitNumbers {
 public:
  UnitNumbers() : rows_(kernels::random_kernels().f64) {}

  // Numbers [begin, begin + n) of a sequence; `begin` is a multiple of kernels::kRandomGroup.
  void make(kernels::RandomKey sequence, size_t begin, double* out, size_t n) const {
    constexpr int kBits = 53;
    rows_.uniform(sequence, begin, kBits, {.scale = 0x1p-53}, out, n);
  }

 private:
  kernels::RandomRows<double> rows_;
};

}  // namespace treadle::random
