#pragma once
// Long work on one thread that asks in between whether to stop (base/stop.h). Work with independent parts is better
// shared among threads: base/thread_pool.h.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/stop.h"

namespace treadle {

// Calls fn(begin, end) over [0, units), in order. `ns_per_unit`: a rough estimate. `stop` may be shared by successive
// loops. False: the work was told to stop before the end, or fn returned false.
template <class Fn>
bool in_pieces(int64_t units, double ns_per_unit, StopPoll& stop, Fn&& fn) {
  const auto run_piece = [&](int64_t begin, int64_t end) {
    if constexpr (std::is_same_v<std::invoke_result_t<Fn&, int64_t, int64_t>, bool>) {
      if (!fn(begin, end)) return false;
    } else {
      fn(begin, end);
    }
    return !stop.after(ns_per_unit * static_cast<double>(end - begin));
  };
  if (ns_per_unit * static_cast<double>(units) <= kShortNs) return units <= 0 || run_piece(0, units);
  Pace pace(kStopCheckNs / ns_per_unit);
  for (int64_t begin = 0; begin < units;) {
    const auto piece = static_cast<int64_t>(std::clamp(pace.next(), 1.0, 1e15));
    const int64_t end = units - begin > piece ? begin + piece : units;
    if (!run_piece(begin, end)) return false;
    if (end < units) pace.done(static_cast<double>(end - begin));
    begin = end;
  }
  return true;
}

template <class Fn>
bool in_pieces(int64_t units, double ns_per_unit, Fn&& fn) {
  StopPoll stop;
  return in_pieces(units, ns_per_unit, stop, fn);
}

// A rough estimate for reading, writing or first touching a byte.
inline constexpr double kByteNs = 0.1;

inline bool copy_in_pieces(void* to, const void* from, size_t bytes) {
  if (static_cast<double>(bytes) * kByteNs <= kShortNs) {
    if (bytes != 0) std::memcpy(to, from, bytes);  // either address may be null when there are no bytes
    return true;
  }
  return in_pieces(static_cast<int64_t>(bytes), kByteNs, [&](int64_t begin, int64_t end) {
    std::memcpy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin,
                static_cast<size_t>(end - begin));
  });
}

inline bool fill_in_pieces(void* to, int byte, size_t bytes) {
  return in_pieces(static_cast<int64_t>(bytes), kByteNs, [&](int64_t begin, int64_t end) {
    std::memset(static_cast<char*>(to) + begin, byte, static_cast<size_t>(end - begin));
  });
}

}  // namespace treadle
