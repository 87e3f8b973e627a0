#pragma once
// Random numbers as a function of a counter: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011). Element i of a run depends on the run's key and stream and on i alone, so any part of a result
// may be made anywhere, in any order.

#include <array>
#include <cstdint>

#include "ir/attribute.h"

namespace treadle::random {

class Philox {
 public:
  using Block = std::array<uint32_t, 4>;

  Philox() = default;
  explicit Philox(uint64_t key, uint64_t stream = 0) : key_(key), stream_(stream) {}

  Block block(uint64_t index) const {
    Block c{low(index), high(index), low(stream_), high(stream_)};
    uint32_t k0 = low(key_), k1 = high(key_);
    for (int round = 0; round < 10; ++round) {
      const uint64_t a = uint64_t{0xD2511F53u} * c[0], b = uint64_t{0xCD9E8D57u} * c[2];
      c = {high(b) ^ c[1] ^ k0, low(b), high(a) ^ c[3] ^ k1, low(a)};
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    return c;
  }

  // Two numbers of 53 bits, evenly spread over [0, 1).
  std::array<double, 2> uniforms(uint64_t index) const {
    const Block b = block(index);
    return {unit(b[0], b[1]), unit(b[2], b[3])};
  }
  // Number i of the sequence that uniforms() makes.
  double uniform(uint64_t i) const { return uniforms(i / 2)[i % 2]; }

 private:
  static uint32_t low(uint64_t x) { return static_cast<uint32_t>(x); }
  static uint32_t high(uint64_t x) { return static_cast<uint32_t>(x >> 32); }
  static double unit(uint32_t a, uint32_t b) { return static_cast<double>((uint64_t{a} << 32 | b) >> 11) * 0x1p-53; }

  uint64_t key_ = 0, stream_ = 0;
};

// From here on, what nodes without a seed give follows from `seed` and from the order in which they run.
void set_process_seed(uint64_t seed);

// The generator of one run of a node: by the node's attribute `seed` (the same numbers every run) where it is there and
// is not NaN, else one that no other run of this process has, keyed by set_process_seed(), or the machine's entropy.
struct Source {
  bool seeded = false;
  uint64_t key = 0;

  static Source of(const ir::Attributes& attributes);
  Philox generator() const;
};

}  // namespace treadle::random
