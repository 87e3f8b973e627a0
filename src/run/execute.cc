// The interpreter runs one instruction after the other. With a profile or an observer, it runs and reports each
// instruction by itself. Without them, loops may run many iterations per instruction (iterations.cc, native code), and
// a pipeline may stand for the instructions that follow it.
#include "run/context.h"
#include "run/observer.h"
#include "run/profile.h"

// For helpers that run in every iteration of a loop: they become part of the interpreter's one function.
#define TREADLE_STEP [[gnu::always_inline]] inline

namespace treadle::run {

using plan::Instruction;
using plan::Loop;
using plan::OpCode;

Status Context::execute() {
  if (observer_) return interpret<Told::kValues>();
  return profile_ ? interpret<Told::kTimes>() : interpret<Told::kNothing>();
}

// Each handler moves `in` to the instruction to run next, or leaves it at the instruction that failed.
template <Told kTold>
Status Context::interpret() {
  const Instruction* const code = program_->code.data();
  const Instruction* in = code;
  [[maybe_unused]] uint32_t ran = 0;  // the instruction before
  // Handlers called through this get a copy of `in`, so that `in` itself stays in a register.
  const auto apart = [&](Status (Context::*what)(const Instruction*&)) {
    const Instruction* next = in;
    Status status = (this->*what)(next);
    in = next;
    return status;
  };
  for (;;) {
    Status status;
    if constexpr (kTold == Told::kTimes) {
      if (in->code != OpCode::kInStrips) {
        profile_->at(static_cast<uint32_t>(in - code), [this](uint32_t loop) { return loops_[loop].iteration; });
      }
    }
    if constexpr (kTold == Told::kValues) {
      const auto next = static_cast<uint32_t>(in - code);
      if (in != code) status = observer_->ran(ran, next);
      if (!status.ok()) return place_error(std::move(status), next);
      ran = next;
    }
    switch (in->code) {
      case OpCode::kKernel:
        status = run_kernels<kTold>(in);
        if (status.ok()) continue;
        break;
      case OpCode::kRow:
        status = run_row(in);
        if (status.ok()) continue;
        break;
      case OpCode::kCopy:
        frame_.copy(program_->copies[in++->index]);
        continue;
      case OpCode::kJump:
        in = code + in->target;
        continue;
      case OpCode::kBranchUnless:
        status = branch(in, code + in->target);
        if (status.ok()) continue;
        break;
      case OpCode::kLoopBegin:
        status = apart(&Context::enter_loop<kTold>);
        break;
      case OpCode::kLoopNext:
        status = apart(&Context::end_iteration<kTold>);
        break;
      case OpCode::kLoopNextSimple:
        status = end_simple_iteration<kTold>(in, code + in->target);
        if (status.ok()) continue;
        break;
      case OpCode::kLoopEnd:
        status = apart(&Context::leave_loop);
        break;
      case OpCode::kMove:
      case OpCode::kGuarded:
      case OpCode::kCompute:
        status = dynamic_.run(in, in + 1);
        break;
      case OpCode::kPoll:
        status = polls_.poll();
        in += status.ok();
        break;
      case OpCode::kPipeline:
        status = apart(&Context::offer_pipeline<kTold>);
        break;
      case OpCode::kPipelineEnd:
        if constexpr (kTold == Told::kNothing) pipelines_.end(in->index);
        ++in;
        continue;
      case OpCode::kInStrips:
        ++in;
        continue;
      case OpCode::kEnd:
        return {};
    }
    if (!status.ok()) return place_error(std::move(status), static_cast<uint32_t>(in - code));
  }
}

template <Told kTold>
TREADLE_STEP Status Context::run_kernels(const Instruction*& in) {
  void** const slots = frame_.slots();
  do {
    if (const uint32_t failed = in->run(in->state, slots, in->operands)) return kernel_status(failed);
  } while ((++in)->code == OpCode::kKernel && kTold == Told::kNothing);
  return {};
}

TREADLE_STEP Status Context::run_row(const Instruction*& in) {
  if (const uint32_t failed = frame_.point_at_row(program_->rows[in->index])) return kernel_status(failed);
  ++in;
  return {};
}

TREADLE_STEP Status Context::branch(const Instruction*& in, const Instruction* target) {
  const uint32_t flag = in->index;
  bool condition = false;
  if (frame_.is_handle(flag)) {
    TREADLE_TRY(frame_.read_flag(flag, "cond", condition));
  } else {  // inlined: bodies of a few operations branch, too
    condition = *static_cast<const bool*>(frame_.address(flag));
  }
  in = condition ? in + 1 : target;
  return {};
}

template <Told kTold>
Status Context::enter_loop(const Instruction*& in) {
  const uint32_t index = in->index;
  bool runs = false;
  TREADLE_TRY(runner_.begin_loop(index, runs));
  in = runs ? in + 1 : target_of(*in);
  if (kTold != Told::kNothing || !runs) return {};
  TREADLE_TRY(runner_.request_native(index, in));
  return runner_.run(index, polls_.budget(), in);
}

template <Told kTold>
Status Context::end_iteration(const Instruction*& in) {
  const uint32_t index = in->index;
  bool again = false;
  TREADLE_TRY(runner_.take_edge(index, again));
  in = again ? target_of(*in) : in + 1;
  if (kTold != Told::kNothing || !again || !runner_.switches_to_native(index, polls_.budget().units)) return {};
  return runner_.run(index, polls_.budget(), in);
}

template <Told kTold>
TREADLE_STEP Status Context::end_simple_iteration(const Instruction*& in, const Instruction* body) {
  const uint32_t index = in->index;
  const Loop& loop = program_->loops[index];
  LoopPosition& at = loops_[index];
  Budget& budget = polls_.budget();
  const bool continues = take_simple_edge(loop, at, frame_.slots());
  const bool is_granted =
      budget.units >= loop.schedule.weight && at.iteration < std::min(at.iterations, at.row_capacity);
  if (continues && is_granted) {  // as LoopRunner::next if the iteration neither polls, starts a strip nor needs room
                                  // for rows
    ++budget.iterations;
    budget.units -= loop.schedule.weight;
  } else if (continues && loops_.has_iteration(index)) {
    TREADLE_TRY(runner_.next(index, budget));
  } else {
    ++in;
    return {};
  }
  in = body;
  if (kTold != Told::kNothing || !runner_.switches_to_native(index, budget.units)) return {};
  const Instruction* next = in;
  Status status = runner_.run(index, budget, next);
  in = next;
  return status;
}

Status Context::leave_loop(const Instruction*& in) {
  runner_.count_lost(in->index);
  TREADLE_TRY(runner_.end_loop(in->index));
  ++in;
  return {};
}

template <Told kTold>
Status Context::offer_pipeline(const Instruction*& in) {
  bool done = false;
  if constexpr (kTold == Told::kNothing) TREADLE_TRY(pipelines_.run(in->index, done));
  in = done ? target_of(*in) : in + 1;
  return {};
}

}  // namespace treadle::run
