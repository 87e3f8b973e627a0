// Blocks of a loop's trips (plan/time_blocks.h): the loop ends after each, and begins again where it stopped, once the
// kernels have made the rows that its next trips scan.
#include <algorithm>

#include "exec/context.h"
#include "exec/profile.h"

namespace treadle::exec {

using plan::Loop;
using plan::RowKernel;
using plan::ScanInput;

// Kernels that can fail are in no block, so only a stop keeps a block from being made; the run looks for one itself.
void Context::make_block(const Loop& loop, LoopPosition& at) {
  static constexpr uint32_t kPlaces[RowKernel::kMostOperands] = {0, 1, 2, 3, 4, 5, 6, 7};
  const plan::TimeBlocks& blocks = loop.blocks;
  const int64_t end = std::min(at.trip + blocks.trips, loop.known_trips);
  const bool reverse = loop.scan_inputs[0].reverse;
  const int64_t first = reverse ? loop.known_trips - end : at.trip;
  for (const RowKernel& rows : blocks.kernels) {
    if (options_->profile) {
      options_->profile->at(rows.at, [this](uint32_t inner) { return loops_[inner].trip; });
    }
    void* operands[RowKernel::kMostOperands];
    for (size_t i = 0; i < rows.operand_count; ++i) {
      const auto& [slot, row_bytes] = rows.operands[i];
      void* whole = slots_[slot];
      operands[i] = whole ? static_cast<std::byte*>(whole) + static_cast<size_t>(first) * row_bytes : nullptr;
    }
    const Kernel& kernel = end - at.trip == blocks.trips ? rows.whole : rows.rest;
    [[maybe_unused]] const uint32_t failed = kernel.run(kernel.state, operands, kPlaces);
    TREADLE_ASSERT(failed == 0);
  }
  for (const uint32_t i : blocks.inputs) {
    const ScanInput& scan = loop.scan_inputs[i];
    const int64_t row = reverse ? end - at.trip - 1 : 0;
    slots_[scan.element] = static_cast<std::byte*>(slots_[scan.whole]) + row * static_cast<int64_t>(scan.element_bytes);
  }
  at.trips = std::min(end, at.all_trips);
}

Status Context::next_block(uint32_t index) {
  const Loop& loop = program_->loops[index];
  TREADLE_TRY(count_trip(loop));
  make_block(loop, loops_[index]);
  return {};
}

}  // namespace treadle::exec
