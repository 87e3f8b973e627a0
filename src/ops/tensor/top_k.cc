#include <algorithm>
#include <cstring>
#include <numeric>

#include "kernels/convert.h"
#include "kernels/sort.h"
#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/parallel.h"
#include "op/pieces.h"
#include "op/work.h"
#include "ops/costs.h"
#include "ops/tensor/copy.h"

namespace treadle {
namespace {

// k as far as it is known.
Dim requested_count(const InferContext& c) {
  if (c.version() < 10) return c.attributes().get_int("k", 0);
  const auto k = c.dims_value(1);
  return k && k->size() == 1 ? (*k)[0] : Dim();
}

Status infer_top_k(InferContext& c) {
  if (const Shape* k = c.shape(1); c.version() >= 10 && k && k->size() > 1) {
    return error(Code::kInvalidArgument, "k has shape {}, expected one element", to_string(*k));
  }
  if (const Dim count = length_of(c, 1); c.version() >= 10 && count.is_known() && count.value() != 1) {
    return error(Code::kInvalidArgument, "k has {} elements, expected 1", count.value());
  }
  const Dim k = requested_count(c);
  if (k.is_known() && k.value() < 0) return error(Code::kInvalidArgument, "k is {}, expected 0 or more", k.value());
  const Shape* shape = c.shape(0);
  if (!shape) {
    c.set_output(0, c.element(0));
    c.set_output(1, ElementType::kInt64);
    return {};
  }
  TREADLE_ASSIGN(const int64_t axis,
                 normalize_axis(c.attributes().get_int("axis", -1), static_cast<int64_t>(shape->size())));
  Shape out = *shape;
  Dim& size = out[static_cast<size_t>(axis)];
  if (k.is_known() && size.is_known() && k.value() > size.value()) {
    return error(Code::kInvalidArgument, "k is {}, expected 0 to {}: the size of axis {}", k.value(), size.value(),
                 axis);
  }
  size = k;
  c.set_output(0, c.element(0), out);
  c.set_output(1, ElementType::kInt64, std::move(out));
  return {};
}

struct TopKState {
  int64_t outer = 1, n = 0, inner = 1, k = 0;
  bool largest = true;
  ElementType type{};
  size_t width = 0;
  kernels::TileConverter widen;                   // to the compute type
  uint32_t values = 0, indices = 0, scratch = 0;  // operands
};

// Scratch for one row: its elements as stored, the same widened, and positions.
size_t scratch_bytes(int64_t n) {
  return static_cast<size_t>(n) * (8 + 8 + 8);
}

// Whether a comes before b among the largest; a NaN counts as larger than any number.
template <class T>
bool larger(T a, T b) {
  return (a > b) | ((a != a) & (b == b));
}

// Whether x comes before y wherever they stand.
template <bool kLargest, class T>
bool beats(T x, T y) {
  return kLargest ? larger(x, y) : larger(y, x);
}

// Up to kMost positions of a row, in the order of their elements.
template <bool kLargest, class T>
struct First {
  static constexpr int64_t kMost = 16;

  const T* row;
  int64_t* positions;
  int64_t k, held = 0;

  T last() const { return row[positions[held - 1]]; }
  void offer(int64_t i) {
    const T element = row[i];
    if (held < k) {
      ++held;
    } else if (!beats<kLargest>(element, last())) {
      return;
    }
    int64_t at = held - 1;
    for (; at > 0 && beats<kLargest>(element, row[positions[at - 1]]); --at) positions[at] = positions[at - 1];
    positions[at] = i;
  }
};

template <bool kLargest, int64_t kCount, class T>
bool any_beats(const T* x, T last) {
  bool any = false;
  for (int64_t l = 0; l < kCount; ++l) any |= beats<kLargest>(x[l], last);
  return any;
}

// How many of `count` elements come before element i; of equal ones the first does.
template <bool kLargest, class T>
int64_t rank_of(const T* x, int64_t count, int64_t i) {
  int64_t rank = 0;
  for (int64_t j = 0; j < i; ++j) rank += static_cast<int64_t>(kLargest ? x[j] >= x[i] : x[j] <= x[i]);
  for (int64_t j = i + 1; j < count; ++j) rank += static_cast<int64_t>(kLargest ? x[j] > x[i] : x[j] < x[i]);
  return rank;
}

// Few of many in two passes without a branch that depends on single elements, which nobody can foretell: no fewer than
// k elements are at or before the k-th of the elements that come first in each lane, and hardly more; they are
// collected and ranked. For floats, of which every machine compares four at a time.
template <bool kLargest, class T>
class ByBound {
 public:
  enum class Outcome : uint8_t { kFound, kStopped, kNotForThis };  // the last: NaN, or too many equal ones

