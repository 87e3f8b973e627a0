#pragma once
// The part of a step of LSTM or GRU behind its matrix product, for one batch entry with the default activations
// (sigmoid gates, tanh elsewhere). A lane's result depends on the lane's inputs only, not on `hidden` or on the lane's
// position in the row. It differs by rounding from rows of sigmoids, tanhs, products and sums.

#include <cstddef>

#include "type/element_type.h"

namespace treadle::kernels {

struct RecurrentRows {
  // gates: preactivations i, o, f, c. c' = f·c + i·tanh(c gate), h' = o·tanh(c'). c_out may be c.
  void (*lstm)(const void* gates, const void* c, void* h_out, void* c_out, size_t hidden) = nullptr;
  // x, u: gates z, r, h of the input and of the recurrent product. candidate = tanh(r·u_h + x_h). out may be h.
  void (*gru)(const void* x, const void* u, const void* h, void* out, size_t hidden) = nullptr;
  // gates: z, r. Writes sigmoid(z) and sigmoid(r)·h.
  void (*gru_gates)(const void* gates, const void* h, void* z, void* rh, size_t hidden) = nullptr;
  // h' = (1 - z)·tanh(gate) + z·h. out may be any of the inputs.
  void (*gru_update)(const void* gate, const void* z, const void* h, void* out, size_t hidden) = nullptr;
};

// kF32 or kF64, for preferred_isa().
const RecurrentRows& recurrent_rows(ComputeType type);

}  // namespace treadle::kernels
