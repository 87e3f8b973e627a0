// A model that makes a signal better, sample by sample and without a host. Opening and begin() may take their time;
// process() keeps real time: it allocates nothing, takes no lock and makes no system call.
#pragma once

#include <memory>
#include <string>
#include <vector>

struct Settings {
  std::string model;       // a path
  int64_t host_rate = 0;   // samples per second
  int64_t model_rate = 0;  // 0: what the model's property "sample_rate" says
  int64_t hop = 0;         // of models of spectra; 0: what the property "hop_length" says, else half a window
  int64_t block = 0;       // samples of a push, for models of samples; 0: 64
};

class Enhancer {
 public:
  // Finds out what the model takes. Throws an exception with the reason where the model cannot be used.
  static std::unique_ptr<Enhancer> open(const Settings& settings);
  virtual ~Enhancer() = default;

  // Begins a new signal.
  void begin();
  // `in` and `out` may be the same memory. `amount`: 1 is the model's result, 0 the signal as it came, as late.
  void process(const float* in, float* out, size_t count, float amount);
  // By how many samples the result is late, whatever the sizes of the host's blocks.
  size_t latency() const { return latency_; }
  // Why pushes may not keep real time; empty if they do.
  virtual std::string breaks_realtime() const = 0;
  // The first failure of the model, from which on the signal passes as it came; empty: there was none.
  virtual std::string failure() const = 0;

 protected:
  void set_latency(size_t samples);

 private:
  virtual void restart() = 0;
  // The model's answer, latency() samples late. False: the model has failed.
  virtual bool advance(const float* in, float* out, size_t count) = 0;

  size_t latency_ = 0;
  std::vector<float> came_;  // the signal as it came, a ring
  size_t next_ = 0;
};
