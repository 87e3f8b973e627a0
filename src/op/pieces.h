#pragma once
// Kernels with long loops that ask in between whether to stop (base/in_pieces.h).

#include <string_view>

#include "base/in_pieces.h"
#include "op/kernel.h"

namespace treadle {

// Estimated time to make a text or to compare two: per text, and with its bytes.
double text_ns(size_t bytes);
inline double text_ns(std::string_view text) {
  return text_ns(text.size());
}

// in_pieces() for a function that can fail: fn(begin, end) returns 0 or a KernelError, which ends the loop.
template <class Fn>
uint32_t kernel_in_pieces(int64_t units, double ns_per_unit, StopPoll& stop, Fn&& fn) {
  uint32_t failed = 0;
  const bool done = in_pieces(units, ns_per_unit, stop, [&](int64_t begin, int64_t end) {
    failed = fn(begin, end);
    return failed == 0;
  });
  return done || failed != 0 ? failed : fail(KernelError::kStopped);
}

template <class Fn>
uint32_t kernel_in_pieces(int64_t units, double ns_per_unit, Fn&& fn) {
  StopPoll stop;
  return kernel_in_pieces(units, ns_per_unit, stop, fn);
}

// The kernel's result: 0 if the loop came to its end, else kStopped.
inline uint32_t unless_stopped(bool done) {
  return done ? 0 : fail(KernelError::kStopped);
}

}  // namespace treadle
