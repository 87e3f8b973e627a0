// Along an axis, in order: positions of extremes, running sums and products (reduce.h).

#include <algorithm>
#include <type_traits>

#include "kernels/convert.h"
#include "kernels/dispatch.h"
#include "kernels/isa/tables.h"
#include "kernels/reduce.h"
#include "kernels/types.h"

namespace treadle::kernels {

namespace {

constexpr size_t kColumns = 128;

// An axis of [outer, n, inner], and how its elements become T.
struct Axis {
  size_t outer, n, inner;
  TileConverter load;
  TileConverter store;

  // Calls f(first element, columns) for every outer index and chunk of columns; offsets count elements.
  template <class F>
  void for_each_chunk(F f) const {
    for (size_t o = 0; o < outer; ++o) {
      for (size_t c = 0; c < inner; c += kColumns) f(o * n * inner + c, std::min(inner - c, kColumns));
    }
  }
};

Axis make_axis(ElementType type, size_t outer, size_t n, size_t inner) {
  const ElementType computed = element_type_of(compute_type(type));
  return {outer, n, inner, make_converter(type, computed), make_converter(computed, type)};
}

// Elements [at, at + count) as T: in place, or converted into `buffer`.
template <class T>
const T* elements(const Axis& axis, const void* x, size_t at, size_t count, T* buffer) {
  const std::byte* from = static_cast<const std::byte*>(x) + at * axis.load.from_width;
  if (axis.load.step_count == 0) return reinterpret_cast<const T*>(from);
  convert(axis.load, from, buffer, count);
  return buffer;
}

template <bool kMax, class T>
bool beats(T value, T best, bool select_last) {
  if (value != value) return best == best || select_last;
  if (best != best) return false;
  if (value == best) return select_last;
  return kMax ? value > best : value < best;
}

template <bool kMax, class T>
void find_extremes(const Axis& axis, const void* input, int64_t* out, bool select_last) {
  T buffer[kColumns];
  T best[kColumns];
  size_t done = 0;
  axis.for_each_chunk([&](size_t first, size_t columns) {
    std::copy_n(elements<T>(axis, input, first, columns, buffer), columns, best);
    std::fill_n(out + done, columns, 0);
    for (size_t i = 1; i < axis.n; ++i) {
      const T* x = elements<T>(axis, input, first + i * axis.inner, columns, buffer);
      for (size_t c = 0; c < columns; ++c) {
        if (!beats<kMax>(x[c], best[c], select_last)) continue;
        best[c] = x[c];
        out[done + c] = static_cast<int64_t>(i);
      }
    }
    done += columns;
  });
}

template <bool kProduct, class T>
T step(T a, T b) {
  if constexpr (std::is_integral_v<T> && sizeof(T) >= 4) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(kProduct ? static_cast<U>(a) * static_cast<U>(b) : static_cast<U>(a) + static_cast<U>(b));
  } else {
    return static_cast<T>(kProduct ? a * b : a + b);
  }
}

template <bool kProduct, class T>
void accumulate(const Axis& axis, const void* input, void* output, const CumSumOptions& options) {
  T buffer[kColumns];
  T sum[kColumns];
  T result[kColumns];
  axis.for_each_chunk([&](size_t first, size_t columns) {
    std::fill_n(sum, columns, T(kProduct ? 1 : 0));
    for (size_t i = 0; i < axis.n; ++i) {
      const size_t at = first + (options.reverse ? axis.n - 1 - i : i) * axis.inner;
      const T* x = elements<T>(axis, input, at, columns, buffer);
      for (size_t c = 0; c < columns; ++c) {
        const T next = i == 0 ? x[c] : step<kProduct>(sum[c], x[c]);  // -0 stays
        result[c] = options.exclusive ? sum[c] : next;
        sum[c] = next;
      }
      convert(axis.store, result, static_cast<std::byte*>(output) + at * axis.load.from_width, columns);
    }
  });
}

}  // namespace

namespace {

template <bool kMax>
void find_extremes(ElementType type, const void* input, int64_t* out, size_t outer, size_t n, size_t inner,
                   bool select_last) {
  const ComputeType compute = compute_type(type);
  const auto rows = kernels().reduce.extreme_rows[kMax][static_cast<int>(compute)];
  if (rows && inner == 1 && element_type_of(compute) == type) return rows(input, outer, n, out, select_last);
  with_compute_type(compute, [&](auto zero) {
    find_extremes<kMax, decltype(zero)>(make_axis(type, outer, n, inner), input, out, select_last);
  });
}

}  // namespace

void arg_max(ElementType type, const void* input, int64_t* out, size_t outer, size_t n, size_t inner,
             bool select_last) {
  find_extremes<true>(type, input, out, outer, n, inner, select_last);
}

void arg_min(ElementType type, const void* input, int64_t* out, size_t outer, size_t n, size_t inner,
             bool select_last) {
  find_extremes<false>(type, input, out, outer, n, inner, select_last);
}

void cum_sum(ElementType type, const void* input, void* out, size_t outer, size_t n, size_t inner,
             const CumSumOptions& options) {
  with_compute_type(compute_type(type), [&](auto zero) {
    accumulate<false, decltype(zero)>(make_axis(type, outer, n, inner), input, out, options);
  });
}

void cum_prod(ElementType type, const void* input, void* out, size_t outer, size_t n, size_t inner,
              const CumSumOptions& options) {
  with_compute_type(compute_type(type), [&](auto zero) {
    accumulate<true, decltype(zero)>(make_axis(type, outer, n, inner), input, out, options);
  });
}

}  // namespace treadle::kernels
