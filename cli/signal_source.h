#pragma once
// Where the pieces of a signal come from: values that are there as a whole, or a pipe.

#include <memory>
#include <string>
#include <vector>

#include "signal_stream.h"

namespace cli {

class SignalSource {
 public:
  SignalSource() = default;
  SignalSource(const SignalSource&) = delete;
  SignalSource& operator=(const SignalSource&) = delete;
  virtual ~SignalSource() = default;

  // The next piece, of a push or less at the end; false when the signal is over. Waits for a pipe.
  virtual bool next(treadle::Feeds& piece) = 0;
};

// Pieces of the stream's own signal. `live`: a piece comes when its last sample would have been recorded.
std::unique_ptr<SignalSource> whole_signal(const SignalStream& stream, bool live);

// Samples from standard input: a wave file whose length need not be known, or raw samples.
class SampledPipe {
 public:
  // Reads as far as the first sample. `raw`: the form of samples without a head.
  explicit SampledPipe(const WaveFormat& raw);

  const WaveFormat& format() const { return format_; }
  // The next frames, fewer at the end.
  std::string frames(size_t count);

 private:
  std::string read(size_t bytes);

  std::string ahead_;  // bytes that were looked at
  WaveFormat format_;
};
std::unique_ptr<SignalSource> piped_signal(const treadle::Session& session, const SignalStream& stream,
                                           const TimedInput& input, const std::string& channel, SampledPipe pipe);

}  // namespace cli
