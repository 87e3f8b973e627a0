#include "kernels/quantize.h"

#include "kernels/isa/rows.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

namespace {

// Scales or zero points beside a row: one, or one per element.
template <class T, size_t kStep>
struct Beside {
  const T* values;
  T first;

  explicit Beside(const T* from) : values(from), first(*from) {}
  template <class Lanes>
  TREADLE_ALWAYS_INLINE auto load(Lanes lanes, size_t i) const {
    using V = Vec<T, lanes.value>;
    if constexpr (kStep == 0) {
      return V(first);
    } else {
      return V::load(values + i);
    }
  }
};

// Calls fn(Beside) for the step that the row has.
template <class T, class Fn>
void with_step(const T* values, size_t step, Fn fn) {
  static constexpr T kNone{};
  if (!values) return fn(Beside<T, 0>(&kNone));
  step == 0 ? fn(Beside<T, 0>(values)) : fn(Beside<T, 1>(values));
}

template <class V, class W>
struct Loaded {
  V x;
  W beside;
};

template <class T, class B>
TREADLE_ALWAYS_INLINE auto loader(const T* x, const B& beside) {
  return [x, beside](auto lanes, size_t i) {
    using V = Vec<T, lanes.value>;
    using W = decltype(beside.load(lanes, i));
    return Loaded<V, W>{V::load(x + i), beside.load(lanes, i)};
  };
}

void divide(const float* x, const float* scale, size_t step, float* out, size_t n) {
  if (n == 0) return;
  with_step(scale, step, [=](auto scales) {
    row_loop<float, false>(n, loader(x, scales), [out](size_t i, auto in) { (in.x / in.beside).store(out + i); });
  });
}

void multiply(const float* x, const float* scale, size_t step, float* out, size_t n) {
  if (n == 0) return;
  with_step(scale, step, [=](auto scales) {
    row_loop<float, false>(n, loader(x, scales), [out](size_t i, auto in) { (in.x * in.beside).store(out + i); });
  });
}

void round(const float* x, const int32_t* zero, size_t step, float low, float high, int32_t* out, size_t n) {
  if (n == 0) return;
  // Adding and subtracting 1.5 * 2^23 rounds floats below 2^22 half to even.
  constexpr float kRound = 12582912.0f;
  with_step(zero, step, [=](auto zeros) {
    row_loop<float, false>(n, loader(x, zeros), [=](size_t i, auto in) {
      using V = decltype(in.x);
      const V z = convert_lanes<float>(in.beside), least = V(low) - z, most = V(high) - z;
      V v = select(in.x >= least, in.x, least);  // NaN goes to the lowest
      v = select(v <= most, v, most);
      v = (v + V(kRound)) - V(kRound);
      (convert_lanes<int32_t>(v) + in.beside).store(out + i);
    });
  });
}

void centre(const int32_t* x, const int32_t* zero, size_t step, float* out, size_t n) {
  if (n == 0) return;
  with_step(zero, step, [=](auto zeros) {
    row_loop<int32_t, false>(n, loader(x, zeros),
                             [out](size_t i, auto in) { convert_lanes<float>(in.x - in.beside).store(out + i); });
  });
}

}  // namespace

const QuantizeKernels& quantize_kernels() {
  static constexpr QuantizeKernels kKernels{divide, multiply, round, centre};
  return kKernels;
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
