#pragma once
// Helpers for tests of row functions.

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "base/cpu.h"
#include "gtest/gtest.h"

namespace treadle::kernels::testing {

inline std::string isa_name(const ::testing::TestParamInfo<Isa>& info) {
  return std::string(name(info.param));
}

template <class T>
struct BitsOf {
  using type = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
};

// Distance in representable values; 0 for two NaNs and for zeros of either sign.
template <class T>
uint64_t ulps(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) == std::isnan(b) ? 0 : ~uint64_t{0};
  using B = typename BitsOf<T>::type;
  const B sign = B{1} << (sizeof(B) * 8 - 1);
  const auto key = [&](T x) -> __int128 {
    const B bits = std::bit_cast<B>(x);
    return bits & sign ? -static_cast<__int128>(bits & ~sign) : static_cast<__int128>(bits);
  };
  const __int128 distance = key(a) - key(b);
  return static_cast<uint64_t>(distance < 0 ? -distance : distance);
}

// Random bit patterns (all magnitudes, subnormals, infinities and NaNs among them), values of ordinary size, and the
// corners.
template <class T>
std::vector<T> float_samples(size_t count, uint64_t seed) {
  using L = std::numeric_limits<T>;
  std::vector<T> samples = {
      T(0),      T(-0.0),     T(1),     T(-1),     T(0.5),          T(-0.5),          T(1.5),
      T(2.5),    T(-2.5),     T(2),     T(3),      L::infinity(),   -L::infinity(),   L::quiet_NaN(),
      L::max(),  L::lowest(), L::min(), -L::min(), L::denorm_min(), -L::denorm_min(), T(88.5),
      T(88.9),   T(-87.5),    T(-100),  T(-103.9), T(-104.1),       T(709.5),         T(709.9),
      T(-708.5), T(-744.5),   T(-746)};
  std::mt19937_64 random(seed);
  while (samples.size() < count) {
    using B = typename BitsOf<T>::type;
    samples.push_back(std::bit_cast<T>(static_cast<B>(random())));
    for (T range : {T(1), T(8), T(100), T(10000)}) {
      samples.push_back(std::uniform_real_distribution<T>(-range, range)(random));
    }
  }
  samples.resize(count);
  return samples;
}

template <class T>
std::vector<T> integer_samples(size_t count, uint64_t seed) {
  using L = std::numeric_limits<T>;
  std::vector<T> samples = {0,  1, static_cast<T>(-1), 2, 3, static_cast<T>(-3), 7, L::min(), L::max(), 31, 32, 33,
                            63, 64};
  std::mt19937_64 random(seed);
  while (samples.size() < count) {
    samples.push_back(static_cast<T>(random()));
    samples.push_back(static_cast<T>(static_cast<int64_t>(random() % 41) - 20));
  }
  samples.resize(count);
  return samples;
}

template <class T>
std::vector<T> samples(size_t count, uint64_t seed) {
  if constexpr (std::is_floating_point_v<T>) {
    return float_samples<T>(count, seed);
  } else if constexpr (std::is_same_v<T, uint8_t>) {  // bools
    std::mt19937_64 random(seed);
    std::vector<T> bytes(count);
    for (T& byte : bytes) byte = random() & 1;
    return bytes;
  } else {
    return integer_samples<T>(count, seed);
  }
}

}  // namespace treadle::kernels::testing
