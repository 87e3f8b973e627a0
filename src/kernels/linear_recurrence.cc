#include "kernels/linear_recurrence.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/thread_pool.h"
#include "kernels/costs.h"

namespace treadle::kernels {

namespace {

constexpr int64_t kBlock = 512;  // steps; fits first-level cache for the narrow states that use this

// Chunks that run side by side: enough to keep the processor busy while each waits for its last sum, and few enough for
// its registers.
constexpr int64_t chunks_for(int lanes) {
  return lanes <= 2 ? 8 : 4;
}

// The effect of a chunk of steps on a state: h becomes factor * h + sum.
template <class T>
struct Stretch {
  T factor, sum;
};

// Some neighbouring lanes. kA, kB: whether the operands a and b exist.
template <class T, bool kA, bool kB, int kLanes>
struct Lanes {
  static constexpr int64_t kChunks = chunks_for(kLanes);
  static constexpr int64_t kSteps = kBlock / kChunks;  // steps of a chunk

  const T *a, *b;
  T* rows;
  int64_t a_step, b_step, row_step;  // elements to the next step; negative in reverse

  void advance(T* h, int64_t t) const {
#pragma GCC unroll 8
    for (int l = 0; l < kLanes; ++l) {
      T next = h[l];
      if constexpr (kA) next = a[t * a_step + l] * next;
      if constexpr (kB) next = next + b[t * b_step + l];
      h[l] = next;
    }
  }

  // Computes stretches[chunk][lane].
  void measure(int64_t begin, Stretch<T>* stretches) const {
    T factor[kChunks][kLanes], sum[kChunks][kLanes];
    std::fill_n(&factor[0][0], kChunks * kLanes, T{1});
    std::fill_n(&sum[0][0], kChunks * kLanes, T{0});
    for (int64_t k = 0; kB && k < kSteps; ++k) {
#pragma GCC unroll 8
      for (int64_t c = 0; c < kChunks; ++c) advance(sum[c], begin + c * kSteps + k);
    }
    for (int64_t k = 0; kA && k < kSteps; ++k) {
#pragma GCC unroll 8
      for (int64_t c = 0; c < kChunks; ++c) {
#pragma GCC unroll 8
        for (int l = 0; l < kLanes; ++l) factor[c][l] *= a[(begin + c * kSteps + k) * a_step + l];
      }
    }
    for (int64_t i = 0; i < kChunks * kLanes; ++i) stretches[i] = {(&factor[0][0])[i], (&sum[0][0])[i]};
  }

  // Replaces the sum of each chunk by the state with which the chunk begins. `h`: in, the state before the block; out,
  // the state behind it.
  void follow(int64_t begin, Stretch<T>* stretches, T* h) const {
#pragma GCC unroll 8
    for (int64_t c = 0; c < kChunks; ++c) {
      T next[kLanes];
#pragma GCC unroll 8
      for (int l = 0; l < kLanes; ++l) {
        Stretch<T>& s = stretches[c * kLanes + l];
        next[l] = h[l];
        if constexpr (kA) next[l] = s.factor * next[l];
        if constexpr (kB) next[l] = next[l] + s.sum;
        s.sum = h[l];
      }
      if (!are_finite(next)) walk(begin + c * kSteps, h, next);
      std::copy_n(next, kLanes, h);
    }
  }

  // False if the state may be wrong: a factor or sum may overflow although no state does, and 0 times infinity is NaN.
  // Then the steps of the chunk are run one by one.
  static bool are_finite(const T* h) {
    if constexpr (std::is_floating_point_v<T>) return std::all_of(h, h + kLanes, [](T x) { return std::isfinite(x); });
    return true;
  }

  void walk(int64_t begin, const T* from, T* h) const {
    std::copy_n(from, kLanes, h);
    for (int64_t k = 0; k < kSteps; ++k) advance(h, begin + k);
  }

  void write(int64_t begin, const Stretch<T>* stretches) const {
    T h[kChunks][kLanes];
    for (int64_t i = 0; i < kChunks * kLanes; ++i) (&h[0][0])[i] = stretches[i].sum;
    for (int64_t k = 0; k < kSteps; ++k) {
#pragma GCC unroll 8
      for (int64_t c = 0; c < kChunks; ++c) write_step(h[c], begin + c * kSteps + k);
    }
  }

  void write_step(T* h, int64_t t) const {
    advance(h, t);
#pragma GCC unroll 8
    for (int l = 0; l < kLanes; ++l) rows[t * row_step + l] = h[l];
  }

