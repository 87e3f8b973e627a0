#include "ops/math/fourier.h"

#include <algorithm>
#include <bit>
#include <numbers>

namespace treadle {

Fourier::Fourier(size_t length) : length_(length) {
  const auto n = static_cast<double>(length);
  if (std::has_single_bit(length)) {
    for (size_t k = 0; k < length / 2; ++k) {
      roots_.push_back(std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(k) / n));
    }
    return;
  }
  if (length == 0) return;
  inner_ = std::make_unique<Fourier>(std::bit_ceil(2 * length - 1));
  for (size_t k = 0; k < length; ++k) {
    // k^2 modulo 2 length keeps the angle small.
    chirp_.push_back(std::polar(1.0, -std::numbers::pi * static_cast<double>(k * k % (2 * length)) / n));
  }
  filter_.assign(inner_->length_, 0);
  for (size_t k = 0; k < length; ++k) {
    filter_[k] = std::conj(chirp_[k]);
    if (k > 0) filter_[filter_.size() - k] = std::conj(chirp_[k]);
  }
  inner_->run_halving(filter_.data());
}

void Fourier::run_halving(Complex* x) const {
  for (size_t i = 1, j = 0; i < length_; ++i) {
    size_t bit = length_ / 2;
    for (; j & bit; bit /= 2) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(x[i], x[j]);
  }
  for (size_t size = 2; size <= length_; size *= 2) {
    const size_t step = length_ / size;
    for (size_t begin = 0; begin < length_; begin += size) {
      for (size_t k = 0; k < size / 2; ++k) {
        const Complex a = x[begin + k], b = x[begin + k + size / 2] * roots_[k * step];
        x[begin + k] = a + b;
        x[begin + k + size / 2] = a - b;
      }
    }
  }
}

void Fourier::run(Complex* x, bool inverse, Complex* work) const {
  if (length_ < 2) return;
  // The inverse is the transform of the conjugate, conjugated.
  const auto conjugate = [&] {
    for (size_t k = 0; inverse && k < length_; ++k) x[k] = std::conj(x[k]);
  };
  conjugate();
  if (!inner_) {
    run_halving(x);
  } else {
    const size_t m = inner_->length_;
    for (size_t k = 0; k < length_; ++k) work[k] = x[k] * chirp_[k];
    std::fill(work + length_, work + m, Complex());
    inner_->run_halving(work);
    for (size_t k = 0; k < m; ++k) work[k] *= filter_[k];
    inner_->run(work, true, nullptr);
    for (size_t k = 0; k < length_; ++k) x[k] = work[k] * chirp_[k] / static_cast<double>(m);
  }
  conjugate();
}

}  // namespace treadle
