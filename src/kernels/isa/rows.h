#pragma once
// Makes row functions of the definitions in elementwise_functions.h.
//
// A row of n elements runs in full vectors if n is at least one vector, in vectors of 16 bytes if n is at least one of
// those, otherwise one by one. The last vector of a row ends at the row's end and may overlap the one before. Its
// inputs are read before anything is written, so a row may be computed in place.

#include <utility>

#include "kernels/elementwise_functions.h"
#include "kernels/isa/tables.h"
#include "kernels/isa/vector.h"

#if defined(__clang__)
#define TREADLE_SCALAR_LOOP _Pragma("clang loop vectorize(disable) interleave(disable) unroll(disable)")
#else
#define TREADLE_SCALAR_LOOP
#endif

namespace treadle::kernels {
namespace TREADLE_ISA_NAMESPACE {

template <int N>
struct Lanes {
  static constexpr int value = N;
};

template <int N, class Load, class Finish>
TREADLE_ALWAYS_INLINE void vector_loop(size_t n, Load load, Finish finish) {
  const size_t last = n - N;
  const auto tail = load(Lanes<N>(), last);
  for (size_t i = 0; i < last; i += N) finish(i, load(Lanes<N>(), i));
  finish(last, tail);
}

// load(Lanes<N>, i) reads N elements from i on; finish(i, loaded) computes and writes them.
template <class T, bool kByLane, class Load, class Finish>
TREADLE_ALWAYS_INLINE void row_loop(size_t n, Load load, Finish finish) {
  if constexpr (!kByLane) {
    if (n >= kFullLanes<T>) return vector_loop<kFullLanes<T>>(n, load, finish);
    if constexpr (kSmallLanes<T> < kFullLanes<T>) {
      if (n >= kSmallLanes<T>) return vector_loop<kSmallLanes<T>>(n, load, finish);
    }
  }
  TREADLE_SCALAR_LOOP
  for (size_t i = 0; i < n; ++i) finish(i, load(Lanes<1>(), i));
}

template <class T, int N>
TREADLE_ALWAYS_INLINE void store_result(void* out, size_t i, Vec<T, N> value) {
  value.store(static_cast<T*>(out) + i);
}
template <size_t kBytes, int N>
TREADLE_ALWAYS_INLINE void store_result(void* out, size_t i, Mask<kBytes, N> mask) {
  to_bool_bytes(mask).store(static_cast<uint8_t*>(out) + i);
}

template <class Op>
concept ByLane = requires { Op::kByLane; };

template <class Op, class T>
concept InTwoPasses = requires(Vec<T, 1> v) {
  Op::first(v);
  Op::second(v, v);
};

// Computes a stretch of the row at a time. The results of the first pass stay in first-level cache. x may be `out`.
template <class Op, class T>
void run_two_passes(const T* x, T* out, size_t n) {
  constexpr size_t kStretch = 256;
  alignas(kVectorBytes) T made[2 * kStretch];
  for (size_t count = 0; n > 0; n -= count, x += count, out += count) {
    count = n < 2 * kStretch ? n : kStretch;  // a short rest belongs to the stretch before it
    row_loop<T, false>(
        count, [x](auto lanes, size_t i) { return Vec<T, lanes.value>::load(x + i); },
        [&made](size_t i, auto v) { Op::first(v).store(made + i); });
    row_loop<T, false>(
        count,
        [x, &made](auto lanes, size_t i) {
          using V = Vec<T, lanes.value>;
          return std::pair<V, V>{V::load(made + i), V::load(x + i)};
        },
        [out](size_t i, const auto& in) { Op::second(in.first, in.second).store(out + i); });
  }
}

template <class Op, class T>
struct UnaryRow {
  static uint32_t run(const void* a, const void*, void* out, size_t n, const ElementwiseParams* params) {
    const T* x = static_cast<const T*>(a);
    const auto load = [x](auto lanes, size_t i) { return Vec<T, lanes.value>::load(x + i); };
    if constexpr (InTwoPasses<Op, T>) {
      run_two_passes<Op>(x, static_cast<T*>(out), n);
    } else if constexpr (requires(Vec<T, 1> v) { Op::eval(v); }) {
      row_loop<T, ByLane<Op>>(n, load, [out](size_t i, auto v) { store_result(out, i, Op::eval(v)); });
    } else if constexpr (std::is_integral_v<T>) {
      T* y = static_cast<T*>(out);
      for (size_t i = 0; i < n; ++i) y[i] = Op::template integer<T>(x[i], params->alpha, params->beta);
    } else {
      const T alpha = static_cast<T>(params->alpha);
      const T beta = static_cast<T>(params->beta);
      row_loop<T, ByLane<Op>>(n, load, [out, alpha, beta](size_t i, auto v) {
        using V = decltype(v);
        store_result(out, i, Op::eval(v, functions::Params<V>{V(alpha), V(beta)}));
      });
    }
    return kOk;
  }
};

enum class Form { kVectorVector, kVectorScalar, kScalarVector };

template <class V>
struct Pair {
  V a;
  V b;
};

template <class Op, class T, Form kForm>
struct BinaryRow {
  static uint32_t run(const void* a, const void* b, void* out, size_t n, const ElementwiseParams*) {
    const T* x = static_cast<const T*>(a);
    const T* y = static_cast<const T*>(b);
    if constexpr (std::is_integral_v<T> && requires(T t, uint32_t& e) { Op::template integer<T>(t, t, e); }) {
      return by_element(x, y, static_cast<T*>(out), n);
    } else {
      if constexpr (kForm == Form::kVectorVector) {
        row_loop<T, ByLane<Op>>(
            n,
            [x, y](auto lanes, size_t i) {
              using V = Vec<T, lanes.value>;
              return Pair<V>{V::load(x + i), V::load(y + i)};
            },
            [out](size_t i, auto pair) { store_result(out, i, Op::eval(pair.a, pair.b)); });
      } else {
        if (n == 0) return kOk;
        const T scalar = kForm == Form::kVectorScalar ? *y : *x;
        const T* vector = kForm == Form::kVectorScalar ? x : y;
        row_loop<T, ByLane<Op>>(
            n, [vector](auto lanes, size_t i) { return Vec<T, lanes.value>::load(vector + i); },
            [out, scalar](size_t i, auto v) {
              using V = decltype(v);
              if constexpr (kForm == Form::kVectorScalar) {
                store_result(out, i, Op::eval(v, V(scalar)));
              } else {
                store_result(out, i, Op::eval(V(scalar), v));
              }
            });
      }
      return kOk;
    }
  }

