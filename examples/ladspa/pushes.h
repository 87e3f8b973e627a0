// Pushes of one size to a stream, with all that they need made and bound beforehand.
#pragma once

#include <string>
#include <treadle/treadle.hpp>
#include <vector>

class Pushes {
 public:
  // `dims`: of the chunk that each push takes. `samples`: its length in time; 0: the stream has no time.
  Pushes(treadle::Stream stream, const std::string& input, const std::vector<int64_t>& dims, int64_t samples);

  float* chunk() { return chunk_.mutable_data<float>(); }
  // The first output of the stream; NULL once a push has failed.
  const float* push();
  size_t result_count() const { return static_cast<size_t>(treadle_tensor_count(results_[0])); }

  // Begins a new signal, with silence: the first pushes of a stream ask for memory.
  void begin();
  size_t delay() const { return static_cast<size_t>(stream_.delay()); }
  std::string breaks_realtime() const { return stream_.breaks_realtime(samples_); }
  std::string failure() const { return failed_ ? treadle_status_text(failed_.get()) : ""; }

 private:
  int64_t samples_;
  treadle::Value chunk_;
  std::vector<treadle_value*> results_;  // of all outputs; `held_` owns them
  std::vector<treadle::Value> held_;
  treadle::Stream stream_;  // goes before the handles that are bound to it
  treadle::detail::Handle<treadle_status, treadle_status_free> failed_;
};
