// Statistics of floats and doubles. Lanes hold neighbouring elements; each count and sum has a vector of its own.

#include "kernels/statistics.h"

#include <algorithm>
#include <array>
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

  void take(V x) { take(x, ~I{}); }

  // Of the lanes where `which` is -1.
  void take(V x, I which) {
    constexpr Integer kNoSign = std::numeric_limits<Integer>::max();
    const V size = reinterpret_cast<V>(reinterpret_cast<I>(x) & kNoSign);
    const I finite = (size < splat(kInfinity)) & which;
    low_ = (x < low_) & which ? x : low_;
    high_ = (x > high_) & which ? x : high_;
    nan_ -= (x != x) & which;
    infinite_ -= (size == splat(kInfinity)) & which;
    zero_ -= (x == V{}) & which;
    denormal_ -= (size < normal_) & (x != V{}) & which;
    const V number = reinterpret_cast<V>(reinterpret_cast<I>(x) & finite);
    sum_ += number;
    squares_ += number * number;
  }

  // The lanes in front of lane `count`.
  static I first(int64_t count) {
    I numbers;
    std::memcpy(&numbers, kNumbers.data(), sizeof numbers);
    return numbers < static_cast<Integer>(count);
  }

  // `count`: of all elements.
  Statistics all(int64_t count) const {
    Statistics s;
    s.count = count;
    s.nan = added(nan_), s.infinite = added(infinite_), s.zero = added(zero_), s.denormal = added(denormal_);
    s.low = static_cast<double>(joined<T>(low_, [](auto a, auto b) { return a < b ? a : b; }));
    s.high = static_cast<double>(joined<T>(high_, [](auto a, auto b) { return a > b ? a : b; }));
    s.sum = static_cast<double>(joined<T>(sum_, kPlus));
    s.squares = static_cast<double>(joined<T>(squares_, kPlus));
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

  static constexpr auto kPlus = [](auto a, auto b) { return a + b; };
  static int64_t added(I counts) { return joined<Integer>(counts, kPlus); }
  // Halves are joined until one lane is left.
  template <class Element, class Vector, class Join>
  static Element joined(Vector lanes, Join join) {
    constexpr size_t kHalf = sizeof lanes / 2;
    if constexpr (kHalf < 16) {
      Element rest = lanes[0];
      for (size_t i = 1; i < sizeof lanes / sizeof rest; ++i) rest = join(rest, lanes[i]);
      return rest;
    } else {
      typedef Element Half __attribute__((vector_size(kHalf)));
      Half low, high;
      std::memcpy(&low, &lanes, kHalf);
      std::memcpy(&high, reinterpret_cast<const char*>(&lanes) + kHalf, kHalf);
      return joined<Element>(join(low, high), join);
    }
  }
  static constexpr std::array<Integer, kLanes> kNumbers = [] {
    std::array<Integer, kLanes> numbers{};
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<Integer>(i);
    return numbers;
  }();

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
  if (i < count) vectors.take(Lanewise<T>::load(x + i, count - i), Lanewise<T>::first(count - i));
  return vectors.all(count);
}

// Faster for very few elements.
template <class T>
Statistics of_few(const T* x, int64_t count, T normal) {
  Statistics s;
  s.count = count;
  for (int64_t i = 0; i < count; ++i) {
    const auto number = static_cast<double>(x[i]);
    const T size = x[i] < 0 ? -x[i] : x[i];
    s.nan += x[i] != x[i];
    s.zero += x[i] == 0;
    s.denormal += size < normal && x[i] != 0;
    s.low = number < s.low ? number : s.low;
    s.high = number > s.high ? number : s.high;
    if (size <= std::numeric_limits<T>::max()) {
      s.sum += number;
      s.squares += number * number;
    } else {
      s.infinite += x[i] == x[i];
    }
  }
  return s;
}
constexpr int64_t kFew = 8;

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
  if (count <= kFew) return of_few(x, count, normal);
  constexpr int64_t kBlock = 4096;
  Statistics all;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    all.add(with_double_sums(x + begin, std::min(kBlock, count - begin), normal));
  }
  return all;
}

Statistics statistics_of_doubles(const double* x, int64_t count, double normal) {
  if (count <= kFew) return of_few(x, count, normal);
  return of_block(x, count, normal);
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
