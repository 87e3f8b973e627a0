// The trips of a loop whose values are planned, in whichever way the loop runs, and what happens between two trips. A
// loop of the program, one in blocks of time (plan/strip_mining.h) and a stage of a pipeline (plan/pipelines.h) all
// come here; bodies that branch, or whose values are looked up, take turns with the interpreter (execute.cc).
#include <algorithm>

#include "plan/chain_loops.h"
#include "run/context.h"
#include "run/profile.h"

namespace treadle::run {

using plan::Instruction;
using plan::Loop;
using plan::OpCode;
using plan::RowKernel;
using plan::ScanInput;

// Code may be made for a loop whose next trip has been counted.
Status Context::ask_for_native(uint32_t index, const Instruction*& in) {
  const Loop& loop = program_->loops[index];
  const LoopPosition& at = loops_[index];
  if (!native_) return {};
  const bool is_counted = loop.continues == plan::kNoSlot && at.trips_known;
  if (loop.step.simple) native_->before_loop(index, is_counted ? at.all_trips - at.trip : 0);
  if (native_->mode() != Jit::kRequired || at.trip < native_trip_ || native_code(index)) return {};
  in = program_->code.data() + loop.last - 1;
  return error(Code::kNotImplemented, "jit is required, but the loop is not native code: {}", native_->why_not(index));
}

Status Context::run_trips(uint32_t index, Budget& budget, const Instruction*& in) {
  const Loop& loop = program_->loops[index];
  LoopPosition& at = loops_[index];
  const Instruction* const back_edge = program_->code.data() + loop.last - 1;
  for (;;) {
    bool continues = true;
    if (const NativeCode* code = native_code(index)) {
      TREADLE_TRY(run_native(*code, budget, in));
      continues = loop.schedule.blocks.trips > 0;  // whose conditions are no others
    } else if (loop.schedule.chain) {
      const kernels::ChainTrips ran =
          loop.schedule.chain->run(loop.schedule.chain->steps.data(), slots_.data(), granted(index, budget));
      continues = ran.continues;
      at.trip += ran.count;
      budget.trips += ran.count - 1;
      budget.units -= (ran.count - 1) * loop.schedule.weight;
    } else if (loop.step.straight) {
      TREADLE_TRY(run_bodies(loop, at, budget, granted(index, budget), continues, in));
    } else {
      return {};
    }
    in = back_edge;
    if (!continues || !has_trip(index)) break;
    TREADLE_TRY(next_trip(index, budget));
  }
  ++in;
  return {};
}

// As many trips as limits and rows allow at once; one at least.
int64_t Context::granted(uint32_t index, const Budget& budget) const {
  const LoopPosition& at = loops_[index];
  const int64_t units = budget.units / program_->loops[index].schedule.weight + 1;
  const int64_t trips = std::min({at.trips, at.row_capacity, at.trip + units}) - at.trip;
  return native_ && at.trip < native_trip_ ? std::min(trips, native_trip_ - at.trip) : trips;
}

Status Context::run_bodies(const Loop& loop, LoopPosition& at, Budget& budget, int64_t trips, bool& continues,
                           const Instruction*& failed) {
  const Instruction* const body = program_->code.data() + loop.first + 1;
  void** const slots = slots_.data();
  for (int64_t i = 0; i < trips; ++i) {
    if (i > 0) {
      ++budget.trips;
      budget.units -= loop.schedule.weight;
    }
    for (const Instruction* in = body; in->code != OpCode::kLoopNextSimple; ++in) {
      if (in->code == OpCode::kKernel) {
        if (const uint32_t code = in->run(in->state, slots, in->operands)) {
          failed = in;
          return kernel_status(code);
        }
      } else {
        copy(program_->copies[in->index]);
      }
    }
    continues = step(loop, at);
    if (!continues) break;
  }
  return {};
}

Status Context::next_trip(uint32_t index, Budget& budget) {
  const Loop& loop = program_->loops[index];
  LoopPosition& at = loops_[index];
  const int64_t units = budget.units;
  TREADLE_TRY(count_trip(loop, budget));
  if (native_ && budget.units > units) native_->worked(index, plan::kPollUnits);
  if (at.trip == at.trips) make_block(loop, at);
  return at.trip >= at.row_capacity ? grow_rows(loop, at) : Status();
}

// --- rows of kernels that lie outside of the loop --------------------------------------------------------------------

uint32_t Context::run_rows(const RowKernel& rows, int64_t first, bool is_rest) const {
  static constexpr uint32_t kPlaces[RowKernel::kMostOperands] = {0, 1, 2, 3, 4, 5, 6, 7};
  void* operands[RowKernel::kMostOperands];
  for (size_t i = 0; i < rows.operand_count; ++i) {
    const auto& [slot, row_bytes] = rows.operands[i];
    void* whole = slots_[slot];
    operands[i] = whole ? static_cast<std::byte*>(whole) + static_cast<size_t>(first) * row_bytes : nullptr;
  }
  const Kernel& kernel = is_rest ? rows.rest : rows.whole;
  return kernel.run(kernel.state, operands, kPlaces);
}

// Kernels that can fail are in no block, so only a stop keeps a block from being made; the run looks for one itself.
void Context::make_block(const Loop& loop, LoopPosition& at) {
  const plan::Strips& blocks = loop.schedule.blocks;
  const int64_t end = std::min(at.trip + blocks.trips, loop.known_trips);
  const bool reverse = loop.scan_inputs[0].reverse;
  const int64_t first = reverse ? loop.known_trips - end : at.trip;
  for (const RowKernel& rows : blocks.kernels) {
    if (options_->profile) {
      options_->profile->at(rows.at, [this](uint32_t inner) { return loops_[inner].trip; });
    }
    [[maybe_unused]] const uint32_t failed = run_rows(rows, first, end - at.trip < blocks.trips);
    TREADLE_ASSERT(failed == 0);
  }
  for (const uint32_t i : blocks.inputs) {
    const ScanInput& scan = loop.scan_inputs[i];
    const int64_t row = reverse ? end - at.trip - 1 : 0;
    slots_[scan.element] = static_cast<std::byte*>(slots_[scan.whole]) + row * static_cast<int64_t>(scan.element_bytes);
  }
  at.trips = std::min(end, at.all_trips);
}

}  // namespace treadle::run
