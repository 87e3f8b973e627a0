#pragma once
// Everything that changes during a run, part by part, and the interpreter that drives the parts. Each run in flight has
// one. Contexts are pooled, so that memory and prepared kernels are ready for the next run.

#include <memory>
#include <vector>

#include "run/pipelines.h"

namespace treadle::run {

// What the interpreter reports while it runs: times to a profile, values to an observer.
enum class Told : uint8_t { kNothing, kTimes, kValues };

class Context {
 public:
  explicit Context(std::shared_ptr<const plan::Program> program, std::shared_ptr<NativeLoops> native = nullptr,
                   int64_t native_iteration = 0);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Binds inputs and memory of outputs, runs, and collects outputs. `inputs` and `outputs` are parallel to the
  // program's; `outputs` says where each result goes, null for an output that the caller does not want. `since`: when
  // the time of the run began, if before this call.
  Status run(std::span<const AnyValue* const> inputs, std::span<AnyValue* const> outputs, const RunOptions& options,
             Limits::Clock::time_point since = {});

  // Runs whose memory is bound: each takes inputs and gives outputs where the one before did, unless it is given other
  // memory, and nothing is checked. Only for a program that can_bind(), and for a context that makes no other runs.
  // bind() comes first, then read_from() for every input and write_to() for every output, with memory of the planned
  // types and sizes. Outputs and inputs must not overlap.
  Status bind(const RunOptions& options);
  void read_from(size_t input, const void* from) {
    const uint32_t slot = program_->inputs[input].slot;
    if (slot != plan::kNoSlot) frame_.point_first(slot, const_cast<void*>(from));
  }
  void write_to(size_t output, void* to) {
    const plan::Output& place = program_->outputs[output];
    if (place.direct) {
      frame_.point_first(place.slot, to);
    } else {
      copied_[copied_at_[output]].to = to;
    }
  }
  Status run_bound();

  int64_t allocations() const { return memory_.allocations(); }
  // Whether the last run met sizes that its plan is not made for. The caller then has to run the model in another way.
  bool misplanned() const { return loops_.misplanned(); }
  // Peak memory of the last run in bytes: the arena and the tensors of run-time size.
  size_t peak_bytes() const { return program_->arena_bytes + memory_.peak(); }

 private:
  // Starts the clock and the memory account of a run.
  Status begin_run(const RunOptions& options, Limits::Clock::time_point since);
  Status run_program();
  Status bind(std::span<const AnyValue* const> inputs, std::span<AnyValue* const> outputs);
  Status bind_inputs(std::span<const AnyValue* const> inputs);
  Status collect(std::span<AnyValue* const> outputs);
  void end_run(bool failed);
  Status place_error(Status status, uint32_t pc) const;

  // execute.cc. Each handler moves `in` to the instruction to run next, or leaves it at the instruction that failed.
  Status execute();
  template <Told kTold>
  Status interpret();
  template <Told kTold>
  Status run_kernels(const plan::Instruction*& in);
  Status run_row(const plan::Instruction*& in);
  Status branch(const plan::Instruction*& in, const plan::Instruction* target);
  template <Told kTold>
  Status enter_loop(const plan::Instruction*& in);
  template <Told kTold>
  Status end_iteration(const plan::Instruction*& in);
  template <Told kTold>
  Status end_simple_iteration(const plan::Instruction*& in, const plan::Instruction* body);
  Status leave_loop(const plan::Instruction*& in);
  template <Told kTold>
  Status offer_pipeline(const plan::Instruction*& in);
  // bound.cc
  Status begin_bound_run();

  const plan::Instruction* target_of(const plan::Instruction& in) const { return program_->code.data() + in.target; }

  std::shared_ptr<const plan::Program> program_;
  RunMemory memory_;
  Frame frame_;
  Polls polls_;
  DynamicNodes dynamic_;
  Loops loops_;
  LoopRunner runner_;
  Pipelines pipelines_;
  std::vector<AnyValue> unwanted_;  // by output: memory for outputs that a run writes though the caller did not ask for
                                    // them
  Profile* profile_ = nullptr;      // of the current run; null: none
  Observer* observer_ = nullptr;    // of the current run; null: none
  Iterations* iterations_ = nullptr;  // of the current run; null: not wanted

  // Of bound runs.
  struct CopiedOutput {  // the program does not write it into the memory that the run returns
    uint32_t slot;
    size_t bytes;
    void* to;
  };
  RunOptions bound_options_;
  bool is_plain_ = false;     // bound_options_.is_plain()
  bool moves_slots_ = false;  // a run changes addresses of slots
  std::vector<CopiedOutput> copied_;
  std::vector<uint32_t> copied_at_;  // by output: its index in copied_
};

// Whether runs of the program can be bound: all of its values have planned sizes.
bool can_bind(const plan::Program& program);

}  // namespace treadle::run