  ByBound(const T* row, int64_t n, int64_t k, StopPoll& stop) : row_(row), n_(n), k_(k), stop_(stop) {}

  static bool fits(int64_t n) { return std::is_same_v<T, float> && n >= 8 * kBlock; }

  Outcome run(int64_t* positions) {
    if (const Outcome o = find_bound(); o != Outcome::kFound) return o;
    if (const Outcome o = collect(); o != Outcome::kFound) return o;
    T values[kMost + 2 * kBlock];
    for (int64_t i = 0; i < count_; ++i) values[i] = row_[candidates_[i]];
    for (int64_t i = 0; i < count_; ++i) {
      if (const int64_t rank = rank_of<kLargest>(values, count_, i); rank < k_) positions[rank] = candidates_[i];
    }
    return Outcome::kFound;
  }

 private:
  static constexpr int64_t kLanes = 16, kBlock = 4 * kLanes, kMost = 128;

  Outcome find_bound() {
    T lanes[kLanes];
    int32_t is_nan[kLanes] = {};
    std::copy_n(row_, kLanes, lanes);
    for (int64_t begin = 0; begin + kBlock <= n_; begin += kBlock) {
      for (const T *x = row_ + begin, *end = x + kBlock; x < end; x += kLanes) {
        for (int64_t l = 0; l < kLanes; ++l) {
          lanes[l] = (kLargest ? x[l] > lanes[l] : x[l] < lanes[l]) ? x[l] : lanes[l];
          is_nan[l] |= -static_cast<int32_t>(x[l] != x[l]);
        }
      }
      if (stop_.after(costs::kTopKBoundBlockNs)) return Outcome::kStopped;
    }
    for (int64_t l = 0; l < kLanes; ++l) {
      if (is_nan[l] != 0) return Outcome::kNotForThis;
      if (rank_of<kLargest>(lanes, kLanes, l) == k_ - 1) bound_ = lanes[l];
    }
    return Outcome::kFound;
  }

  bool reaches(int64_t i) const { return kLargest ? row_[i] >= bound_ : row_[i] <= bound_; }
  void collect(int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      candidates_[count_] = i;
      count_ += static_cast<int64_t>(reaches(i));
    }
  }

  Outcome collect() {
    int64_t begin = 0;
    for (; begin + kBlock <= n_; begin += kBlock) {
      bool any = false;
      for (int64_t l = 0; l < kBlock; ++l) any |= reaches(begin + l);
      if (any) collect(begin, begin + kBlock);
      if (count_ > kMost) return Outcome::kNotForThis;
      if (stop_.after(costs::kTopKBoundBlockNs)) return Outcome::kStopped;
    }
    collect(begin, n_);
    const bool has_nan = std::any_of(row_ + begin, row_ + n_, [](T x) { return x != x; });
    return count_ > kMost || has_nan ? Outcome::kNotForThis : Outcome::kFound;
  }

