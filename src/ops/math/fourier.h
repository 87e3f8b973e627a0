#pragma once
// Discrete Fourier transforms of any length in double.

#include <complex>
#include <cstddef>
#include <memory>
#include <span>

#include "base/counted.h"
#include "base/stop.h"

namespace treadle {

// A power of two is transformed by halving, other lengths by a convolution over a power of two (Bluestein).
class Fourier {
 public:
  using Complex = std::complex<double>;

  // At most kMostLength. The constructor takes as long as some transforms. If it is told to stop, the object is
  // incomplete and must not be used. Throws MemoryRefused.
  explicit Fourier(size_t length);
  static constexpr size_t kMostLength = size_t{1} << 40;

  bool is_complete() const { return is_complete_; }
  size_t length() const { return length_; }
  // Of the transform over a power of two that another length takes; null for powers of two.
  const Fourier* inner() const { return inner_.get(); }
  // exp(-2 pi i k / length), for powers of two.
  std::span<const Complex> roots() const { return roots_; }
  // For other lengths: exp(-pi i k^2 / length), and the transform of its conjugate, by inner().
  std::span<const Complex> chirp() const { return chirp_; }
  std::span<const Complex> filter() const { return filter_; }
  size_t work_size() const { return inner_ ? inner_->length_ : 0; }
  // Transforms in place, without scaling. `work`: work_size() elements. False: the work is to stop.
  bool run(Complex* x, bool inverse, Complex* work, StopPoll& stop) const;

 private:
  bool make_roots();
  bool make_chirp();
  bool run_halving(Complex* x, StopPoll& stop) const;

  size_t length_;
  bool is_complete_ = true;
  CountedVector<Complex> roots_, chirp_, filter_;
  std::unique_ptr<Fourier> inner_;
};

}  // namespace treadle
