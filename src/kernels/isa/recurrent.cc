#include "kernels/recurrent.h"

#include "kernels/isa/rows.h"
#include "kernels/recurrent_cells.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

namespace {

using functions::Sigmoid;
using functions::Tanh;
using math::sigmoid_divisor;

// A step goes over a stretch of a row in several passes, one function each; intermediate results stay in first-level
// cache. A short pass lets the processor work on several vectors at a time, which a loop with all functions of a step
// does not.
constexpr size_t kStretch = 128;

// Calls fn(first, count) over stretches of a row; a short rest belongs to the stretch before it.
template <class Fn>
TREADLE_ALWAYS_INLINE void over_stretches(size_t hidden, Fn fn) {
  for (size_t first = 0; first < hidden;) {
    const size_t left = hidden - first, count = left < 2 * kStretch ? left : kStretch;
    fn(first, count);
    first += count;
  }
}
template <class T>
struct Stretch {
  alignas(64) T at[2 * kStretch];
};

template <class V>
struct Three {
  V a, b, c;
};

// out[k] = eval(a[k]), or eval of the elements k of two or three rows. `out` may be one of the rows.
template <class T, class Eval>
TREADLE_ALWAYS_INLINE void pass(size_t count, T* out, Eval eval, const T* a) {
  row_loop<T, false>(
      count, [=](auto lanes, size_t k) { return Vec<T, lanes.value>::load(a + k); },
      [=](size_t k, auto x) { eval(x).store(out + k); });
}
template <class T, class Eval>
TREADLE_ALWAYS_INLINE void pass(size_t count, T* out, Eval eval, const T* a, const T* b) {
  row_loop<T, false>(
      count,
      [=](auto lanes, size_t k) {
        using V = Vec<T, lanes.value>;
        return Pair<V>{V::load(a + k), V::load(b + k)};
      },
      [=](size_t k, auto x) { eval(x.a, x.b).store(out + k); });
}
template <class T, class Eval>
TREADLE_ALWAYS_INLINE void pass(size_t count, T* out, Eval eval, const T* a, const T* b, const T* c) {
  row_loop<T, false>(
      count,
      [=](auto lanes, size_t k) {
        using V = Vec<T, lanes.value>;
        return Three<V>{V::load(a + k), V::load(b + k), V::load(c + k)};
      },
      [=](size_t k, auto x) { eval(x.a, x.b, x.c).store(out + k); });
}

// The values that are read from a row before any is written.
template <class V>
struct GruLanes {
  V x, u, candidate, u_candidate;
};

template <class V>
struct UpdateLanes {
  V gate, z, h;
};

constexpr auto kDivisor = [](auto x) { return sigmoid_divisor(x); };
constexpr auto kTanhOver = [](auto x, auto divisor) { return cells::tanh_over(x, divisor); };

template <class T>
void lstm(const void* gates, const void* c, void* h_out, void* c_out, size_t hidden) {
  const T *g = static_cast<const T*>(gates), *before = static_cast<const T*>(c);
  T *h = static_cast<T*>(h_out), *after = static_cast<T*>(c_out);
  over_stretches(hidden, [=](size_t first, size_t count) {
    const T *i = g + first, *o = i + hidden, *f = o + hidden, *candidate = f + hidden;
    Stretch<T> s;
    pass(count, s.at, kDivisor, i);
    pass(count, s.at, kTanhOver, candidate, s.at);
    const auto update = [](auto forget, auto old, auto added) { return cells::lstm_state(forget, old, added); };
    pass(count, after + first, update, f, before + first, s.at);
    pass(count, s.at, kDivisor, o);
    pass(count, h + first, kTanhOver, after + first, s.at);
  });
}

template <class T>
void gru(const void* x_gates, const void* u_gates, const void* h_in, void* h_out, size_t hidden) {
  const T *x = static_cast<const T*>(x_gates), *u = static_cast<const T*>(u_gates), *h = static_cast<const T*>(h_in);
  T* out = static_cast<T*>(h_out);
  over_stretches(hidden, [=](size_t first, size_t count) {
    const T *xz = x + first, *uz = u + first, *xr = xz + hidden, *ur = uz + hidden;
    Stretch<T> candidate, divisor;
    row_loop<T, false>(
        count,
        [=](auto lanes, size_t k) {
          using V = Vec<T, lanes.value>;
          return GruLanes<V>{V::load(xr + k), V::load(ur + k), V::load(xr + hidden + k), V::load(ur + hidden + k)};
        },
        [&](size_t k, auto in) {
          cells::gru_candidate(in.x + in.u, in.u_candidate, in.candidate).store(candidate.at + k);
        });
    pass(count, divisor.at, [](auto a, auto b) { return sigmoid_divisor(a + b); }, xz, uz);
    const auto update = [](auto gate, auto d, auto old) { return cells::gru_state(gate, d, old); };
    pass(count, out + first, update, candidate.at, divisor.at, h + first);
  });
}

template <class T>
void gru_gates(const void* gates, const void* h_in, void* z_out, void* rh_out, size_t hidden) {
  const T *g = static_cast<const T*>(gates), *h = static_cast<const T*>(h_in);
  pass(hidden, static_cast<T*>(z_out), [](auto z) { return Sigmoid::eval(z); }, g);
  pass(hidden, static_cast<T*>(rh_out), [](auto r, auto old) { return old / sigmoid_divisor(r); }, g + hidden, h);
}

template <class T>
void gru_update(const void* gate_in, const void* z_in, const void* h_in, void* h_out, size_t hidden) {
  const T *gate = static_cast<const T*>(gate_in), *z = static_cast<const T*>(z_in), *h = static_cast<const T*>(h_in);
  T* out = static_cast<T*>(h_out);
  row_loop<T, false>(
      hidden,
      [=](auto lanes, size_t k) {
        using V = Vec<T, lanes.value>;
        return UpdateLanes<V>{V::load(gate + k), V::load(z + k), V::load(h + k)};
      },
      [=](size_t k, auto in) { cells::blend(in.z, Tanh::eval(in.gate), in.h).store(out + k); });
}

template <class T>
RecurrentRows rows_of() {
  return {lstm<T>, gru<T>, gru_gates<T>, gru_update<T>};
}

}  // namespace

const RecurrentRows& recurrent_rows(ComputeType type) {
  static const RecurrentRows f32 = rows_of<float>(), f64 = rows_of<double>();
  return type == ComputeType::kF64 ? f64 : f32;
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
