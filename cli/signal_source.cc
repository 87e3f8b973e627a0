#include "signal_source.h"

#include <algorithm>
#include <cstdio>
#include <thread>
#include <utility>

namespace cli {

using treadle::Feeds;
using treadle::Session;

namespace {

constexpr const char* kPipe = "standard input";

class WholeSignal : public SignalSource {
 public:
  WholeSignal(const SignalStream& stream, bool live) : stream_(stream), live_(live) {}

  bool next(Feeds& piece) override {
    const int64_t count = std::min(stream_.push(), stream_.samples() - at_);
    if (count <= 0) return false;
    piece = stream_.piece(at_, count);
    at_ += count;
    if (live_) std::this_thread::sleep_until(begin_ + std::chrono::duration<double>(seconds_of(at_)));
    return true;
  }

 private:
  double seconds_of(int64_t samples) const { return static_cast<double>(samples) / stream_.rate(); }

  const SignalStream& stream_;
  bool live_;
  int64_t at_ = 0;
  std::chrono::time_point<std::chrono::steady_clock, std::chrono::duration<double>> begin_ =
      std::chrono::steady_clock::now();
};

class PipedSignal : public SignalSource {
 public:
  PipedSignal(const Session& session, const SignalStream& stream, TimedInput input, std::string channel,
              SampledPipe pipe)
      : session_(session),
        push_(static_cast<size_t>(stream.push())),
        input_(std::move(input)),
        channel_(std::move(channel)),
        pipe_(std::move(pipe)) {}

  bool next(Feeds& piece) override {
    const std::string frames = pipe_.frames(push_);
    if (frames.empty()) return false;
    piece.clear();
    piece.emplace_back(input_.name, fit_signal(session_, input_, samples_of(pipe_.format(), frames), channel_, kPipe));
    return true;
  }

 private:
  const Session& session_;
  const size_t push_;
  const TimedInput input_;
  const std::string channel_;
  SampledPipe pipe_;
};

}  // namespace

std::unique_ptr<SignalSource> whole_signal(const SignalStream& stream, bool live) {
  return std::make_unique<WholeSignal>(stream, live);
}

SampledPipe::SampledPipe(const WaveFormat& raw) : format_(raw) {
  ahead_ = read(4);
  if (ahead_ == "\x93NUM" || ahead_.starts_with("PK")) {
    throw InputError(std::string(kPipe) +
                     " has numpy's arrays: give the file's name; a pipe has samples or a wave file");
  }
  size_t unused = 0;
  if (ahead_ == "RIFF") format_ = read_wave_head([this](size_t bytes) { return read(bytes); }, kPipe, unused);
}

std::string SampledPipe::frames(size_t count) {
  std::string frames = read(count * format_.frame_bytes());
  frames.resize(frames.size() - frames.size() % format_.frame_bytes());
  return frames;
}

std::string SampledPipe::read(size_t bytes) {
  std::string taken = ahead_.substr(0, bytes);
  ahead_.erase(0, taken.size());
  constexpr size_t kPart = 1 << 16;  // a broken head may claim gigabytes, for which nobody asks memory ahead
  while (taken.size() < bytes) {
    const size_t before = taken.size(), part = std::min(bytes - before, kPart);
    taken.resize(before + part);
    const size_t got = std::fread(taken.data() + before, 1, part, stdin);
    taken.resize(before + got);
    if (got < part) break;
  }
  return taken;
}

std::unique_ptr<SignalSource> piped_signal(const Session& session, const SignalStream& stream, const TimedInput& input,
                                           const std::string& channel, SampledPipe pipe) {
  return std::make_unique<PipedSignal>(session, stream, input, channel, std::move(pipe));
}

}  // namespace cli
