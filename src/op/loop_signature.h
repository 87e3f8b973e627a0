#pragma once
// The positions of inputs and outputs of a Loop or Scan and of its body. No other code knows these positions.
//
//              inputs of the node                     body: inputs -> outputs                      outputs of the node
//     Loop     M, cond, states                        iteration, cond, states -> cond, states, rows     states, scan outputs
//     Scan     states, scan inputs                    states, elements -> states, rows             states, scan outputs
//     Scan-8   sequence_lens, states, scan inputs     as Scan, for one entry of the batch          states, scan outputs
#include <vector>

#include "ir/graph.h"
#include "op/op_def.h"

namespace treadle {

struct ScanAxis {
  int64_t axis = 0;  // as written: may be negative
  bool reverse = false;
};

// How many inputs and outputs precede the states.
struct BeforeStates {
  size_t inputs = 0, body_inputs = 0, body_outputs = 0;
};
// For a kLoop or kScan of this version.
BeforeStates before_states(Control control, int version);

struct LoopSignature {
  BeforeStates before;
  size_t states = 0;
  std::vector<ScanAxis> scan_inputs;   // empty for a Loop
  std::vector<ScanAxis> scan_outputs;  // axis counts over the rank of the output (row + 1); all 0 for a Loop
  // Set by lowerings: scan input 0 is a mask (bool). An iteration whose mask is all false keeps the states and has rows
  // of zeros, so iterations behind the last one with a true in its mask need not run.
  bool masked = false;

  // Positions of state `i`, scan input `i`, scan output `i`. States come first among the outputs of the node.
  size_t state_input(size_t i) const { return before.inputs + i; }
  size_t state_body_input(size_t i) const { return before.body_inputs + i; }
  size_t state_body_output(size_t i) const { return before.body_outputs + i; }
  size_t scan_input(size_t i) const { return before.inputs + states + i; }
  size_t scan_body_input(size_t i) const { return before.body_inputs + states + i; }
  size_t row_body_output(size_t i) const { return before.body_outputs + states + i; }
  size_t scan_output(size_t i) const { return states + i; }
};

// `inputs`: the number of all inputs of the node; `body_outputs`: outputs of its body. Errors: kInvalidModel if counts,
// lengths of lists or directions break the specification.
Result<LoopSignature> read_signature(const ir::NodeInfo& node, size_t inputs, size_t body_outputs);

// The error that scan input `input` has another length than those before it.
Status unequal_lengths(size_t input, int64_t length, int64_t before);
// The error that an iteration changes the type or shape of a state.
Status changed_state(Code code, size_t state, int64_t iteration, const Type& before, const Type& after);

}  // namespace treadle
