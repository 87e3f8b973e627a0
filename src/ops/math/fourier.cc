#include "ops/math/fourier.h"

#include <algorithm>
#include <bit>
#include <numbers>

#include "base/in_pieces.h"
#include "ops/costs.h"

namespace treadle {

namespace {

constexpr size_t kPiece = size_t{1} << 16;

}  // namespace

Fourier::Fourier(size_t length) : length_(length) {
  if (length == 0) return;
  is_complete_ = std::has_single_bit(length) ? make_roots() : make_chirp();
}

bool Fourier::make_roots() {
  const auto n = static_cast<double>(length_);
  StopPoll stop;
  roots_.reserve(length_ / 2);
  for (size_t k = 0; k < length_ / 2; ++k) {
    if (stop.after(costs::kFourierRootNs)) return false;
    roots_.push_back(std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(k) / n));
  }
  return true;
}

bool Fourier::make_chirp() {
  const auto n = static_cast<double>(length_);
  StopPoll stop;
  chirp_.reserve(length_);
  inner_ = std::make_unique<Fourier>(std::bit_ceil(2 * length_ - 1));
  filter_.reserve(inner_->length_);
  while (filter_.size() < inner_->length_) {
    if (stop.after(costs::kFourierElementNs * kPiece)) return false;
    filter_.resize(std::min(filter_.size() + kPiece, inner_->length_));
  }
  for (size_t k = 0; k < length_; ++k) {
    if (stop.after(costs::kFourierRootNs)) return false;
    // k^2 modulo 2 length keeps the angle small.
    chirp_.push_back(std::polar(1.0, -std::numbers::pi * static_cast<double>(k * k % (2 * length_)) / n));
    filter_[k] = std::conj(chirp_[k]);
    if (k > 0) filter_[filter_.size() - k] = std::conj(chirp_[k]);
  }
  return inner_->is_complete_ && inner_->run_halving(filter_.data(), stop);
}

bool Fourier::run_halving(Complex* x, StopPoll& stop) const {
  for (size_t i = 1, j = 0; i < length_; ++i) {
    if (stop.after(costs::kFourierElementNs)) return false;
    size_t bit = length_ / 2;
    for (; j & bit; bit /= 2) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(x[i], x[j]);
  }
  for (size_t size = 2; size <= length_; size *= 2) {
    const size_t step = length_ / size, half = size / 2;
    const double block_ns = costs::kFourierElementNs * static_cast<double>(size);
    for (size_t begin = 0; begin < length_; begin += size) {
      for (size_t first = 0; first < half; first += kPiece) {
        const size_t last = std::min(first + kPiece, half);
        for (size_t k = first; k < last; ++k) {
          const Complex a = x[begin + k], b = x[begin + k + half] * roots_[k * step];
          x[begin + k] = a + b;
          x[begin + k + half] = a - b;
        }
        if (stop.after(std::min(block_ns, costs::kFourierElementNs * kPiece))) return false;
      }
    }
  }
  return true;
}

bool Fourier::run(Complex* x, bool inverse, Complex* work, StopPoll& stop) const {
  if (length_ < 2) return true;
  const auto all = [&](size_t count, auto&& fn) {
    return in_pieces(static_cast<int64_t>(count), costs::kFourierElementNs, stop, [&](int64_t begin, int64_t end) {
      for (auto k = static_cast<size_t>(begin); k < static_cast<size_t>(end); ++k) fn(k);
    });
  };
  // The inverse is the transform of the conjugate, conjugated.
  const auto conjugate = [&] { return !inverse || all(length_, [&](size_t k) { x[k] = std::conj(x[k]); }); };
  if (!conjugate()) return false;
  if (!inner_) return run_halving(x, stop) && conjugate();
  const size_t m = inner_->length_;
  return all(length_, [&](size_t k) { work[k] = x[k] * chirp_[k]; }) &&
         all(m - length_, [&](size_t k) { work[length_ + k] = Complex(); }) && inner_->run_halving(work, stop) &&
         all(m, [&](size_t k) { work[k] *= filter_[k]; }) && inner_->run(work, true, nullptr, stop) &&
         all(length_, [&](size_t k) { x[k] = work[k] * chirp_[k] / static_cast<double>(m); }) && conjugate();
}

}  // namespace treadle
