#pragma once
// The activation functions of RNN, GRU and LSTM, as attributes name them.

#include <string>
#include <vector>

#include "base/status.h"
#include "ir/attribute.h"
#include "kernels/elementwise_ops.h"

namespace treadle::rnn {

struct Activation {
  kernels::ElementwiseOp op{};
  float alpha = 0;
  float beta = 0;
};

// The functions for `directions` times `defaults.size()` places. Names are taken without regard to case; only a
// function that has an alpha (a beta) takes one from activation_alpha (activation_beta), in order, on through the
// second direction; where the list has run out, the function's own default holds. Names beyond the last place are
// ignored.
Result<std::vector<Activation>> read_activations(const ir::Attributes& attributes, size_t directions,
                                                 std::initializer_list<const char*> defaults);

// How the internal cell operators carry activations: three lists of one length.
std::vector<ir::Attribute> to_attributes(std::span<const Activation> activations);
std::vector<Activation> from_attributes(const ir::Attributes& attributes);

}  // namespace treadle::rnn
