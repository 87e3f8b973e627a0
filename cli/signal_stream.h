#pragma once
// A stream of a model and the signal that a command pushes through it in pieces.

#include <set>
#include <string>
#include <vector>

#include "common.h"
#include "latencies.h"
#include "wave.h"

namespace cli {

// The options about streams, as the command line gives them.
struct StreamFlags {
  std::vector<std::string> time;    // "NAME=AXIS"; an axis is a number or the name of a size
  std::vector<std::string> states;  // "INPUT=OUTPUT"
  int64_t hop = 0, context = 0, push = 0;
  std::string channel;  // "": all; a number; "mean"
  int rate = 0;

  void add(CLI::App& command);
  void add_roles(CLI::App& command);  // those about inputs and runs, not about a signal
  bool is_given() const;
  // Samples per push. UsageError if nothing says how many.
  int64_t samples_per_push() const;
};

// An input of the model that the stream cuts along an axis.
struct TimedInput {
  std::string name;
  int64_t axis = 0;
};
// Those that --time names. UsageError if there is none.
std::vector<TimedInput> timed_inputs(const treadle::Session& session, const StreamFlags& flags);

// Samples of sound with the rank of an input: its time axis has the samples, the axis before it the channels.
// InputError, with `file` in front, if the input takes another number of channels.
treadle::Value fit_signal(const treadle::Session& session, const TimedInput& input, const treadle::Value& samples,
                          const std::string& channel, const std::string& file);

// Values for the inputs of a stream: the whole signal, first values of states, and values that stay the same.
struct SignalFeeds {
  treadle::Feeds feeds;
  std::set<std::string> named = {};  // names of the values that the user gave; empty: all
  int rate = 0;                      // samples a second; 0: unknown
};
// As read_feeds(), but wave files go to the timed input and give the rate.
SignalFeeds read_signal(const treadle::Session& session, const StreamFlags& flags,
                        const std::vector<std::string>& arguments);

// The roles that the flags give; `others`: values of inputs, as first values of states or as bound values.
treadle::StreamOptions stream_options(const treadle::Session& session, const StreamFlags& flags, SignalFeeds others);

class SignalStream {
 public:
  // UsageError or InputError if a timed input has no value, unless `is_piped`: then the caller has the pieces.
  SignalStream(const treadle::Session& session, const StreamFlags& flags, SignalFeeds given, bool is_piped = false);

  treadle::Stream open() const { return {*session_, options_}; }
  int64_t push() const { return push_; }        // samples per push
  int64_t samples() const { return samples_; }  // of the whole signal; a signal shorter than a push is repeated
  treadle::Feeds piece(int64_t first, int64_t count) const;
  int rate() const { return rate_; }
  double push_seconds() const { return rate_ > 0 ? static_cast<double>(push_) / rate_ : 0; }  // 0: unknown

 private:
  void sort(SignalFeeds given, const StreamFlags& flags);
  void take_signal(const TimedInput& input, const treadle::Value& value);
  const treadle::Session* session_;
  std::vector<TimedInput> timed_;
  treadle::StreamOptions options_;
  std::vector<treadle::Value> signal_;  // by timed input
  int64_t push_ = 0, samples_ = 0;
  int rate_ = 0;
};

// Elements `first` to `first + count` along an axis; beyond the end it begins again.
treadle::Value cut(const treadle::Value& value, int64_t axis, int64_t first, int64_t count);

// A line: how much of a push's time in the signal the median push takes.
std::string real_time_text(const Latencies& latencies, double push_seconds);

}  // namespace cli
