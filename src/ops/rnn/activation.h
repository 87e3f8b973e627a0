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

// The functions for `directions` times `defaults.size()` positions. Case of names does not matter. A function with an
// alpha (a beta) takes the next entry of activation_alpha (activation_beta), in order through both directions; behind
// the end of the list it takes the function's default. Further names are ignored.
Result<std::vector<Activation>> read_activations(const ir::Attributes& attributes, size_t directions,
                                                 std::initializer_list<const char*> defaults);

// The form in which the internal cell operators have activations: three lists of the same length.
std::vector<ir::Attribute> to_attributes(std::span<const Activation> activations);
std::vector<Activation> from_attributes(const ir::Attributes& attributes);

}  // namespace treadle::rnn
