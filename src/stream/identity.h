#pragma once
// What two streams have to agree in before one goes on with what the other carries.

#include <cstdint>
#include <string>

#include "base/status.h"

namespace treadle {

struct StreamLayout;

struct StreamIdentity {
  uint64_t graph = 0, weights = 0;  // of the model (session/fingerprint.h)
  uint64_t roles = 0;               // inputs and outputs by name and role, axes, hop and context
  uint64_t bound = 0;               // contents of bound inputs
  uint64_t found = 0;               // states that were found in a model over time: nodes that have them, types

  static StreamIdentity of(const StreamLayout& layout);
};

// Whether a stream of identity `mine` may go on with what a stream of identity `other` carries. Errors:
// kInvalidArgument says in what they differ; `what` ("the snapshot") names the other one, and the texts are those of
// the streams. With `other_weights` contents of constants may differ.
Status check_same(const StreamIdentity& mine, const std::string& my_text, const StreamIdentity& other,
                  std::string_view other_text, std::string_view what, bool other_weights);

}  // namespace treadle
