#pragma once
// CausalConvWithState: a convolution of each channel with its own kernel over past and new steps.

#include "ops/norm/channels.h"

namespace treadle::attention {

struct CausalConvState {
  enum Input : size_t { kData, kWeight, kBias, kPast };
  static constexpr size_t kInputs = 4;

  size_t batch = 0, channels = 0, length = 0, taps = 1;
  WideOperand inputs[kInputs];
  bool present[kInputs] = {};
  norm::WideResult output, state;
  bool has_state = false;
  kernels::Row swish = nullptr;
  size_t row = 0;  // offset in scratch of a channel's past and new steps
  uint32_t outputs = 0, scratch = 0;
};

uint32_t run_causal_conv(const void* state, void* const* slots, const uint32_t* operands);

}  // namespace treadle::attention
