#pragma once
// The steps of optimisers for one element. V: float, double, or a value whose operations write code (c/values.h).

#include <cmath>
#include <cstddef>

#include "ir/attribute.h"

namespace treadle::training {

template <class V>
struct ScalarOfValue {
  using Type = typename V::Scalar;
};
template <>
struct ScalarOfValue<float> {
  using Type = float;
};
template <>
struct ScalarOfValue<double> {
  using Type = double;
};
template <class V>
V number(double value) {
  return V(static_cast<typename ScalarOfValue<V>::Type>(value));
}

struct Coefficients {
  double norm = 0, norm_post = 0, alpha = 0, beta = 0, epsilon = 0, decay = 0;
};

inline Coefficients coefficients_of(const ir::Attributes& attributes) {
  const auto of = [&](const char* name) { return static_cast<double>(attributes.get_float(name, 0)); };
  return {of("norm_coefficient"), of("norm_coefficient_post"), of("alpha"), of("beta"),
          of("epsilon"),          of("decay_factor")};
}

// What a run decides: the rate, and the share of the gradient in a new momentum, which is beta but in the first update.
template <class V>
struct Run {
  V rate{}, share{};
};

// Value, gradient, accumulators.
template <class V>
struct Slot {
  V x{}, g{}, a{}, b{};
};

template <class V>
V regularized(const Coefficients& c, const Slot<V>& s) {
  return number<V>(c.norm) * s.x + s.g;
}

struct AdagradRule {
  static constexpr size_t kAccumulators = 1;
  template <class V>
  static void step(const Coefficients& c, const Run<V>& run, Slot<V>& s) {
    using std::sqrt;
    const V g = regularized(c, s);
    s.a = s.a + g * g;
    s.x = s.x - run.rate * g / (sqrt(s.a) + number<V>(c.epsilon));
  }
};

struct AdamRule {
  static constexpr size_t kAccumulators = 2;
  template <class V>
  static void step(const Coefficients& c, const Run<V>& run, Slot<V>& s) {
    using std::sqrt;
    const V g = regularized(c, s);
    s.a = number<V>(c.alpha) * s.a + number<V>(1 - c.alpha) * g;
    s.b = number<V>(c.beta) * s.b + number<V>(1 - c.beta) * (g * g);
    s.x = s.x - run.rate * (s.a / (sqrt(s.b) + number<V>(c.epsilon)));
    s.x = s.x * number<V>(1 - c.norm_post);
  }
};

template <bool kNesterov>
struct MomentumRule {
  static constexpr size_t kAccumulators = 1;
  template <class V>
  static void step(const Coefficients& c, const Run<V>& run, Slot<V>& s) {
    const V g = regularized(c, s);
    s.a = number<V>(c.alpha) * s.a + run.share * g;
    s.x = s.x - run.rate * (kNesterov ? g + number<V>(c.alpha) * s.a : s.a);
  }
};

}  // namespace treadle::training
