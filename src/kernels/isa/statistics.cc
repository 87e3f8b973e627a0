// Statistics of floats and doubles. Lanes hold neighbouring elements; each count and sum has a vector of its own.

#include "kernels/statistics.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/isa/vector_bytes.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

namespace {

template <class T>
class Lanewise {
  using Integer = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  typedef T V __attribute__((vector_size(kVectorBytes)));
  typedef Integer I __attribute__((vector_size(kVectorBytes)));  // a comparison gives -1 for true

 public:
  static constexpr int64_t kLanes = kVectorBytes / int64_t{sizeof(T)};

  explicit Lanewise(T normal) : normal_(splat(normal)), low_(splat(kInfinity)), high_(splat(-kInfinity)) {}

  void take(V x) {
    constexpr Integer kNoSign = std::numeric_limits<Integer>::max();
    const V size = reinterpret_cast<V>(reinterpret_cast<I>(x) & kNoSign);
    const I finite = size < splat(kInfinity);
    low_ = x < low_ ? x : low_;
    high_ = x > high_ ? x : high_;
    nan_ -= x != x;
    infinite_ -= size == splat(kInfinity);
    zero_ -= x == V{};
    denormal_ -= (size < normal_) & (x != V{});
    const V number = reinterpret_cast<V>(reinterpret_cast<I>(x) & finite);
    sum_ += number;
    squares_ += number * number;
  }

  // Of the first `lanes` lanes of each vector. `count`: of all elements.
  Statistics all(int64_t count, int64_t lanes = kLanes) const {
    Statistics s;
    s.count = count;
    for (int64_t i = 0; i < lanes; ++i) {
      s.nan += nan_[i], s.infinite += infinite_[i], s.zero += zero_[i], s.denormal += denormal_[i];
      s.low = std::min(s.low, static_cast<double>(low_[i]));
      s.high = std::max(s.high, static_cast<double>(high_[i]));
      s.sum += static_cast<double>(sum_[i]), s.squares += static_cast<double>(squares_[i]);
    }
    return s;
  }

  static V load(const T* x, int64_t count = kLanes) {
    V v{};
    std::memcpy(&v, x, static_cast<size_t>(count) * sizeof(T));
    return v;
  }

 private:
  static constexpr T kInfinity = std::numeric_limits<T>::infinity();
  static V splat(T x) { return V{} + x; }

  const V normal_;
  V low_, high_, sum_{}, squares_{};
  I nan_{}, infinite_{}, zero_{}, denormal_{};
};

// Of so few elements that sums of floats keep most digits, and counts fit.
template <class T>
Statistics of_block(const T* x, int64_t count, T normal) {
  constexpr int64_t kLanes = Lanewise<T>::kLanes;
  Lanewise<T> vectors(normal);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) vectors.take(Lanewise<T>::load(x + i));
  Statistics s = vectors.all(i);
  if (const int64_t rest = count - i; rest > 0) {
    Lanewise<T> last(normal);
    last.take(Lanewise<T>::load(x + i, rest));
    s.add(last.all(rest, rest));
  }
  return s;
}

// Squares of floats may leave their range.
Statistics with_double_sums(const float* x, int64_t count, float normal) {
  Statistics s = of_block(x, count, normal);
  if (s.finite() == 0 || (s.squares < std::numeric_limits<double>::max() && s.squares > 0x1p-100)) return s;
  s.sum = s.squares = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double number = static_cast<double>(x[i]);
    if (!(number - number == 0)) continue;  // NaN or infinite
    s.sum += number;
    s.squares += number * number;
  }
  return s;
}

}  // namespace

Statistics statistics_of_floats(const float* x, int64_t count, float normal) {
  constexpr int64_t kBlock = 4096;
  Statistics all;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    all.add(with_double_sums(x + begin, std::min(kBlock, count - begin), normal));
  }
  return all;
}

Statistics statistics_of_doubles(const double* x, int64_t count, double normal) {
  return of_block(x, count, normal);
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