 private:
  static uint32_t by_element(const T* x, const T* y, T* out, size_t n) {
    uint32_t error = kOk;
    if (n == 0) return error;
    const T first_x = *x;  // the output may overwrite the scalar
    const T first_y = *y;
    for (size_t i = 0; i < n; ++i) {
      out[i] = Op::template integer<T>(kForm == Form::kScalarVector ? first_x : x[i],
                                       kForm == Form::kVectorScalar ? first_y : y[i], error);
    }
    return error;
  }
};

template <class Op, class T>
struct ClipRow {
  static uint32_t run(const void* a, const void* bounds, void* out, size_t n, const ElementwiseParams*) {
    const T* x = static_cast<const T*>(a);
    const T low = static_cast<const T*>(bounds)[0];
    const T high = static_cast<const T*>(bounds)[1];
    if constexpr (std::is_floating_point_v<T>) {
      if (low != low || high != high) {  // as by Min and Max
        std::fill_n(static_cast<T*>(out), n, low != low ? low : high);
        return kOk;
      }
    }
    row_loop<T, false>(
        n, [x](auto lanes, size_t i) { return Vec<T, lanes.value>::load(x + i); },
        [out, low, high](size_t i, auto v) {
          using V = decltype(v);
          store_result(out, i, Op::eval(v, V(low), V(high)));
        });
    return kOk;
  }
};

template <class Op, class T, int kInputs, OpDomain kDomain>
void add_operation(ElementwiseRows& rows) {
  if constexpr (in_domain<T, kDomain>() && !std::is_same_v<Op, functions::Where>) {
    if constexpr (kInputs == 1) {
      rows.vv = UnaryRow<Op, T>::run;
    } else if constexpr (kInputs == 2) {
      rows.vv = BinaryRow<Op, T, Form::kVectorVector>::run;
      rows.vs = BinaryRow<Op, T, Form::kVectorScalar>::run;
      rows.sv = BinaryRow<Op, T, Form::kScalarVector>::run;
    } else {
      rows.vs = ClipRow<Op, T>::run;
    }
  }
}

template <class T>
void add_elementwise_rows(KernelTable& table, ComputeType type) {
  const auto rows = [&](ElementwiseOp op) -> ElementwiseRows& {
    return table.elementwise[static_cast<int>(op)][static_cast<int>(type)];
  };
#define X(name, inputs, domain, ...) \
  add_operation<functions::name, T, inputs, OpDomain::k##domain>(rows(ElementwiseOp::k##name));
  TREADLE_ELEMENTWISE_OPS(X)
#undef X
}

}  // namespace TREADLE_ISA_NAMESPACE
}  // namespace treadle::kernels
