// Models that take a spectrum and give one: windows of the signal go through a Fourier transform, and are added up
// again.
#pragma once

#include "enhancer.h"
#include "fourier.h"
#include "pushes.h"

class Spectra : public Enhancer {
 public:
  // `dims`: of a spectrum, whose two axes that are not 1 are `bins` and 2: real and imaginary parts. Windows begin
  // `hop` samples apart; 0: half a window.
  Spectra(treadle::Stream stream, const std::string& input, const std::vector<int64_t>& dims, size_t hop);
  // Whether these are the sizes of a spectrum.
  static bool takes(const std::vector<int64_t>& dims);

  std::string breaks_realtime() const override { return pushes_.breaks_realtime(); }
  std::string failure() const override { return pushes_.failure(); }

 private:
  void restart() override;
  bool advance(const float* in, float* out, size_t count) override;
  bool push();

  Pushes pushes_;
  Fourier fourier_;
  size_t hop_;
  bool parts_first_;           // the real parts of all bins, then the imaginary parts
  std::vector<float> window_;  // the root of a Hann window, over the signal and over the result
  std::vector<float> power_;   // of all windows over a sample, by its place in a hop
  std::vector<float> signal_;  // the samples of the next window; the last hop of it is yet to come
  std::vector<float> added_;   // windows added up: the first hop is complete
  std::vector<float> shaped_;  // one window
  std::vector<std::complex<float>> spectrum_;
  size_t filled_ = 0;  // samples of the last hop that have come
};
