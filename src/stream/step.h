#pragma once
// The buffers of a stream that has begun, kept from push to push, so that pushes ask for no memory. The buffers are no
// part of the carried state: a copy of a stream begins without them.

#include <array>
#include <vector>

#include "session/session.h"

namespace treadle {

// How the samples that are there are divided.
struct StepRuns {
  const Session* session = nullptr;
  int64_t available = 0;  // samples behind the context
  int64_t samples = 0;    // new ones in each run
  size_t count = 0;       // of runs; what they leave waits
  int64_t hops = 0;       // in all runs
};

struct StreamScratch {
  StreamScratch() = default;
  StreamScratch(const StreamScratch&) {}
  StreamScratch& operator=(const StreamScratch& other) {
    if (this != &other) *this = StreamScratch();
    return *this;
  }
  StreamScratch(StreamScratch&&) noexcept = default;
  StreamScratch& operator=(StreamScratch&&) noexcept = default;
  ~StreamScratch() = default;

  const Session* session = nullptr;  // for which the rest was made
  RepeatedRun run;
  // Among the inputs of the run: those that are cut, those given with each push, states (declared, then found).
  std::vector<size_t> fed_at, states_at;
  std::vector<const AnyValue*> fed;            // by the push at hand; parallel to fed_at
  std::array<std::vector<AnyValue>, 2> spare;  // memory for the next states, of each other run
  bool joins = false;                          // the push at hand has joined samples
  std::vector<AnyValue> joined, windows;       // per timed input: all samples that are there; those of a run
  std::vector<AnyValue> tails;                 // per timed input: memory for what waits
  std::vector<AnyValue> rows;                  // per output of the stream: what one run gave, where that is a part
  std::vector<AnyValue> fresh;                 // per output: a result that the caller's place has no room for
  std::vector<AnyValue> kept;                  // per output: a result of the other number of hops
  bool odd = true;                             // the last push completed an odd number of hops
};

}  // namespace treadle
