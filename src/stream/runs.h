#pragma once
// What a push of a stream works with.

#include <string_view>
#include <utility>
#include <vector>

#include "stream/stream.h"

namespace treadle {

// What one push works with; nothing of the stream changes until all of its runs have succeeded.
struct Stream::Runs {
  std::vector<Feed> constant;  // bound and given with the push
  std::vector<Tensor> chunks;  // per timed input
  std::vector<Tensor> joined;  // context, waiting samples, chunk
  int64_t available = 0;       // samples behind the context
  int64_t hop = 0;
  size_t count = 0;
  using Symbols = std::vector<std::pair<std::string_view, int64_t>>;  // sizes, by the names that the model gives them
  Symbols symbols;
  std::vector<AnyValue> states;
  std::vector<std::vector<AnyValue>> results;  // per output, per run
};

const AnyValue* find_feed(std::span<const Feed> feeds, std::string_view name);  // null: not among them
// Zeros, or what is empty; open sizes as in `symbols`, else 1, or 0 of what grows.
Result<AnyValue> first_state(const IoInfo& info, const Stream::Runs::Symbols& symbols);

// Of a stream over time: what a push runs.
struct Stream::Block {
  const Session* session = nullptr;  // null: nothing runs yet
  int64_t samples = 0;
  bool takes_found = false, gives_found = false;  // states that were found
};

}  // namespace treadle
