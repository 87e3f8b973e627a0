#pragma once
// One push of a stream: begin() checks what is fed and decides what runs, run() makes the runs, give() puts their
// results together, commit() changes what the stream carries, and nothing before commit() does.
//
// Every value that a push makes has a place here, and the places are kept from push to push: one that already has
// memory of the right size is written in place, so a push like those before it asks for no memory. States and their
// successors take turns in two or three places, and so do the samples that wait. The places are no part of what is
// carried: a copy of a stream begins without them.

#include <array>
#include <span>
#include <vector>

#include "session/session.h"
#include "stream/carried.h"
#include "stream/gathered.h"

namespace treadle {

// What a push runs.
struct Block {
  const Session* session = nullptr;               // null: nothing
  int64_t samples = 0;                            // new ones in each run
  size_t count = 0;                               // of runs; the samples that they leave wait
  int64_t hops = 0;                               // in all runs
  bool takes_found = false, gives_found = false;  // states that were found in the model
};

// Of so many samples that are there, how many the next runs take.
int64_t samples_to_run(const StreamLayout& layout, bool begun, int64_t available);
// Gives each input of the model what is bound to it or fed; parallel to StreamLayout::inputs. `last`: of a flush.
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

  // The whole of a push, or of the flush (`last`), with results in `places`, one per output of the stream. Gives the
  // number of runs. On an error `carried` is as it was, and so are the places but for what was written in their memory.
  Result<size_t> make(const StreamLayout& layout, Carried& carried, std::span<const Feed> feeds, bool last,
                      std::span<AnyValue* const> places, const RunOptions& options);

  // Its parts, for pools, which make the runs of many streams at once. Both references are to be valid until commit().
  Status begin(const StreamLayout& layout, const Carried& carried, std::span<const Feed> feeds, bool last);
  // Makes ready for the results of `count` runs (0: their number is not known), which take the memory of the places.
  void expect(size_t count, std::span<AnyValue* const> places);
  Gathered& results(size_t output) { return gathered_[output]; }
  Status give(std::span<AnyValue* const> places);
  // All but the states. Fails never.
  void commit(Carried& carried, std::span<AnyValue* const> places);

  const Block& block() const { return block_; }
  // All samples that are there of a timed input, those of the context included.
  const Tensor& samples(size_t timed) const { return samples_[timed]->tensor(); }
  // What the first run takes.
  const AnyValue& first_state(size_t i) const;

 private:
  void prepare(const StreamLayout& layout);
  Status pad(size_t timed);
  Status join(size_t timed);
  Block choose_block() const;
  Symbols symbols() const;
  Status settle_states();
  Status next_tails();

  void prepare_run(const Session& session);
  void feed_all_runs();
  Result<const AnyValue*> window(size_t run, size_t timed);
  Status feed(size_t run);
  Status run_session(const RunOptions& options);
  Status run(const RunOptions& options);

  void turn_places(bool odd, std::span<AnyValue* const> places);
  Status give_nothing(size_t output, AnyValue& place);
  Status keep_value(size_t output, const AnyValue& value);
  bool lacks_frames(size_t output, const AnyValue& value) const;
  void commit_states(Carried& carried);

  const StreamLayout* layout_ = nullptr;
  const Carried* carried_ = nullptr;
  bool last_ = false;
  Block block_;
  std::vector<const AnyValue*> fed_;                          // parallel to StreamLayout::inputs; null: nothing
  std::vector<const AnyValue*> samples_;                      // per timed input; empty: no sample has ever come
  int64_t available_ = 0;                                     // samples behind the context
  std::vector<AnyValue> padding_, joined_, windows_, tails_;  // per timed input
  bool new_tails_ = false;                                    // other than those that the stream has
  std::vector<AnyValue> settled_;                             // per declared state: zeros of the sizes that came
  std::array<std::vector<AnyValue>, 2> next_;                 // states behind the run at hand and the one before
  std::vector<AnyValue> found_;                               // room for those that were found
  std::vector<Gathered> gathered_;                            // per output
  std::vector<Dims> last_dims_;
  std::vector<AnyValue> last_values_;
  std::vector<AnyValue> kept_;  // per output: a result of the other number of hops
  bool odd_ = true;             // the last push completed an odd number of hops

  const Session* session_ = nullptr;  // for which the rest was made
  RepeatedRun repeated_;
  bool by_position_ = false;
  std::vector<size_t> at_, found_at_;  // positions among its inputs: parallel to StreamLayout::inputs; of states found
};

}  // namespace treadle
