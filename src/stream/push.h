#pragma once
// One push of a stream: begin() checks the feeds and decides what runs, run() makes the runs, give() joins their
// results, commit() changes the stream's data. Nothing before commit() changes it.
//
// Every value of a push has a place in this class. Places are kept from push to push, and a place whose memory has the
// right size is written in place, so a push like earlier ones allocates nothing. States and their successors alternate
// between two or three places, and so do waiting samples. Places are not part of the stream's data: a copy of a stream
// begins without them.

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "session/session.h"
#include "stream/carried.h"
#include "stream/gathered.h"

namespace treadle {

class BoundPush;

// The runs of a push.
struct Block {
  const Session* session = nullptr;               // null: no run
  int64_t samples = 0;                            // new samples in each run
  size_t count = 0;                               // number of runs; the remaining samples wait
  int64_t hops = 0;                               // in all runs
  bool takes_found = false, gives_found = false;  // states that were found in the model
};

// How many of the `available` samples the next runs take.
int64_t samples_to_run(const StreamLayout& layout, bool begun, int64_t available);
// Sets for each input of the model its bound value or its feed; parallel to StreamLayout::inputs. `last`: for a flush.
Status sort_feeds(const StreamLayout& layout, std::span<const Feed> feeds, bool last,
                  std::vector<const AnyValue*>& fed);

class Push {
 public:
  Push() = default;
  Push(const Push&) {}
  Push& operator=(const Push& other) {
    if (this != &other) *this = Push();
    return *this;
  }
  Push(Push&&) noexcept = default;
  Push& operator=(Push&&) noexcept = default;
  ~Push() = default;

  // A whole push, or a flush (`last`), with results in `places`, one per output of the stream. Returns the number of
  // runs. On an error `carried` and the places are unchanged, except that memory of places may have been overwritten.
  Result<size_t> make(const StreamLayout& layout, Carried& carried, std::span<const Feed> feeds, bool last,
                      std::span<AnyValue* const> places, const RunOptions& options);

  // The parts of make(), for pools, which run many streams at once. Both references must be valid until commit().
  Status begin(const StreamLayout& layout, const Carried& carried, std::span<const Feed> feeds, bool last);
  // Prepares for the results of `count` runs (0: unknown), which take the memory of the places.
  void expect(size_t count, std::span<AnyValue* const> places);
  Gathered& results(size_t output) { return gathered_[output]; }
  Status give(std::span<AnyValue* const> places);
  // Changes all data except states. Never fails.
  void commit(Carried& carried, std::span<AnyValue* const> places);

  const Block& block() const { return block_; }
  // The runs of the last push: whether all of their values are tensors, passed by position; and the positions among
  // their inputs of inputs of the layout, and of found states.
  bool by_position() const { return by_position_; }
  const RepeatedRun& repeated() const { return repeated_; }
  size_t input_at(size_t k) const { return at_[k]; }
  size_t found_at(size_t i) const { return found_at_[i]; }
  // All available samples of a timed input, with its context.
  const Tensor& samples(size_t timed) const { return samples_[timed]->tensor(); }
  // A state as the first run takes it.
  const AnyValue& first_state(size_t i) const;
  // Why pushes like the last one that ran may not keep real time; empty if they do, or if no push has run. `bound`: of
  // steps.
  std::string breaks_realtime(bool bound) const;  // realtime.cc
  // Samples that the caller gave to the last push that ran; -1: none has.
  int64_t samples_pushed() const { return samples_pushed_; }
  // The bound push of the stream; null: nothing is bound.
  // Samples that the caller gave to the last push.
  int64_t samples_given() const { return samples_given_; }
  const std::shared_ptr<BoundPush>& bound() const { return bound_; }
  void set_bound(std::shared_ptr<BoundPush> bound) { bound_ = std::move(bound); }

 private:
  void prepare(const StreamLayout& layout);
  Status pad(size_t timed);
  Status join(size_t timed);
  Block choose_block() const;
  Symbols symbols() const;
  Status size_states();
  Status next_tails();

  void prepare_run(const Session& session);
  void feed_all_runs();
  Result<const AnyValue*> window(size_t run, size_t timed);
  Status feed(size_t run);
  Status run_session(const RunOptions& options);
  Status run(const RunOptions& options);

  void swap_places(bool odd, std::span<AnyValue* const> places);
  Status give_nothing(size_t output, AnyValue& place);
  Status keep_value(size_t output, const AnyValue& value);
  bool lacks_frames(size_t output, const AnyValue& value) const;
  void commit_states(Carried& carried);

  const StreamLayout* layout_ = nullptr;
  const Carried* carried_ = nullptr;
  bool last_ = false;
  Block block_;
  std::vector<const AnyValue*> fed_;                          // parallel to StreamLayout::inputs; null: no value
  std::vector<const AnyValue*> samples_;                      // per timed input; empty: no sample yet
  int64_t available_ = 0;                                     // samples after the context
  int64_t samples_given_ = 0;                                 // by the last push
  int64_t samples_pushed_ = -1;                               // by the last push that ran
  std::vector<AnyValue> padding_, joined_, windows_, tails_;  // per timed input
  bool new_tails_ = false;                                    // tails_ has new contents
  std::vector<AnyValue> sized_states_;         // per declared state: zeros of the sizes that the inputs gave
  std::array<std::vector<AnyValue>, 2> next_;  // states after the current run and the run before
  std::vector<AnyValue> found_;                // places for found states
  std::vector<Gathered> gathered_;             // per output
  std::vector<Dims> last_dims_;
  std::vector<AnyValue> last_values_;
  std::vector<AnyValue> kept_;  // per output: a result for the other parity of hops
  bool odd_ = true;             // the last push completed an odd number of hops

  std::shared_ptr<BoundPush> bound_;

  const Session* session_ = nullptr;  // the session for which the following members were made
  RepeatedRun repeated_;
  bool by_position_ = false;
  std::vector<size_t> at_, found_at_;  // positions among its inputs: of StreamLayout::inputs; of found states
};

}  // namespace treadle
