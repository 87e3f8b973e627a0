#pragma once
// Resampling along one axis of a plane.

#include <cstdint>
#include <vector>

#include "base/stop.h"
#include "ops/costs.h"

namespace treadle::image_ops {

// [outer, in, inner] -> [outer, out, inner]; output i is the sum over its taps of weight * input, taps in order.
template <class T>
struct ResamplePass {
  int64_t outer = 1, in = 0, out = 0, inner = 1, taps = 1;
  std::vector<int32_t> indices;
  std::vector<T> weights;

  // Ends early if the work is to stop.
  void run(const T* from, T* to) const {
    if (taps == 2) return inner == 1 ? along_rows<2>(from, to) : across_rows<2>(from, to);
    if (taps == 4) return inner == 1 ? along_rows<4>(from, to) : across_rows<4>(from, to);
    inner == 1 ? along_rows<0>(from, to) : across_rows<0>(from, to);
  }

 private:
  // kTaps: 0 if the number is known at run time only.
  template <int kTaps>
  void along_rows(const T* from, T* to) const {
    const int64_t count = kTaps ? kTaps : taps;
    StopPoll stop;
    for (int64_t o = 0; o < outer && !stop.after(costs::kResizeTapNs * static_cast<double>(out * count));
         ++o, from += in, to += out) {
      const int32_t* index = indices.data();
      const T* weight = weights.data();
      for (int64_t i = 0; i < out; ++i, index += count, weight += count) {
        T sum = weight[0] * from[index[0]];
        for (int64_t k = 1; k < count; ++k) sum += weight[k] * from[index[k]];
        to[i] = sum;
      }
    }
  }

  template <int kTaps>
  void across_rows(const T* from, T* to) const {
    const int64_t count = kTaps ? kTaps : taps;
    StopPoll stop;
    for (int64_t o = 0; o < outer; ++o, from += in * inner) {
      const int32_t* index = indices.data();
      const T* weight = weights.data();
      for (int64_t i = 0; i < out; ++i, to += inner, index += count, weight += count) {
        if (stop.after(costs::kResizeTapNs * static_cast<double>(inner * count))) return;
        if constexpr (kTaps == 0) {
          sum_rows(from, index, weight, to);
        } else {
          const T* rows[kTaps];
          for (int k = 0; k < kTaps; ++k) rows[k] = from + index[k] * inner;
          for (int64_t j = 0; j < inner; ++j) {
            T sum = weight[0] * rows[0][j];
            for (int k = 1; k < kTaps; ++k) sum += weight[k] * rows[k][j];
            to[j] = sum;
          }
        }
      }
    }
  }

  void sum_rows(const T* from, const int32_t* index, const T* weight, T* to) const {
    for (int64_t j = 0; j < inner; ++j) to[j] = weight[0] * from[index[0] * inner + j];
    for (int64_t k = 1; k < taps; ++k) {
      const T* row = from + index[k] * inner;
      for (int64_t j = 0; j < inner; ++j) to[j] += weight[k] * row[j];
    }
  }
};

}  // namespace treadle::image_ops
