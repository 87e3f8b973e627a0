#include "fourier.h"

#include <cmath>

namespace {

size_t smallest_factor(size_t size) {
  for (size_t factor = 2; factor * factor <= size; ++factor) {
    if (size % factor == 0) return factor;
  }
  return size;
}

}  // namespace

Fourier::Fourier(size_t size) : roots_(size), in_(size), out_(size), column_(size) {
  const double step = -2 * std::acos(-1.0) / static_cast<double>(size);
  for (size_t k = 0; k < size; ++k) {
    const double angle = step * static_cast<double>(k);
    roots_[k] = Complex(static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle)));
  }
}

// Cooley and Tukey's way for any factors: `size` elements of `in`, `stride` apart, to `size` elements of `out`.
void Fourier::transform(const Complex* in, Complex* out, size_t size, size_t stride) {
  if (size == 1) {
    *out = *in;
    return;
  }
  const size_t parts = smallest_factor(size), part = size / parts;
  for (size_t p = 0; p < parts; ++p) transform(in + p * stride, out + p * part, part, stride * parts);
  for (size_t k = 0; k < part; ++k) {
    for (size_t p = 0; p < parts; ++p) column_[p] = out[p * part + k] * roots_[p * k * stride % roots_.size()];
    if (parts == 2) {
      out[k] = column_[0] + column_[1];
      out[part + k] = column_[0] - column_[1];
      continue;
    }
    for (size_t q = 0; q < parts; ++q) {
      Complex sum = 0;
      for (size_t p = 0; p < parts; ++p) sum += column_[p] * roots_[p * q * part * stride % roots_.size()];
      out[q * part + k] = sum;
    }
  }
}

void Fourier::forward(const float* samples, Complex* spectrum) {
  for (size_t i = 0; i < size(); ++i) in_[i] = samples[i];
  transform(in_.data(), out_.data(), size(), 1);
  for (size_t k = 0; k <= size() / 2; ++k) spectrum[k] = out_[k];
}

void Fourier::backward(const Complex* spectrum, float* samples) {
  // The other half of the spectrum mirrors this one. A transform of conjugates is the inverse, but for the size.
  for (size_t k = 0; k <= size() / 2; ++k) in_[k] = std::conj(spectrum[k]);
  in_[0] = spectrum[0].real();
  in_[size() / 2] = spectrum[size() / 2].real();
  for (size_t k = size() / 2 + 1; k < size(); ++k) in_[k] = spectrum[size() - k];
  transform(in_.data(), out_.data(), size(), 1);
  for (size_t i = 0; i < size(); ++i) samples[i] = out_[i].real() / static_cast<float>(size());
}
