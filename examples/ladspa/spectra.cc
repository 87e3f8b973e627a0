#include "spectra.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace {

// The sizes that are not 1.
std::vector<int64_t> long_sizes(const std::vector<int64_t>& dims) {
  std::vector<int64_t> found;
  std::copy_if(dims.begin(), dims.end(), std::back_inserter(found), [](int64_t dim) { return dim != 1; });
  return found;
}

size_t window_size(const std::vector<int64_t>& dims) {
  const std::vector<int64_t> sizes = long_sizes(dims);
  return static_cast<size_t>(2 * (std::max(sizes[0], sizes[1]) - 1));
}

}  // namespace

bool Spectra::takes(const std::vector<int64_t>& dims) {
  const std::vector<int64_t> sizes = long_sizes(dims);
  return sizes.size() == 2 && std::min(sizes[0], sizes[1]) == 2 && std::max(sizes[0], sizes[1]) > 2;
}

Spectra::Spectra(treadle::Stream stream, const std::string& input, const std::vector<int64_t>& dims, size_t hop)
    : pushes_(std::move(stream), input, dims, 0),
      fourier_(window_size(dims)),
      hop_(hop ? hop : fourier_.size() / 2),
      parts_first_(long_sizes(dims)[0] == 2),
      window_(fourier_.size()),
      signal_(fourier_.size()),
      added_(fourier_.size()),
      shaped_(fourier_.size()),
      spectrum_(fourier_.size() / 2 + 1) {
  const size_t size = fourier_.size();
  if (size % hop_ != 0 || hop_ > size / 2) {
    throw std::runtime_error("expected a hop that divides the window of " + std::to_string(size) +
                             " samples in two or more, found " + std::to_string(hop_));
  }
  if (pushes_.result_count() != 2 * spectrum_.size()) {
    throw std::runtime_error("expected a spectrum of " + std::to_string(spectrum_.size()) +
                             " bins from the model, found " + std::to_string(pushes_.result_count()) + " numbers");
  }
  const double step = std::acos(-1.0) / static_cast<double>(size);
  for (size_t i = 0; i < size; ++i) window_[i] = static_cast<float>(std::sin(step * static_cast<double>(i)));
  power_.resize(hop_);
  for (size_t i = 0; i < size; ++i) power_[i % hop_] += window_[i] * window_[i];
  set_latency(size);
}

void Spectra::restart() {
  pushes_.begin();
  filled_ = 0;
  std::fill(signal_.begin(), signal_.end(), 0.0f);
  std::fill(added_.begin(), added_.end(), 0.0f);
}

// Takes a complete window, and completes a hop of the result.
bool Spectra::push() {
  filled_ = 0;
  const size_t size = fourier_.size(), bins = spectrum_.size();
  const size_t bin = parts_first_ ? 1 : 2, part = parts_first_ ? bins : 1;  // how far apart bins and parts lie
  for (size_t i = 0; i < size; ++i) shaped_[i] = signal_[i] * window_[i];
  std::copy(signal_.begin() + static_cast<ptrdiff_t>(hop_), signal_.end(), signal_.begin());
  fourier_.forward(shaped_.data(), spectrum_.data());
  float* const chunk = pushes_.chunk();
  for (size_t k = 0; k < bins; ++k) {
    chunk[k * bin] = spectrum_[k].real();
    chunk[k * bin + part] = spectrum_[k].imag();
  }
  const float* const given = pushes_.push();
  if (!given) return false;
  for (size_t k = 0; k < bins; ++k) spectrum_[k] = {given[k * bin], given[k * bin + part]};
  fourier_.backward(spectrum_.data(), shaped_.data());
  std::copy(added_.begin() + static_cast<ptrdiff_t>(hop_), added_.end(), added_.begin());
  std::fill(added_.end() - static_cast<ptrdiff_t>(hop_), added_.end(), 0.0f);
  for (size_t i = 0; i < size; ++i) added_[i] += shaped_[i] * window_[i];
  return true;
}

bool Spectra::advance(const float* in, float* out, size_t count) {
  float* const coming = signal_.data() + fourier_.size() - hop_;
  while (count > 0) {
    const size_t taken = std::min(count, hop_ - filled_);
    std::copy_n(in, taken, coming + filled_);
    for (size_t i = 0; i < taken; ++i) out[i] = added_[filled_ + i] / power_[filled_ + i];
    filled_ += taken;
    if (filled_ == hop_ && !push()) return false;
    in += taken;
    out += taken;
    count -= taken;
  }
  return true;
}
