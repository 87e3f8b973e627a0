#pragma once
// A session that runs again and again over a signal that arrives in pieces, with states that are carried from run to
// run.
//
// Inputs have one of four roles. A *state* takes the value that its output had in the run before. A *timed* input is
// cut along its time axis: samples wait until a hop is complete, then one run sees a window of [context + hop] samples.
// The first `context` of these are the last ones of the window before (zeros at the start). A *bound* input is the same
// in every run. Every other input is given with each push, and serves all of its runs.
//
// A push returns the joined results of its runs for each output that is not a state. An output with a time axis is
// joined along it, without the frames of the context. Any other output is stacked along a new first axis, or is a
// sequence with one element per run if sizes differ or it is not a tensor. Without a hop, every push is one run over
// everything that was given, and its outputs are returned unchanged.
//
// A stream over time has timed inputs and no hop. Its states are found in the model (stream/block_graphs.h). The
// outputs of all pushes, with those of flush() at the end, are the outputs of one run over the whole signal.

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "session/session.h"
#include "stream/plain_blocks.h"
#include "stream/push.h"

namespace treadle {

struct StreamOptions {
  std::vector<std::pair<std::string, std::string>> state;  // input, output
  bool find_state = true;                                  // finds further pairs by names and types
  std::vector<std::pair<std::string, AnyValue>> initial;   // state input, initial value (otherwise zeros)
  std::vector<std::pair<std::string, AnyValue>> bind;
  struct TimeAxis {
    std::string name;    // of an input or output
    std::string symbol;  // the model's name for the axis's size; empty: `axis` counts
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

  // Errors: kInvalidArgument for names that the model lacks, roles that clash, a time axis or an initial state that
  // cannot be determined.
  static Result<Stream> open(std::shared_ptr<const Session> session, StreamOptions options);

  // Runs each hop that the new samples complete. On an error the stream is unchanged. For a stream over time, outputs
  // without frames (final states) are those of the samples so far; they are kNone before the first block.
  Result<Pushed> push(std::span<const Feed> feeds, const RunOptions& options = {});
  // Pads waiting samples with zeros to a whole hop and runs it; without waiting samples, nothing runs. For a stream
  // over time, returns the frames that depend on the end of the signal; the stream has then ended, until reset().
  Result<Pushed> flush(std::span<const Feed> feeds, const RunOptions& options = {});

  // The same, with results written into `outputs`, none of which may be fed. A tensor of the right type and sizes with
  // no other reference is written in place. A push with as many samples as earlier ones then allocates no memory and
  // takes no lock. Returns the number of runs. On an error the outputs are unchanged too, except that their memory may
  // have been overwritten.
  Result<size_t> push_into(std::span<const Feed> feeds, std::span<AnyValue* const> outputs,
                           const RunOptions& options = {});
  Result<size_t> flush_into(std::span<const Feed> feeds, std::span<AnyValue* const> outputs,
                            const RunOptions& options = {});

  // Binds the arguments of a push, for step() (stream/bound_push.h). Feeds and outputs have to stay valid until
  // unbind() or the end of the stream; no output may be fed. Pushes what the inputs hold to a copy of the stream, so
  // that steps need not plan. A copy of the stream is not bound. Errors: as of a push; then what was bound before stays
  // bound.
  Status bind(std::span<const Feed> feeds, std::span<AnyValue* const> outputs, const RunOptions& options = {});
  void unbind();
  // A push with the bound arguments, to the last bit, as push_into(). Errors: kInvalidArgument if nothing is bound.
  Result<size_t> step();
  // Why steps cost as much as pushes; empty if they do not, or if nothing is bound.
  std::string_view why_unbound() const;

  // Plans pushes of these numbers of samples (default: one hop), and compiles their loops, so that no push has to.
  // Inputs that are given with each push are assumed to be zeros.
  Status warm(std::span<const int64_t> sizes = {}) const;
  // Why pushes of so many samples (0: one hop) may not keep real time (push_into, after the first ones of this size):
  // the session, or the first node that asks for memory, takes a lock or makes a system call. Empty: they do. Of
  // steps if the stream is bound. Plans pushes of this size, as warm() does, and compiles nothing.
  Result<std::string> breaks_realtime(int64_t samples) const;

  // The stream as programs of fixed sizes, for writers of code.
  Result<plan::StreamPrograms> plain_blocks(const PlainPushes& pushes) const;

  const std::vector<std::string>& output_names() const;
  // The axis along which the results of pushes are joined; -1 if each push gives the newest value.
  int64_t output_axis(size_t i) const;
  size_t state_count() const;
  const std::string& state_name(size_t i) const;  // name of the input
  const AnyValue& state(size_t i) const { return carried_.states[i]; }
  Status set_state(std::string_view input, AnyValue value);
  int64_t pending() const { return carried_.pending; }
  int64_t delay() const;  // samples by which a stream over time lags behind a run over all samples so far
  bool done() const;      // a Loop has ended by its condition: there are no further frames
  Status reset();

  // State, waiting samples and context. load() accepts a snapshot of a stream with the same model and roles; with
  // `other_weights`, the model's weights may differ.
  Result<std::string> save() const;
  Status load(std::string_view snapshot, bool other_weights = false);
  std::string to_string() const;

 private:
  friend class StreamPool;
  friend class PooledPush;
  explicit Stream(std::shared_ptr<const StreamLayout> layout) : layout_(std::move(layout)) {}
  Result<Pushed> advance(std::span<const Feed> feeds, bool last, const RunOptions& options);
  int64_t whole_hop() const;  // samples of a hop; 1 without hops
  // Pushes silence to a stream of its own; tells `pushed` of each push that ran after the first. warm.cc
  Status rehearse(int64_t samples, const std::function<void(const Push&)>& pushed = {}) const;
  std::string realtime_text() const;  // of the last push; realtime.cc
  template <class Source>
  Status load_found(Source& reader);  // snapshot.cc

  std::shared_ptr<const StreamLayout> layout_;
  Carried carried_;
  Push push_;  // the current push
};

}  // namespace treadle
