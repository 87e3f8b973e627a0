#pragma once
// The order in which a reduction combines the elements of a row (kernels/reduce.h states it in words), as templates
// over what combines them:
//
//   kernels/isa/combine_rows.h  vectors of one instruction set: kernels
//   jit/lane_maths.cc           LLVM IR that is written out, since the length is known
//   jit/reductions.cc           LLVM IR with a loop over tiles, which several reductions share
//   jit/dynamic_sums.cc         LLVM IR with loops, since only the run knows the length
//
// A stands for one of them: a block of a row, or of several rows that are reduced at once. A has
//
//   lanes()                 how many elements a vector has: a power of two
//   first()                 the position of the first element of the block
//   after(i, n)             position i + n
//   has(n), lacks(n)        whether the block has at least n elements, or fewer
//   element(i), vector(i)   the element at position i, the vector that begins there (of each row)
//   combine(x, y)           the sum, product or extreme of two elements, or of two vectors lane by lane
//   split(v, fn)            fn(lower half of the lanes, upper half); v itself if it has one lane
//   Element                 what a block is combined into
//   new_vector(), new_position()   variables
//   either(is, yes, no)     runs yes() or no()
//   each(i, step, fn)       fn(i) and i += step, as long as the block has `step` elements from position i on

#include <cstddef>

namespace treadle::kernels::sum_order {

#define TREADLE_SUM_ORDER [[gnu::always_inline]] inline

// A block of floats is multiplied in order if it is short. From kLeastInLanes elements on it is multiplied in
// kProductLanes lanes, whose number is the same for every instruction set. Native code writes out short rows only.
inline constexpr size_t kLeastInLanes = 384, kProductLanes = 8;

// Combines the elements from position i on with `sum`, in order.
template <class A, class I, class Sum>
TREADLE_SUM_ORDER void take_elements(const A& a, I& i, Sum& sum) {
  a.each(i, 1, [&](const auto& at) { sum = a.combine(sum, a.element(at)); });
}

// Combines the whole vectors from position i on with `sum`, in order.
template <class A, class I, class Sum>
TREADLE_SUM_ORDER void take_vectors(const A& a, I& i, Sum& sum) {
  a.each(i, a.lanes(), [&](const auto& at) { sum = a.combine(sum, a.vector(at)); });
}

// Combines all whole vectors of a block that has one at least: four side by side as long as there are four, then single
// ones. `i` becomes the position behind them.
template <class A, class I, class Sum>
TREADLE_SUM_ORDER void combine_vectors(const A& a, I& i, Sum& sum) {
  const auto lanes = a.lanes();
  a.either(
      a.has(4 * lanes),
      [&] {
        Sum sums[] = {a.new_vector(), a.new_vector(), a.new_vector(), a.new_vector()};
        for (size_t k = 0; k < 4; ++k) sums[k] = a.vector(a.after(a.first(), k * lanes));
        i = a.after(a.first(), 4 * lanes);
        a.each(i, 4 * lanes, [&](const auto& at) {
          for (size_t k = 0; k < 4; ++k) {
            const auto next = a.vector(a.after(at, k * lanes));
            sums[k] = a.combine(sums[k], next);
          }
        });
        const auto low = a.combine(sums[0], sums[1]), high = a.combine(sums[2], sums[3]);
        sum = a.combine(low, high);
      },
      [&] {
        sum = a.vector(a.first());
        i = a.after(a.first(), lanes);
      });
  take_vectors(a, i, sum);
}

// Combines the lower half of a vector's lanes with the upper half, until there is one lane.
template <class Element, class A, class V>
TREADLE_SUM_ORDER Element fold_lanes(const A& a, const V& v) {
  return a.split(v, [&](const auto& low, const auto& high) { return fold_lanes<Element>(a, a.combine(low, high)); });
}

// Combines a block of one element at least: its whole vectors, the lanes of these, then the elements that are left.
template <class A, class Sum>
TREADLE_SUM_ORDER void combine_block(const A& a, Sum& sum) {
  auto i = a.new_position();
  a.either(
      a.lacks(a.lanes()),
      [&] {
        sum = a.element(a.first());
        i = a.after(a.first(), 1);
      },
      [&] {
        auto vector = a.new_vector();
        combine_vectors(a, i, vector);
        sum = fold_lanes<typename A::Element>(a, vector);
      });
  take_elements(a, i, sum);
}

// Combines a block of one element at least in order.
template <class A, class Sum>
TREADLE_SUM_ORDER void combine_in_order(const A& a, Sum& sum) {
  auto i = a.new_position();
  sum = a.element(a.first());
  i = a.after(a.first(), 1);
  take_elements(a, i, sum);
}

// Positions of a block whose length is known where its elements are combined.
struct KnownLength {
  size_t n;

  static constexpr size_t first() { return 0; }
  static constexpr size_t after(size_t i, size_t more) { return i + more; }
  constexpr bool has(size_t least) const { return n >= least; }
  constexpr bool lacks(size_t least) const { return n < least; }
  static constexpr size_t new_position() { return 0; }
  template <class Yes, class No>
  TREADLE_SUM_ORDER void either(bool is, const Yes& yes, const No& no) const {
    is ? yes() : no();
  }
  template <class Fn>
  TREADLE_SUM_ORDER void each(size_t& i, size_t step, const Fn& fn) const {
    for (; i + step <= n; i += step) fn(i);
  }
};

}  // namespace treadle::kernels::sum_order
