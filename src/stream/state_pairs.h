#pragma once
// Pairs of an input and an output that are one state before and after a run, as far as nobody has given them.

#include <cstdint>
#include <string>
#include <vector>

#include "session/session.h"

namespace treadle::stream {

// Whether a value of the one type may be one of the other.
bool compatible(const Type& a, const Type& b);

struct FoundPair {
  size_t input, output;  // of Session::inputs() and Session::outputs()
  std::string how;       // "by name, without 'past', 'present'"
};

// What may still be paired, parallel to Session::inputs() and Session::outputs(), and whether a push feeds something
// else already.
struct Unpaired {
  std::vector<uint8_t> inputs, outputs;
  bool is_fed = false;
};

// By names that are alike but for words that say before and after; then by names of which one has one word more, and by
// nothing but the graph, where the graph makes the output of the input (stream/state_paths.h).
std::vector<FoundPair> find_state_pairs(const Session& session, Unpaired unpaired);

}  // namespace treadle::stream
