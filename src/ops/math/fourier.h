#pragma once
// Discrete Fourier transforms of any length, in double.

#include <complex>
#include <cstddef>
#include <memory>
#include <vector>

#include "base/stop.h"

namespace treadle {

// Lengths that are powers of two by halving; others as a convolution over a power of two (Bluestein).
class Fourier {
 public:
  using Complex = std::complex<double>;

  // Takes as long as some transforms.
  explicit Fourier(size_t length);

  size_t length() const { return length_; }
  size_t work_size() const { return inner_ ? inner_->length_ : 0; }
  // In place, without scaling; `inverse` turns the other way round. `work`: work_size() elements. False: it was told to
  // stop.
  bool run(Complex* x, bool inverse, Complex* work, StopPoll& stop) const;

 private:
  bool run_halving(Complex* x, StopPoll& stop) const;

  size_t length_;
  std::vector<Complex> roots_;           // exp(-2 pi i k / length), for powers of two
  std::vector<Complex> chirp_, filter_;  // exp(-pi i k^2 / length), and its transform
  std::unique_ptr<Fourier> inner_;
};

}  // namespace treadle
