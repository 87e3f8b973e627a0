#pragma once
// What a stream works in when a push is one run like the one before; kept from push to push, so that such a push asks
// for no memory. No part of what is carried: a copy begins without.

#include <vector>

#include "exec/session.h"

namespace treadle {

struct StreamScratch {
  StreamScratch() = default;
  StreamScratch(const StreamScratch&) {}
  StreamScratch& operator=(const StreamScratch&) { return *this = StreamScratch(); }
  StreamScratch(StreamScratch&&) noexcept = default;
  StreamScratch& operator=(StreamScratch&&) noexcept = default;
  ~StreamScratch() = default;

  const Session* session = nullptr;  // for which the rest was made
  RepeatedRun run;
  // Among the inputs of the run: those that are cut, those given with each push, states (declared, then found).
  std::vector<size_t> fed_at, states_at;
  std::vector<const AnyValue*> fed;  // by the push at hand; parallel to fed_at
  std::vector<AnyValue> spare;       // memory for the next states
  std::vector<AnyValue> windows;     // per timed input: context and chunk
  std::vector<AnyValue> rows;        // per output of the stream: the row of one that is stacked
};

}  // namespace treadle
