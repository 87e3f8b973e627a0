#include "run/loop_runner.h"

#include <algorithm>
#include <utility>

#include "plan/chain_loops.h"
#include "run/profile.h"

namespace treadle::run {

using plan::Instruction;
using plan::Loop;
using plan::OpCode;
using plan::RowKernel;
using plan::ScanInput;

LoopRunner::LoopRunner(const plan::Program& program, Frame& frame, Polls& polls, Loops& loops, DynamicNodes& dynamic,
                       std::shared_ptr<NativeLoops> native, int64_t native_iteration)
    : program_(program),
      frame_(frame),
      polls_(polls),
      loops_(loops),
      dynamic_(dynamic),
      native_(std::move(native)),
      native_iteration_(native_iteration),
      counts_(native_ && native_->mode() == Jit::kAuto) {}

Status LoopRunner::begin_loop(uint32_t index, bool& runs) {
  TREADLE_TRY(loops_.begin(index, runs));
  if (runs && program_.loops[index].schedule.strips.iterations > 0) make_strip(index);
  return {};
}

Status LoopRunner::request_native(uint32_t index, const Instruction*& in) {
  const Loop& loop = program_.loops[index];
  const LoopPosition& at = loops_[index];
  if (!native_) return {};
  const bool is_counted = loop.continues == plan::kNoSlot && at.iterations_known;
  native_->before_loop(index, is_counted ? at.all_iterations - at.iteration : 0);
  if (native_->mode() != Jit::kRequired || at.iteration < native_iteration_ || native_code(index)) return {};
  in = program_.code.data() + loop.last - 1;
  return error(Code::kNotImplemented, "jit is required, but the loop is not native code: {}", native_->why_not(index));
}

Status LoopRunner::run(uint32_t index, Budget& budget, const Instruction*& in) {
  const Loop& loop = program_.loops[index];
  LoopPosition& at = loops_[index];
  const Instruction* const back_edge = program_.code.data() + loop.last - 1;
  for (;;) {
    bool continues = true;
    if (const NativeCode* code = native_code(index)) {
      add_lost(index);
      TREADLE_TRY(run_native(*code, budget, in));
      at.counted = at.iteration;
      continues = loop.schedule.strips.iterations > 0;  // whose conditions are always true
    } else if (loop.schedule.chain) {
      const kernels::ChainIterations ran =
          loop.schedule.chain->run(loop.schedule.chain->steps.data(), frame_.slots(), granted(index, budget));
      continues = ran.continues;
      at.iteration += ran.count;
      budget.iterations += ran.count - 1;
      budget.units -= (ran.count - 1) * loop.schedule.weight;
    } else if (loop.step.straight) {
      TREADLE_TRY(run_bodies(loop, at, budget, granted(index, budget), continues, in));
    } else {
      return {};
    }
    in = back_edge;
    if (!continues || !loops_.has_iteration(index)) break;
    TREADLE_TRY(next(index, budget));
  }
  ++in;
  return {};
}

// How many iterations may run at once by limits and room for rows; at least one.
int64_t LoopRunner::granted(uint32_t index, const Budget& budget) const {
  const LoopPosition& at = loops_[index];
  const int64_t units = budget.units / program_.loops[index].schedule.weight + 1;
  const int64_t iterations = std::min({at.iterations, at.row_capacity, at.iteration + units}) - at.iteration;
  return native_ && at.iteration < native_iteration_ ? std::min(iterations, native_iteration_ - at.iteration)
                                                     : iterations;
}

Status LoopRunner::run_bodies(const Loop& loop, LoopPosition& at, Budget& budget, int64_t iterations, bool& continues,
                              const Instruction*& failed) {
  const Instruction* const body = program_.code.data() + loop.first + 1;
  void** const slots = frame_.slots();
  for (int64_t i = 0; i < iterations; ++i) {
    if (i > 0) {
      ++budget.iterations;
      budget.units -= loop.schedule.weight;
    }
    for (const Instruction* in = body; in->code != OpCode::kLoopNextSimple; ++in) {
      if (in->code == OpCode::kKernel) {
        if (const uint32_t code = in->run(in->state, slots, in->operands)) {
          failed = in;
          return kernel_status(code);
        }
      } else {
        frame_.copy(program_.copies[in->index]);
      }
    }
    continues = take_simple_edge(loop, at, slots);
    if (!continues) break;
  }
  return {};
}

Status LoopRunner::take_edge(uint32_t index, bool& again) {
  const int64_t units = polls_.budget().units;
  TREADLE_TRY(loops_.next(index, again));
  if (counts_ && again && polls_.budget().units > units) {
    add_lost(index);
    report_lost(index);
  }
  return {};
}

Status LoopRunner::next(uint32_t index, Budget& budget) {
  const Loop& loop = program_.loops[index];
  LoopPosition& at = loops_[index];
  const int64_t units = budget.units;
  TREADLE_TRY(polls_.count_iteration(loop.schedule.weight, budget));
  if (counts_ && budget.units > units) {
    add_lost(index);
    report_lost(index);
  }
  if (at.iteration == at.iterations) make_strip(index);
  return at.iteration >= at.row_capacity ? loops_.grow_rows(index) : Status();
}

// --- when native code would pay --------------------------------------------------------------------------------------

void LoopRunner::add_lost(uint32_t index) {
  if (!counts_) return;
  LoopPosition& at = loops_[index];
  loops_[native_->outermost(index)].lost_ns +=
      static_cast<double>(at.iteration - at.counted) * native_->iteration_saves_ns(index);
  at.counted = at.iteration;
}

void LoopRunner::report_lost(uint32_t index) {
  const double lost_ns = std::exchange(loops_[native_->outermost(index)].lost_ns, 0);
  if (lost_ns > 0) native_->interpreted(index, lost_ns);
}

// --- rows of kernels that lie outside of the loop --------------------------------------------------------------------

uint32_t run_rows(Frame& frame, const RowKernel& rows, int64_t first, bool is_rest) {
  static constexpr uint32_t kPlaces[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  void* operands[RowKernel::kMostOperands + 1] = {};  // the last one is scratch: kernels over rows have no kept memory
  for (size_t i = 0; i < rows.operand_count; ++i) {
    const auto& [slot, row_bytes] = rows.operands[i];
    void* whole = frame.address(slot);
    operands[i] = whole ? static_cast<std::byte*>(whole) + static_cast<size_t>(first) * row_bytes : nullptr;
  }
  const Kernel& kernel = is_rest ? rows.rest : rows.whole;
  return kernel.run(kernel.state, operands, kPlaces);
}

// Computes the rows of the coming strip, and ends the loop's iterations with the strip. Kernels that can fail are in no
// strip. So only a stop breaks one off, and the run finds the stop itself.
void LoopRunner::make_strip(uint32_t index) {
  const Loop& loop = program_.loops[index];
  LoopPosition& at = loops_[index];
  const plan::Strips& strips = loop.schedule.strips;
  const int64_t end = std::min(at.iteration + strips.iterations, loop.known_iterations);
  const bool reverse = loop.scan_inputs[0].reverse;
  const int64_t first = reverse ? loop.known_iterations - end : at.iteration;
  for (const RowKernel& rows : strips.kernels) {
    if (profile_) profile_->at(rows.at, [this](uint32_t inner) { return loops_[inner].iteration; });
    [[maybe_unused]] const uint32_t failed = run_rows(frame_, rows, first, end - at.iteration < strips.iterations);
    TREADLE_ASSERT(failed == 0);
  }
  for (const uint32_t i : strips.inputs) {
    const ScanInput& scan = loop.scan_inputs[i];
    const int64_t row = reverse ? end - at.iteration - 1 : 0;
    frame_.point(scan.element,
                 static_cast<std::byte*>(frame_.address(scan.whole)) + row * static_cast<int64_t>(scan.element_bytes));
  }
  at.iterations = std::min(end, at.all_iterations);
}

}  // namespace treadle::run
