#pragma once
// A stream as programs of fixed sizes, as writers of code read them.

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/cpu.h"
#include "base/status.h"
#include "plan/stream_programs.h"

namespace treadle {

struct StreamLayout;

struct PlainPushes {
  int64_t samples = 0;                                     // of a push; 0: one hop
  std::span<const std::pair<std::string, int64_t>> sizes;  // session::GivenSizes
  Isa isa = Isa::kAvx2;                                    // session::PlainSizes
  bool ends = true;                                        // whether the end of the signal gets a run
};

// Errors: kInvalidArgument for numbers of samples that pushes of a fixed size cannot have, and for sizes that stay
// open; kNotImplemented for states that are no tensors or whose sizes change.
Result<plan::StreamPrograms> plain_blocks(const StreamLayout& layout, const PlainPushes& pushes);

}  // namespace treadle
