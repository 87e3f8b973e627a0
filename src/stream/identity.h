#pragma once
// The properties in which two streams have to agree before one continues with the other's data.

#include <cstdint>
#include <string>

#include "base/status.h"

namespace treadle {

struct StreamLayout;

struct StreamIdentity {
  uint64_t graph = 0, weights = 0;  // hashes of the model (session/fingerprint.h)
  uint64_t roles = 0;               // inputs and outputs by name and role, axes, hop and context
  uint64_t bound = 0;               // contents of bound inputs
  uint64_t found = 0;               // states found in a model over time: their nodes and types

  static StreamIdentity of(const StreamLayout& layout);
};

// Whether a stream of identity `mine` may continue with the data of a stream of identity `other`. Errors:
// kInvalidArgument names the difference; `what` ("the snapshot") names the other stream, and the texts are the streams'
// texts. With `other_weights`, contents of constants may differ.
Status check_same(const StreamIdentity& mine, const std::string& my_text, const StreamIdentity& other,
                  std::string_view other_text, std::string_view what, bool other_weights);

}  // namespace treadle