  const T* row_;
  const int64_t n_, k_;
  StopPoll& stop_;
  T bound_{};
  int64_t count_ = 0;
  int64_t candidates_[kMost + 2 * kBlock];
};

// Few of many: the best ones so far are kept in order, and what does not beat the last of them is passed over by
// blocks and parts of blocks. Which elements of a part do is found out without a branch for each.
template <bool kLargest, class T>
bool select_few(const T* row, int64_t n, int64_t* positions, int64_t k, StopPoll& stop) {
  using Bound = ByBound<kLargest, T>;
  if (Bound::fits(n)) {
    const auto outcome = Bound(row, n, k, stop).run(positions);
    if (outcome != Bound::Outcome::kNotForThis) return outcome == Bound::Outcome::kFound;
  }
  constexpr int64_t kPart = 16, kBlock = 4 * kPart;
  First<kLargest, T> found{row, positions, k};
  int64_t i = 0;
  for (; i < k; ++i) found.offer(i);
  for (; i + kBlock <= n; i += kBlock) {
    const bool any = any_beats<kLargest, kBlock>(row + i, found.last());
    for (int64_t part = i; any && part < i + kBlock; part += kPart) {
      const T last = found.last();
      if (!any_beats<kLargest, kPart>(row + part, last)) continue;
      int64_t better[kPart], count = 0;
      for (int64_t l = part; l < part + kPart; ++l) {
        better[count] = l;
        count += beats<kLargest>(row[l], last);
      }
      for (int64_t l = 0; l < count; ++l) found.offer(better[l]);
    }
    if (stop.after(costs::kTopKFewBlockNs)) return false;
  }
  for (; i < n; ++i) found.offer(i);
  return true;
}

// More of many: those that beat the worst of the best ones so far are collected; when twice as many as wanted have come
// together, the better half stays. `before` orders positions.
template <bool kLargest, class T, class Before>
bool select_some(const T* row, int64_t n, int64_t* positions, int64_t k, Before before, StopPoll& stop) {
  constexpr int64_t kBlock = 64;
  std::iota(positions, positions + 2 * k, int64_t{0});
  int64_t held = 2 * k;
  T last{};
  const auto keep_better = [&] {
    if (!kernels::select(positions, held, k, before)) return false;
    held = k;
    last = row[*std::max_element(positions, positions + k, before)];
    return true;
  };
  if (!keep_better()) return false;
  for (int64_t begin = 2 * k; begin < n; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, n);
    bool any = false;
    for (int64_t i = begin; i < end; ++i) any |= beats<kLargest>(row[i], last);
    for (int64_t i = begin; any && i < end; ++i) {
      if (!beats<kLargest>(row[i], last)) continue;
      positions[held++] = i;
      if (held == 2 * k && !keep_better()) return false;
    }
    if (stop.after(costs::kTopKSomeBlockNs)) return false;
  }
  return kernels::select(positions, held, k, before);
}

// The positions of the k first elements of `row`, in order; of equal ones the lower position comes first.
template <class T>
bool select(const T* row, int64_t* positions, const TopKState& s, StopPoll& stop) {
  if (s.k <= First<true, T>::kMost) {
    return s.largest ? select_few<true>(row, s.n, positions, s.k, stop)
                     : select_few<false>(row, s.n, positions, s.k, stop);
  }
  auto before = [row, largest = s.largest](int64_t a, int64_t b) {
    const T x = row[a], y = row[b];
    if (larger(x, y)) return largest;
    if (larger(y, x)) return !largest;
    return a < b;
  };
  constexpr int64_t kManyTimes = 8;
  if (s.k <= s.n / kManyTimes) {
    const bool selected = s.largest ? select_some<true>(row, s.n, positions, s.k, before, stop)
                                    : select_some<false>(row, s.n, positions, s.k, before, stop);
    return selected && kernels::sort(positions, s.k, before);
  }
  const auto number = [&](int64_t begin, int64_t end) { std::iota(positions + begin, positions + end, begin); };
  return in_pieces(s.n, 1, stop, number) && kernels::select(positions, s.n, s.k, before) &&
         kernels::sort(positions, s.k, before);
}

