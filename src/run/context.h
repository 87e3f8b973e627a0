#pragma once
// Everything that changes during a run, part by part, and the interpreter that drives the parts. One per run in flight;
// pooled, so that memory and prepared kernels are there for the next run.

#include <memory>
#include <vector>

#include "run/pipelines.h"

namespace treadle::run {

class Context {
 public:
  explicit Context(std::shared_ptr<const plan::Program> program, std::shared_ptr<NativeLoops> native = nullptr,
                   int64_t native_trip = 0);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Binds inputs and memory of outputs, runs, and collects outputs. `inputs` parallel to the program's; `outputs`, the
  // places of results, likewise, null where nobody wants one.
  // `since`: when the run's time began, if before now.
  Status run(std::span<const AnyValue* const> inputs, std::span<AnyValue* const> outputs, const RunOptions& options,
             Limits::Clock::time_point since = {});
  int64_t allocations() const { return memory_.allocations(); }
  // Whether the last run met sizes that its plan is not made for: another way of running it is right.
  bool misplanned() const { return loops_.misplanned(); }
  // Of the last run: the arena and what tensors of run-time size took at once.
  size_t peak_bytes() const { return program_->arena_bytes + memory_.peak(); }

 private:
  // What a run begins with: its clock, its memory.
  Status begin_run(const RunOptions& options, Limits::Clock::time_point since);
  Status run_program();
  Status bind(std::span<const AnyValue* const> inputs, std::span<AnyValue* const> outputs);
  Status bind_inputs(std::span<const AnyValue* const> inputs);
  Status collect(std::span<AnyValue* const> outputs);
  void end_run(bool failed);
  Status place_error(Status status, uint32_t pc) const;

  // execute.cc: what an instruction does leaves `in` where the run goes on, or at the one that an error belongs to.
  Status execute();
  template <bool kProfiled>
  Status interpret();
  template <bool kProfiled>
  Status run_kernels(const plan::Instruction*& in);
  Status run_row(const plan::Instruction*& in);
  Status branch(const plan::Instruction*& in, const plan::Instruction* target);
  template <bool kProfiled>
  Status enter_loop(const plan::Instruction*& in);
  template <bool kProfiled>
  Status end_trip(const plan::Instruction*& in);
  template <bool kProfiled>
  Status end_simple_trip(const plan::Instruction*& in, const plan::Instruction* body);
  Status leave_loop(const plan::Instruction*& in);
  template <bool kProfiled>
  Status offer_pipeline(const plan::Instruction*& in);
  const plan::Instruction* target_of(const plan::Instruction& in) const { return program_->code.data() + in.target; }

  std::shared_ptr<const plan::Program> program_;
  RunMemory memory_;
  Frame frame_;
  Polls polls_;
  DynamicNodes dynamic_;
  Loops loops_;
  Trips trips_;
  Pipelines pipelines_;
  std::vector<AnyValue> unwanted_;    // by output: memory of those that a run writes though nobody asked for them
  Profile* profile_ = nullptr;        // of the run
  Iterations* iterations_ = nullptr;  // likewise
};

}  // namespace treadle::run
