#pragma once
// A session run again and again over a signal that arrives in pieces, with the state that is carried from run to run.
//
// Inputs have one of four roles. A *state* takes what its output gave in the run before. A *timed* input is cut along
// its time axis: samples wait until a hop is complete, then one run sees a window of [context + hop] samples, of which
// the first `context` are the last ones of the window before (zeros at the start). A *bound* input is the same in every
// run. Every other input is given with each push and serves all of its runs.
//
// What comes back from a push, for each output that is not a state, put together over the runs it made: along the
// output's time axis where it has one (without the frames that belong to the context), else stacked along a new first
// axis; as a sequence with one element per run where sizes differ or the output is not a tensor. Without a hop every
// push is one run over all that was given, and its outputs come back as they are.
//
// A stream over time has timed inputs and no hop: what is carried from block to block is found in the model itself
// (stream/block_graphs.h), and the outputs of all pushes, with that of flush() at the end, are what one run over the
// whole signal gives.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "session/session.h"
#include "stream/push.h"

namespace treadle {

struct StreamOptions {
  std::vector<std::pair<std::string, std::string>> state;  // input, output
  bool find_state = true;                                  // pairs that are not given, by names and types
  std::vector<std::pair<std::string, AnyValue>> initial;   // state input, what it begins with (else zeros)
  std::vector<std::pair<std::string, AnyValue>> bind;
  struct TimeAxis {
    std::string name;    // of an input or output
    std::string symbol;  // of the axis' size, as the model names it; empty: `axis` says which
    int64_t axis = 0;
  };
  std::vector<TimeAxis> time;
  int64_t hop = 0;
  int64_t context = 0;
};

struct StreamLayout;  // the roles of inputs and outputs; shared by a stream and its forks

// Not for use by several threads at once. A copy is a fork: both go on from the same state.
class Stream {
 public:
  struct Pushed {
    std::vector<AnyValue> outputs;  // parallel to output_names()
    size_t runs = 0;
  };

  // Errors: kInvalidArgument for names that the model lacks, roles that clash, a time axis or a first state that
  // cannot be found.
  static Result<Stream> open(std::shared_ptr<const Session> session, StreamOptions options);

  // Runs each hop that the new samples complete. On an error the stream is as it was before. Of a stream over time,
  // outputs without frames (final states) are those of the samples so far, kNone before there are any.
  Result<Pushed> push(std::span<const Feed> feeds, const RunOptions& options = {});
  // Pads samples that wait with zeros to a whole hop and runs it; nothing waits, nothing runs. Of a stream over time:
  // the frames that the end of the signal brings; the stream has ended then, until reset().
  Result<Pushed> flush(std::span<const Feed> feeds, const RunOptions& options = {});

  // The same, into the places of outputs, none of which is fed: tensors of the right type and sizes that nobody else
  // refers to are written in place. A push of as many samples as those before takes no memory then, and no lock. Gives
  // the number of runs. On an error the places are as they were as well, but for what was written.
  Result<size_t> push_into(std::span<const Feed> feeds, std::span<AnyValue* const> outputs,
                           const RunOptions& options = {});
  Result<size_t> flush_into(std::span<const Feed> feeds, std::span<AnyValue* const> outputs,
                            const RunOptions& options = {});
  // Plans pushes of these numbers of samples (none given: of one hop) and makes native code of their loops, so that no
  // push has to. Inputs that come with each push are taken to be zeros.
  Status warm(std::span<const int64_t> sizes = {}) const;

  const std::vector<std::string>& output_names() const;
  // Along which the results of pushes go together; -1 where each push gives the newest value.
  int64_t output_axis(size_t i) const;
  size_t state_count() const;
  const std::string& state_name(size_t i) const;  // the input's
  const AnyValue& state(size_t i) const { return carried_.states[i]; }
  Status set_state(std::string_view input, AnyValue value);
  int64_t pending() const { return carried_.pending; }
  int64_t delay() const;  // samples by which a stream over time lags behind a run over all that has come
  bool done() const;      // a Loop has ended by its condition: no more frames come
  Status reset();

  // State, waiting samples and context. A snapshot fits a stream of the same model with the same roles; with
  // `other_weights` also where the model has other weights.
  Result<std::string> save() const;
  Status load(std::string_view snapshot, bool other_weights = false);
  std::string to_string() const;

 private:
  friend class StreamPool;
  friend class PooledPush;
  explicit Stream(std::shared_ptr<const StreamLayout> layout) : layout_(std::move(layout)) {}
  Result<Pushed> advance(std::span<const Feed> feeds, bool last, const RunOptions& options);
  Status rehearse(int64_t samples) const;  // warm.cc
  template <class Source>
  Status load_found(Source& reader);  // snapshot.cc

  std::shared_ptr<const StreamLayout> layout_;
  Carried carried_;
  Push push_;  // the one at hand
};

}  // namespace treadle
