#pragma once
// Sorting and selecting in place, asking in between whether to stop (base/stop.h): std::sort of a hundred million
// positions takes ten seconds without asking. A large range is partitioned as in quicksort until its parts are sorted
// in a moment. If parts do not shrink that way, they are heap-sorted, so n log n comparisons are enough.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

#include "base/stop.h"
#include "kernels/costs.h"

namespace treadle::kernels {

template <class T, class Before>
class Sorter {
 public:
  // `before`: whether one item precedes another; no two items may be equal. `compare_ns`: estimated time of a call.
  Sorter(Before before, double compare_ns)
      : before_(std::move(before)),
        compare_ns_(compare_ns),
        small_(std::clamp(static_cast<int64_t>(kStopCheckNs / (kComparisons * compare_ns)), int64_t{16}, kMostSmall)) {}

  // False if told to stop; the items are then in any order.
  bool sort(T* items, int64_t count) { return sort(items, count, depth_of(count)); }

  // Moves the `k` items that come first to the front, in any order.
  bool select(T* items, int64_t count, int64_t k) {
    for (int depth = depth_of(count); count > small_ && k > 0 && k < count; --depth) {
      if (depth == 0) return heap_sort(items, count);
      const int64_t left = part(items, count);
      if (left < 0) return false;
      if (k <= left) {
        count = left;
      } else {
        items += left;
        count -= left;
        k -= left;
      }
    }
    if (k > 0 && k < count) std::nth_element(items, items + k, items + count, std::ref(before_));
    return goes_on(count);
  }

 private:
  static constexpr double kComparisons = 16;  // comparisons for each item of a small part
  static constexpr int64_t kMostSmall = int64_t{1} << 16;

  static int depth_of(int64_t count) { return 2 * std::bit_width(static_cast<uint64_t>(count)); }
  bool goes_on(int64_t comparisons) { return !stop_.after(compare_ns_ * static_cast<double>(comparisons)); }

  bool sort(T* items, int64_t count, int depth) {
    while (count > small_) {
      if (depth-- == 0) return heap_sort(items, count);
      const int64_t left = part(items, count);
      if (left < 0) return false;
      // Sorts the smaller part recursively, so the depth of the stack is logarithmic.
      if (left < count - left) {
        if (!sort(items, left, depth)) return false;
        items += left;
        count -= left;
      } else {
        if (!sort(items + left, count - left, depth)) return false;
        count = left;
      }
    }
    std::sort(items, items + count, std::ref(before_));
    return goes_on(static_cast<int64_t>(kComparisons) * count);
  }

  const T& median(const T& a, const T& b, const T& c) {
    if (before_(a, b)) return before_(b, c) ? b : before_(a, c) ? c : a;
    return before_(a, c) ? a : before_(b, c) ? c : b;
  }

  // Partitions the items. Returns the number of items before the cut, neither 0 nor `count`; -1 if told to stop.
  int64_t part(T* items, int64_t count) {
    const int64_t step = count / 9;
    const auto of_three = [&](int64_t at) -> const T& {
      return median(items[at], items[at + step], items[at + 2 * step]);
    };
    // The median of nine items: some items come before it and some behind.
    const T pivot = median(of_three(0), of_three(3 * step), of_three(6 * step));
    for (int64_t i = -1, j = count;;) {
      do {
        if (!goes_on(1)) return -1;
      } while (before_(items[++i], pivot));
      do {
        if (!goes_on(1)) return -1;
      } while (before_(pivot, items[--j]));
      if (i >= j) return j + 1;
      std::swap(items[i], items[j]);
    }
  }

  bool heap_sort(T* items, int64_t count) {
    const auto steps = static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(count)));
    for (int64_t n = 2; n <= count; ++n) {
      std::push_heap(items, items + n, std::ref(before_));
      if (!goes_on(steps)) return false;
    }
    for (int64_t n = count; n > 1; --n) {
      std::pop_heap(items, items + n, std::ref(before_));
      if (!goes_on(steps)) return false;
    }
    return true;
  }

  Before before_;
  const double compare_ns_;
  const int64_t small_;
  StopPoll stop_;
};

template <class T, class Before>
bool sort(T* items, int64_t count, Before before, double compare_ns = costs::kComparisonNs) {
  return Sorter<T, Before>(std::move(before), compare_ns).sort(items, count);
}

template <class T, class Before>
bool select(T* items, int64_t count, int64_t k, Before before, double compare_ns = costs::kComparisonNs) {
  return Sorter<T, Before>(std::move(before), compare_ns).select(items, count, k);
}

}  // namespace treadle::kernels