  // Runs all steps. `h`: in, the first state; out, the last.
  void run(int64_t steps, T* h, Stretch<T>* shared) const {
    constexpr int64_t kStretches = kChunks * kLanes;
    const double half_block_ns = costs::kRecurrenceLaneNs * static_cast<double>(kBlock * kLanes) / 2;
    const int64_t blocks = steps / kBlock;
    if (shared) {
      parallel_for(blocks, half_block_ns, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) measure(i * kBlock, shared + i * kStretches);
      });
      for (int64_t i = 0; i < blocks; ++i) follow(i * kBlock, shared + i * kStretches, h);
      parallel_for(blocks, half_block_ns, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) write(i * kBlock, shared + i * kStretches);
      });
    } else {
      Stretch<T> own[kStretches];
      for (int64_t i = 0; i < blocks; ++i) {
        measure(i * kBlock, own);
        follow(i * kBlock, own, h);
        write(i * kBlock, own);
      }
    }
    for (int64_t t = blocks * kBlock; t < steps; ++t) write_step(h, t);
  }
};

template <class T, bool kA, bool kB, int kLanes>
void run_lanes(const LinearRecurrence& r, int64_t lane, const T* a, const T* b, const T* initial, T* rows, T* last,
               void* scratch) {
  if (r.steps == 0) {
    std::copy_n(initial + lane, kLanes, last + lane);
    return;
  }
  const int64_t end = r.reverse ? r.steps - 1 : 0, sign = r.reverse ? -1 : 1;
  Lanes<T, kA, kB, kLanes> lanes{nullptr, nullptr, rows + end * r.lanes + lane, 0, 0, sign * r.lanes};
  if constexpr (kA) {
    lanes.a = a + end * r.a_stride + lane;
    lanes.a_step = sign * r.a_stride;
  }
  if constexpr (kB) {
    lanes.b = b + end * r.b_stride + lane;
    lanes.b_step = sign * r.b_stride;
  }
  T h[kLanes];
  std::copy_n(initial + lane, kLanes, h);
  lanes.run(r.steps, h, static_cast<Stretch<T>*>(scratch));
  std::copy_n(h, kLanes, last + lane);
}

template <class T, bool kA, bool kB>
void run_tiles(const LinearRecurrence& r, const T* a, const T* b, const T* initial, T* rows, T* last, void* scratch) {
  int64_t lane = 0;
  for (; lane + 8 <= r.lanes; lane += 8) run_lanes<T, kA, kB, 8>(r, lane, a, b, initial, rows, last, scratch);
  if (r.lanes - lane >= 4) {
    run_lanes<T, kA, kB, 4>(r, lane, a, b, initial, rows, last, scratch);
    lane += 4;
  }
  if (r.lanes - lane >= 2) {
    run_lanes<T, kA, kB, 2>(r, lane, a, b, initial, rows, last, scratch);
    lane += 2;
  }
  if (r.lanes > lane) run_lanes<T, kA, kB, 1>(r, lane, a, b, initial, rows, last, scratch);
}

template <class T>
void run_typed(const LinearRecurrence& r, const void* a, const void* b, const void* initial, void* rows, void* last,
               void* scratch) {
  const auto run = a && b ? run_tiles<T, true, true> : a ? run_tiles<T, true, false> : run_tiles<T, false, true>;
  run(r, static_cast<const T*>(a), static_cast<const T*>(b), static_cast<const T*>(initial), static_cast<T*>(rows),
      static_cast<T*>(last), scratch);
}

}  // namespace

bool LinearRecurrence::supports(ElementType type) {
  switch (type) {
    case ElementType::kFloat:
    case ElementType::kDouble:
    case ElementType::kInt32:
    case ElementType::kUint32:
    case ElementType::kInt64:
    case ElementType::kUint64:
      return true;
    default:
      return false;
  }
}

size_t LinearRecurrence::scratch_bytes() const {
  const auto width = static_cast<int64_t>(2 * byte_width(type));
  return static_cast<size_t>(steps / kBlock * chunks_for(1) * std::min<int64_t>(lanes, 8) * width);
}

void LinearRecurrence::operator()(const void* a, const void* b, const void* initial, void* rows, void* last,
                                  void* scratch) const {
  switch (type) {
    case ElementType::kFloat:
      return run_typed<float>(*this, a, b, initial, rows, last, scratch);
    case ElementType::kDouble:
      return run_typed<double>(*this, a, b, initial, rows, last, scratch);
    case ElementType::kInt32:
    case ElementType::kUint32:
      return run_typed<uint32_t>(*this, a, b, initial, rows, last, scratch);
    default:
      return run_typed<uint64_t>(*this, a, b, initial, rows, last, scratch);
  }
}

}  // namespace treadle::kernels
