#pragma once
// What a stream works in when a push is one run like the one before; kept from push to push, so that such a push asks
// for no memory. No part of what is carried: a copy begins without.

#include <vector>

#include "exec/session.h"

namespace treadle {

struct StreamScratch {
  StreamScratch() = default;
  StreamScratch(const StreamScratch&) {}
  StreamScratch& operator=(const StreamScratch&) { return *this; }
  StreamScratch(StreamScratch&&) noexcept = default;
  StreamScratch& operator=(StreamScratch&&) noexcept = default;
  ~StreamScratch() = default;

  std::vector<Feed> feeds;
  std::vector<size_t> wanted;
  std::vector<AnyValue> results;  // of a run: outputs, then states
  std::vector<AnyValue> spare;    // memory for the next states: declared ones, then those found
  std::vector<Tensor> windows;    // per timed input: context and chunk
};

}  // namespace treadle
