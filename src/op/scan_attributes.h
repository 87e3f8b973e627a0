#pragma once
// The axes and directions of a Scan, read once from its attributes. Of version 8: what it does with one batch entry.

#include <vector>

#include "ir/graph.h"

namespace treadle {

struct ScanAxis {
  int64_t axis = 0;  // as written: may be negative
  bool reverse = false;
};

struct ScanAttributes {
  size_t states = 0;
  std::vector<ScanAxis> inputs;   // one per scan input
  std::vector<ScanAxis> outputs;  // one per scan output; axis counts over the rank of the output (element + 1)
  // Of lowerings: scan input 0 is a mask, bool. A trip whose mask is all false keeps the states and has rows of zeros,
  // so trips that lie behind the last other one in time need not run.
  bool masked = false;
};

// `node_inputs`: inputs of the node, without version 8's sequence_lens; `body_outputs`: outputs of its body. Errors
// kInvalidModel when counts, list lengths or directions are not as the specification asks.
Result<ScanAttributes> read_scan(const ir::NodeInfo& node, size_t node_inputs, size_t body_outputs);

// That scan input `input` is not as long as those before it.
Status unequal_lengths(size_t input, int64_t length, int64_t before);
// That a trip changes the type or shape of a state.
Status changed_state(Code code, size_t state, int64_t trip, const Type& before, const Type& after);

}  // namespace treadle
