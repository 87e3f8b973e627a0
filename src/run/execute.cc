// The interpreter: one instruction after the other. With a profile, every one is run by itself and told to it; else
// loops may run ahead (trips.cc, native code) and pipelines take the place of what follows them.
#include "run/context.h"
#include "run/profile.h"

// Of what runs in every trip of a loop: with it, the interpreter is one function.
#define TREADLE_STEP [[gnu::always_inline]] inline

namespace treadle::run {

using plan::Instruction;
using plan::Loop;
using plan::OpCode;

Status Context::execute() {
  return options_->profile ? interpret<true>() : interpret<false>();
}

// What an instruction does leaves `in` where the run goes on, or at the instruction that an error belongs to.
template <bool kProfiled>
Status Context::interpret() {
  const Instruction* const code = program_->code.data();
  const Instruction* in = code;
  // Apart from this loop, so that `in` stays in a register.
  const auto apart = [&](Status (Context::*what)(const Instruction*&)) {
    const Instruction* next = in;
    Status status = (this->*what)(next);
    in = next;
    return status;
  };
  for (;;) {
    if (kProfiled && in->code != OpCode::kInStrips) {
      options_->profile->at(static_cast<uint32_t>(in - code), [this](uint32_t loop) { return loops_[loop].trip; });
    }
    Status status;
    switch (in->code) {
      case OpCode::kKernel:
        status = run_kernels<kProfiled>(in);
        if (status.ok()) continue;
        break;
      case OpCode::kRow:
        status = run_row(in);
        if (status.ok()) continue;
        break;
      case OpCode::kCopy:
        copy(program_->copies[in++->index]);
        continue;
      case OpCode::kJump:
        in = code + in->target;
        continue;
      case OpCode::kBranchUnless:
        status = branch(in, code + in->target);
        if (status.ok()) continue;
        break;
      case OpCode::kLoopBegin:
        status = apart(&Context::enter_loop<kProfiled>);
        break;
      case OpCode::kLoopNext:
        status = apart(&Context::end_trip);
        break;
      case OpCode::kLoopNextSimple:
        status = end_simple_trip<kProfiled>(in, code + in->target);
        if (status.ok()) continue;
        break;
      case OpCode::kLoopEnd:
        status = apart(&Context::leave_loop);
        break;
      case OpCode::kMove:
      case OpCode::kGuarded:
      case OpCode::kCompute:
        status = run_dynamic(*in);
        in += status.ok();
        break;
      case OpCode::kPoll:
        status = poll();
        in += status.ok();
        break;
      case OpCode::kPipeline:
        status = apart(&Context::offer_pipeline<kProfiled>);
        break;
      case OpCode::kPipelineEnd:
        if constexpr (!kProfiled) end_pipeline(in->index);
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

template <bool kProfiled>
TREADLE_STEP Status Context::run_kernels(const Instruction*& in) {
  void** const slots = slots_.data();
  do {
    if (const uint32_t failed = in->run(in->state, slots, in->operands)) return kernel_status(failed);
  } while ((++in)->code == OpCode::kKernel && !kProfiled);
  return {};
}

TREADLE_STEP Status Context::run_row(const Instruction*& in) {
  if (const uint32_t failed = point_at_row(program_->rows[in->index])) return kernel_status(failed);
  ++in;
  return {};
}

TREADLE_STEP Status Context::branch(const Instruction*& in, const Instruction* target) {
  const uint32_t flag = in->index;
  bool condition = false;
  if (program_->slots[flag].storage == plan::Storage::kHandle) {
    TREADLE_TRY(read_flag(flag, "cond", condition));
  } else {  // without a call: bodies of a few operations branch as well
    condition = *static_cast<const bool*>(slots_[flag]);
  }
  in = condition ? in + 1 : target;
  return {};
}

template <bool kProfiled>
Status Context::enter_loop(const Instruction*& in) {
  const uint32_t index = in->index;
  bool runs = false;
  TREADLE_TRY(loop_begin(index, runs));
  in = runs ? in + 1 : target_of(*in);
  if (kProfiled || !runs) return {};
  TREADLE_TRY(ask_for_native(index, in));
  return run_trips(index, budget_, in);
}

Status Context::end_trip(const Instruction*& in) {
  bool again = false;
  TREADLE_TRY(loop_next(in->index, again));
  in = again ? target_of(*in) : in + 1;
  return {};
}

template <bool kProfiled>
TREADLE_STEP Status Context::end_simple_trip(const Instruction*& in, const Instruction* body) {
  const uint32_t index = in->index;
  const Loop& loop = program_->loops[index];
  LoopPosition& at = loops_[index];
  const bool continues = step(loop, at);
  const bool is_granted = budget_.units >= loop.schedule.weight && at.trip < std::min(at.trips, at.row_capacity);
  if (continues && is_granted) {  // what next_trip does where nothing is due
    ++budget_.trips;
    budget_.units -= loop.schedule.weight;
  } else if (continues && has_trip(index)) {
    TREADLE_TRY(next_trip(index, budget_));
  } else {
    ++in;
    return {};
  }
  in = body;
  // Once limits have been looked at, native code may be there to take over.
  if (kProfiled || !native_ || (budget_.units != plan::kPollUnits && at.trip != native_trip_)) return {};
  if (!native_code(index)) return {};
  const Instruction* next = in;
  Status status = run_trips(index, budget_, next);
  in = next;
  return status;
}

Status Context::leave_loop(const Instruction*& in) {
  const Loop& loop = program_->loops[in->index];
  if (native_ && !loop.in_loop) native_->worked(in->index, loops_[in->index].trip * loop.schedule.weight);
  TREADLE_TRY(loop_end(in->index));
  release(loop.releases, loop.in_loop);
  ++in;
  return {};
}

template <bool kProfiled>
Status Context::offer_pipeline(const Instruction*& in) {
  bool done = false;
  if constexpr (!kProfiled) TREADLE_TRY(run_pipeline(in->index, done));
  in = done ? target_of(*in) : in + 1;
  return {};
}

Status Context::run_dynamic(const Instruction& in) {
  if (in.code == OpCode::kMove) {
    const auto [from, to] = program_->moves[in.index];
    TREADLE_ASSIGN(AnyValue value, value_of(from, program_->slots[from].type));
    return set_handle(to, std::move(value));
  }
  const plan::DynamicNode& node = program_->dynamic[in.index];
  TREADLE_TRY(in.code == OpCode::kGuarded ? run_guarded(node, in.index) : run_compute(node));
  release(node.releases, node.in_loop);
  return {};
}

Status Context::read_flag(uint32_t s, const char* what, bool& value) const {
  if (program_->slots[s].storage == plan::Storage::kHandle) {
    const AnyValue& v = handles_[s];
    if (!v.is_tensor() || v.tensor().type() != ElementType::kBool || v.tensor().element_count() != 1) {
      return error(Code::kRuntime, "{} must be one bool, found {}", what, v.type().to_string());
    }
  }
  value = *static_cast<const bool*>(slots_[s]);
  return {};
}

}  // namespace treadle::run
