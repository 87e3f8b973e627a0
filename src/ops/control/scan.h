#pragma once
// What a Scan's attributes say, validated, for inference, planning and execution.

#include "base/inline_vector.h"
#include "base/status.h"
#include "ir/graph.h"

namespace treadle {

struct ScanForm {
  using List = InlineVector<int64_t, 8>;
  size_t states = 0;        // inputs and outputs [0, states) of the node and of its body
  size_t scan_inputs = 0;   // the inputs after them
  size_t scan_outputs = 0;  // the outputs after them
  List input_axes;          // one per scan input, as written: may be negative, counts axes of the whole tensor
  List output_axes;         // one per scan output, counts axes of the whole tensor (rank of the element + 1)
  List input_reverse;       // 1: from the end of the axis to its begin
  List output_reverse;      // 1: trip t writes to position length - 1 - t
};

// The form of a Scan of version 9 or later, or of what version 8 does per batch entry (`first_input` 1: what
// sequence_lens takes). kInvalidModel when lists or counts do not fit.
Result<ScanForm> scan_form(const ir::NodeInfo& node, size_t first_input = 0);

}  // namespace treadle
