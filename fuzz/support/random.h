#pragma once
// Draws for mutators: fast, and the same for the same seed everywhere.

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace treadle::fuzz {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15 + 1) {}

  uint64_t next() {  // splitmix64
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  size_t below(size_t end) { return end == 0 ? 0 : next() % end; }
  bool one_in(size_t n) { return below(n) == 0; }
  template <class Container>
  const auto& pick(const Container& from) {
    return *std::next(std::begin(from), static_cast<std::ptrdiff_t>(below(std::size(from))));
  }

  // Mostly small, as axes and sizes are; sometimes one that arithmetic has to be careful with.
  int64_t number() {
    static constexpr int64_t kEdges[] = {0,
                                         -1,
                                         127,
                                         -128,
                                         255,
                                         65536,
                                         INT32_MAX,
                                         INT32_MIN,
                                         int64_t{1} << 31,
                                         int64_t{1} << 32,
                                         int64_t{1} << 53,
                                         int64_t{1} << 62,
                                         INT64_MAX,
                                         INT64_MIN,
                                         INT64_MIN + 1,
                                         1'000'000'000};
    if (one_in(8)) return pick(kEdges);
    return static_cast<int64_t>(below(6)) - (one_in(3) ? 3 : 0);
  }
  double real() {
    static constexpr double kEdges[] = {0.0,
                                        -0.0,
                                        1e-45,
                                        1e-38,
                                        3.4e38,
                                        -3.4e38,
                                        1e300,
                                        0.1,
                                        __builtin_inf(),
                                        -__builtin_inf(),
                                        __builtin_nan(""),
                                        2147483648.0};
    if (one_in(4)) return pick(kEdges);
    return static_cast<double>(number()) / (one_in(2) ? 1 : 4);
  }
  int64_t size() { return one_in(30) ? number() : static_cast<int64_t>(below(10) == 0 ? 0 : 1 + below(3)); }

 private:
  uint64_t state_;
};

}  // namespace treadle::fuzz