template <class T, size_t W>
uint32_t run_top_k(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const TopKState*>(state);
  if (s.k == 0) return 0;
  const auto* in = static_cast<const char*>(slots[operands[0]]);
  auto* values = static_cast<char*>(slots[operands[s.values]]);
  auto* indices = static_cast<int64_t*>(slots[operands[s.indices]]);
  auto* stored = static_cast<char*>(slots[operands[s.scratch]]);
  auto* row = reinterpret_cast<T*>(stored + s.n * 8);
  auto* positions = reinterpret_cast<int64_t*>(stored + s.n * 16);
  StopPoll stop;
  for (int64_t o = 0; o < s.outer; ++o) {
    for (int64_t i = 0; i < s.inner; ++i) {
      const char* from = in + static_cast<size_t>(o * s.n * s.inner + i) * W;
      const size_t stride = static_cast<size_t>(s.inner) * W;
      const char* elements = from;
      if (s.inner > 1) {
        in_pieces(s.n, costs::kTopKColumnNs, stop, [&](int64_t begin, int64_t end) {
          for (int64_t j = begin; j < end; ++j) std::memcpy(stored + j * W, from + static_cast<size_t>(j) * stride, W);
        });
        elements = stored;
      }
      const bool as_computed = s.widen.step_count == 0;
      if (!as_computed) parallel_convert(s.widen, elements, row, static_cast<size_t>(s.n));
      const auto take = [&](int64_t begin, int64_t end) {
        for (int64_t j = begin; j < end; ++j) {
          const auto to = static_cast<size_t>((o * s.k + j) * s.inner + i);
          if (values) std::memcpy(values + to * W, elements + static_cast<size_t>(positions[j]) * W, W);
          if (indices) indices[to] = positions[j];
        }
      };
      if (!select(as_computed ? reinterpret_cast<const T*>(elements) : row, positions, s, stop) ||
          !in_pieces(s.k, costs::kTopKColumnNs, stop, take)) {
        return fail(KernelError::kStopped);
      }
    }
  }
  return 0;
}

template <class T>
KernelFn top_k_kernel(size_t width) {
  switch (width) {
    case 1:
      return run_top_k<T, 1>;
    case 2:
      return run_top_k<T, 2>;
    case 4:
      return run_top_k<T, 4>;
    default:
      return run_top_k<T, 8>;
  }
}

// The element type that is stored as a compute type, and the kernel for it.
std::pair<ElementType, KernelFn> compute_form(ComputeType type, size_t width) {
  switch (type) {
    case ComputeType::kF32:
      return {ElementType::kFloat, top_k_kernel<float>(width)};
    case ComputeType::kF64:
      return {ElementType::kDouble, top_k_kernel<double>(width)};
    case ComputeType::kI32:
      return {ElementType::kInt32, top_k_kernel<int32_t>(width)};
    case ComputeType::kI64:
      return {ElementType::kInt64, top_k_kernel<int64_t>(width)};
    case ComputeType::kU32:
      return {ElementType::kUint32, top_k_kernel<uint32_t>(width)};
    default:
      return {ElementType::kUint64, top_k_kernel<uint64_t>(width)};
  }
}

Status prepare_top_k(PrepareContext& c) {
  const Operand& in = c.inputs[0];
  TREADLE_ASSIGN(const int64_t axis, normalize_axis(c.attributes().get_int("axis", -1), in.rank()));
  auto* s = c.make_state<TopKState>();
  for (int64_t i = 0; i < in.rank(); ++i) {
    const int64_t size = in.dims[static_cast<size_t>(i)];
    if (i < axis) s->outer *= size;
    if (i == axis) s->n = size;
    if (i > axis) s->inner *= size;
  }
  s->k = c.version() < 10 ? c.attributes().get_int("k", 0) : c.int64s(1)[0];
  if (s->k < 0 || s->k > s->n) {
    return error(Code::kInvalidArgument, "k is {}, expected 0 to {}", s->k, s->n);
  }
  s->largest = c.attributes().get_int("largest", 1) != 0;
  s->type = in.type;
  const auto [wide, run] = compute_form(compute_type(in.type), byte_width(in.type));
  s->widen = kernels::make_converter(in.type, wide);
  s->values = static_cast<uint32_t>(c.inputs.size());
  s->indices = s->values + 1;
  s->scratch = c.scratch_operand();
  c.scratch_bytes = scratch_bytes(s->n);
  c.set_kernel(run, s);
  return {};
}

}  // namespace
}  // namespace treadle

TREADLE_OP(TopK, "") {
  op.since(1)
      .in("X", "T")
      .out("Values", "T")
      .out("Indices", "I")
      .attr("axis", -1)
      .required("k", ir::AttributeKind::kInt)
      .type("T", types::kFloats)
      .type("I", types::kInt64s);
  op.since(10).in("K", "tensor(int64)").drop_attr("k");
  op.since(11).attr("largest", 1).attr("sorted", 1).type("T", types::kNumeric);
  op.since(24).type("T", types::kNumericBf16);
  op.infer(infer_top_k)
      .prepare(prepare_top_k)
      .shape_inputs({1})
      .axes(axes::along_axis_attribute, axes::shift_axis)
      .work(work::search);
}
