#pragma once
// Discrete Fourier transforms of any length, in double.

#include <complex>
#include <cstddef>
#include <memory>

#include "base/counted.h"
#include "base/stop.h"

namespace treadle {

// Lengths that are powers of two by halving; others as a convolution over a power of two (Bluestein).
class Fourier {
 public:
  using Complex = std::complex<double>;

  // At most kMostLength. Takes as long as some transforms, and may be stopped, however it is prepared: then it is not
  // complete, and worth nothing. Throws MemoryRefused.
  explicit Fourier(size_t length);
  static constexpr size_t kMostLength = size_t{1} << 40;

  bool is_complete() const { return is_complete_; }
  size_t length() const { return length_; }
  size_t work_size() const { return inner_ ? inner_->length_ : 0; }
  // In place, without scaling; `inverse` turns the other way round. `work`: work_size() elements. False: it was told to
  // stop.
  bool run(Complex* x, bool inverse, Complex* work, StopPoll& stop) const;

 private:
  bool make_roots();
  bool make_chirp();
  bool run_halving(Complex* x, StopPoll& stop) const;

  size_t length_;
  bool is_complete_ = true;
  CountedVector<Complex> roots_;           // exp(-2 pi i k / length), for powers of two
  CountedVector<Complex> chirp_, filter_;  // exp(-pi i k^2 / length), and its transform
  std::unique_ptr<Fourier> inner_;
};

}  // namespace treadle
