#pragma once
// LinearAttention: each head has a state of d_k x d_v numbers, which each token decays, corrects and adds to. The
// token's queries read the state.

#include "ops/norm/channels.h"

namespace treadle::attention {

struct LinearRule {
  bool gated = false, delta = false;
};

struct LinearState {
  enum Input : size_t { kQuery, kKey, kValue, kPast, kDecay, kBeta };
  static constexpr size_t kInputs = 6;

  int64_t batch = 0, length = 0, heads = 0, shared = 0, d_k = 0, d_v = 0;
  int64_t decay_width = 0, beta_width = 0;  // per token
  LinearRule rule;
  float scale = 1;
  WideOperand inputs[kInputs];
  bool present[kInputs] = {};
  norm::WideResult output, state;
  bool has_state = false;
  size_t state_scratch = 0, correction = 0;  // offsets in scratch
  uint32_t outputs = 0, scratch = 0;
};

uint32_t run_linear_attention(const void* state, void* const* slots, const uint32_t* operands);

}  // namespace treadle::attention
