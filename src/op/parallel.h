#pragma once
// Kernels over several threads: base/thread_pool.h with errors.

#include <algorithm>
#include <atomic>
#include <mutex>

#include "base/thread_pool.h"
#include "op/context.h"

namespace treadle {

// Scratch that each thread of a loop needs for itself: as many parts as the loop may use threads.
inline int scratch_parts(const PrepareContext& ctx, int64_t units, double ns_per_unit) {
  return units > 1 ? spread(units, ns_per_unit, ctx.threads).threads : 1;
}

// parallel_for over a kernel that can fail: fn(begin, end, worker) returns 0 or a KernelError. Of several failures the
// one of the lowest range counts, with its numbers.
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
