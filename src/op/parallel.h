#pragma once
// Kernels over several threads: base/thread_pool.h with errors.

#include <algorithm>
#include <atomic>
#include <mutex>

#include "base/thread_pool.h"
#include "kernels/convert.h"
#include "kernels/normalize.h"
#include "op/context.h"

namespace treadle {

// How many parts of scratch a loop needs: one for each thread that may take part.
inline size_t scratch_parts(int64_t units, double ns_per_unit, int threads) {
  const Spread how = finest_spread(static_cast<double>(units) * ns_per_unit, threads);
  return static_cast<size_t>(std::clamp<int64_t>(units, 1, how.threads));
}

// kernels::convert over several threads.
void parallel_convert(const kernels::TileConverter& converter, const void* from, void* to, size_t count);

// Normalisation of rows over several threads.
void parallel_normalize(const kernels::NormRows& norm, const void* x, const void* scale, const void* bias, void* y,
                        void* mean, void* inv_std);

// parallel_for over a kernel that can fail: fn(begin, end, worker) returns 0 or a KernelError. If several ranges fail,
// the error and the numbers of the lowest range are returned.
template <class Fn>
uint32_t parallel_kernel(int64_t units, double ns_per_unit, Fn&& fn) {
  struct First {
    std::mutex mutex;
    int64_t begin = INT64_MAX;
    uint32_t code = 0;
    KernelFailure failure;
  } first;
  parallel_for(units, ns_per_unit, [&](int64_t begin, int64_t end, int worker) {
    const uint32_t code = fn(begin, end, worker);
    if (code == 0) return;
    const std::lock_guard lock(first.mutex);
    if (begin < first.begin) {
      first.begin = begin;
      first.code = code;
      first.failure = kernel_failure();
    }
  });
  if (first.code != 0) kernel_failure() = first.failure;
  return first.code;
}

}  // namespace treadle
