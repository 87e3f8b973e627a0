#pragma once
// Finds pairs of an input and an output that are one state before and after a run, for states that the caller did not
// declare.

#include <cstdint>
#include <string>
#include <vector>

#include "session/session.h"

namespace treadle::stream {

// Whether a value may have both types.
bool compatible(const Type& a, const Type& b);

struct FoundPair {
  size_t input, output;  // indices in Session::inputs() and Session::outputs()
  std::string how;       // "by name, without 'past', 'present'"
};

// The inputs and outputs that may still be paired, parallel to Session::inputs() and Session::outputs(), and whether a
// push already feeds another input.
struct Unpaired {
  std::vector<uint8_t> inputs, outputs;
  bool is_fed = false;
};

// Pairs by names that are equal without words for before and after. Then, if the graph computes the output from the
// input (stream/state_paths.h), pairs by names that differ by one word, and pairs by the graph alone.
std::vector<FoundPair> find_state_pairs(const Session& session, Unpaired unpaired);

}  // namespace treadle::stream
