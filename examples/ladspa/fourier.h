// The Fourier transform of real windows.
#pragma once

#include <complex>
#include <vector>

// Windows of any even size; sizes whose prime factors are small are fast. Only the constructor allocates.
class Fourier {
 public:
  explicit Fourier(size_t size);
  size_t size() const { return roots_.size(); }
  // `spectrum` gets size / 2 + 1 numbers.
  void forward(const float* samples, std::complex<float>* spectrum);
  // The inverse of forward().
  void backward(const std::complex<float>* spectrum, float* samples);

 private:
  using Complex = std::complex<float>;
  void transform(const Complex* in, Complex* out, size_t size, size_t stride);

  std::vector<Complex> roots_;  // exp(-2 pi i k / size)
  std::vector<Complex> in_, out_;
  std::vector<Complex> column_;  // of one prime factor
};
