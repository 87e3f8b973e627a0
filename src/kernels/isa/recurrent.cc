#include "kernels/recurrent.h"

#include "kernels/isa/rows.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

namespace {

using functions::Sigmoid;
using functions::Tanh;

// What is read of a row before anything is written.
template <class V>
struct LstmLanes {
  V i, o, f, candidate, c;
};

template <class V>
struct GruLanes {
  V z, r, x, u, h;
};

template <class V>
struct GateLanes {
  V z, r, h;
};

template <class V>
struct UpdateLanes {
  V gate, z, h;
};

// (1 - z)·candidate + z·h
template <class V>
TREADLE_ALWAYS_INLINE V blend(V z, V candidate, V h) {
  const V one(typename V::Scalar(1));
  return (one - z) * candidate + z * h;
}

template <class T>
void lstm(const void* gates, const void* c, void* h_out, void* c_out, size_t hidden) {
  const T *g = static_cast<const T*>(gates), *before = static_cast<const T*>(c);
  T *h = static_cast<T*>(h_out), *after = static_cast<T*>(c_out);
  row_loop<T, false>(
      hidden,
      [=](auto lanes, size_t k) {
        using V = Vec<T, lanes.value>;
        return LstmLanes<V>{V::load(g + k), V::load(g + hidden + k), V::load(g + 2 * hidden + k),
                            V::load(g + 3 * hidden + k), V::load(before + k)};
      },
      [=](size_t k, auto in) {
        const auto cell = Sigmoid::eval(in.f) * in.c + Sigmoid::eval(in.i) * Tanh::eval(in.candidate);
        (Sigmoid::eval(in.o) * Tanh::eval(cell)).store(h + k);
        cell.store(after + k);
      });
}

template <class T>
void gru(const void* x_gates, const void* u_gates, const void* h_in, void* h_out, size_t hidden) {
  const T *x = static_cast<const T*>(x_gates), *u = static_cast<const T*>(u_gates), *h = static_cast<const T*>(h_in);
  T* out = static_cast<T*>(h_out);
  row_loop<T, false>(
      hidden,
      [=](auto lanes, size_t k) {
        using V = Vec<T, lanes.value>;
        return GruLanes<V>{V::load(x + k) + V::load(u + k), V::load(x + hidden + k) + V::load(u + hidden + k),
                           V::load(x + 2 * hidden + k), V::load(u + 2 * hidden + k), V::load(h + k)};
      },
      [=](size_t k, auto in) {
        const auto candidate = Tanh::eval(Sigmoid::eval(in.r) * in.u + in.x);
        blend(Sigmoid::eval(in.z), candidate, in.h).store(out + k);
      });
}

template <class T>
void gru_gates(const void* gates, const void* h_in, void* z_out, void* rh_out, size_t hidden) {
  const T *g = static_cast<const T*>(gates), *h = static_cast<const T*>(h_in);
  T *z = static_cast<T*>(z_out), *rh = static_cast<T*>(rh_out);
  row_loop<T, false>(
      hidden,
      [=](auto lanes, size_t k) {
        using V = Vec<T, lanes.value>;
        return GateLanes<V>{V::load(g + k), V::load(g + hidden + k), V::load(h + k)};
      },
      [=](size_t k, auto in) {
        Sigmoid::eval(in.z).store(z + k);
        (Sigmoid::eval(in.r) * in.h).store(rh + k);
      });
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
      [=](size_t k, auto in) { blend(in.z, Tanh::eval(in.gate), in.h).store(out + k); });
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
