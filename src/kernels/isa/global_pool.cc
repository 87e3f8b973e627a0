// Pooling over all positions of a plane.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/isa/entry.h"
#include "kernels/isa/lanes.h"
#include "kernels/isa/pool_elements.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {
namespace {

template <class T>
T largest(const T* x, int64_t n) {
  if constexpr (std::is_floating_point_v<T>) {
    if (any_nan(x, n)) return std::numeric_limits<T>::quiet_NaN();
  }
  constexpr int kWidth = static_cast<int>(4 * kVectorBytes / sizeof(T));
  T best[kWidth];
  std::fill_n(best, kWidth, lowest<T>());
  const auto take = [](T& most, T value) { most = value > most ? value : most; };
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    for (int j = 0; j < kWidth; ++j) take(best[j], x[i + j]);
  }
  constexpr int kVector = kWidth / 4;
  int j = 0;
  for (; i + kVector <= n; i += kVector, j += kVector) {
    for (int k = 0; k < kVector; ++k) take(best[j + k], x[i + k]);
  }
  for (; i < n; ++i, ++j) take(best[j], x[i]);
  for (int width = kWidth / 2; width > 0; width /= 2) {
    for (int k = 0; k < width; ++k) take(best[k], best[k + width]);
  }
  return best[0];
}

template <class T>
T global_pool(PoolKind kind, int p, const T* x, int64_t n) {
  if (kind == PoolKind::kMax) return largest(x, n);
  if constexpr (std::is_floating_point_v<T>) {
    constexpr int kWidth = 4 * Lanes<T>::kCount;
    T sums[kWidth] = {};
    const auto add = [&](auto&& term) {
      int64_t i = 0;
      for (; i + kWidth <= n; i += kWidth) {
        for (int j = 0; j < kWidth; ++j) sums[j] += term(x[i + j]);
      }
      int j = 0;
      for (; i + Lanes<T>::kCount <= n; i += Lanes<T>::kCount, j += Lanes<T>::kCount) {
        for (int k = 0; k < Lanes<T>::kCount; ++k) sums[j + k] += term(x[i + k]);
      }
      for (; i < n; ++i, ++j) sums[j] += term(x[i]);
      for (int width = kWidth / 2; width > 0; width /= 2) {
        for (int k = 0; k < width; ++k) sums[k] += sums[k + width];
      }
      return sums[0];
    };
    if (kind != PoolKind::kLp) return add([](T v) { return v; }) / static_cast<T>(n);
    if (p == 1) return add([](T v) { return std::abs(v); });
    if (p == 2) return std::sqrt(add([](T v) { return v * v; }));
    return std::pow(add([p](T v) { return std::pow(std::abs(v), static_cast<T>(p)); }), T(1) / static_cast<T>(p));
  }
  return T(0);
}

template <class T>
void global_pool_rows(PoolKind kind, int p, int64_t plane, const void* x, void* y, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    static_cast<T*>(y)[i] = global_pool(kind, p, static_cast<const T*>(x) + i * plane, plane);
  }
}

}  // namespace

// Adds elements in the order of global_pool.
void run_global_average_nhwc(int64_t plane, int64_t channels, const float* x, float* y, int64_t begin, int64_t end) {
  using L = Lanes<float>;
  constexpr int64_t kChains = 4 * L::kCount;
  for (int64_t image = begin; image < end; ++image) {
    for (int64_t c = 0; c < channels; c += L::kCount) {
      const auto mask = L::mask(static_cast<int>(std::min<int64_t>(L::kCount, channels - c)));
      const float* from = x + image * plane * channels + c;
      L::V sums[kChains];
      std::fill_n(sums, kChains, L::zero());
      for (int64_t i = 0; i < plane; ++i, from += channels) {
        sums[i % kChains] = L::add(sums[i % kChains], L::load(from, mask));
      }
      for (int64_t width = kChains / 2; width > 0; width /= 2) {
        for (int64_t j = 0; j < width; ++j) sums[j] = L::add(sums[j], sums[j + width]);
      }
      L::store(y + image * channels + c, mask, L::div(sums[0], L::splat(static_cast<float>(plane))));
    }
  }
}

void run_global_pool(PoolKind kind, ElementType type, int p, int64_t plane, const void* x, void* y, int64_t begin,
                     int64_t end) {
  switch (type) {
    case ElementType::kDouble:
      return global_pool_rows<double>(kind, p, plane, x, y, begin, end);
    case ElementType::kInt8:
      return global_pool_rows<int8_t>(kind, p, plane, x, y, begin, end);
    case ElementType::kUint8:
      return global_pool_rows<uint8_t>(kind, p, plane, x, y, begin, end);
    default:
      return global_pool_rows<float>(kind, p, plane, x, y, begin, end);
  }
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
