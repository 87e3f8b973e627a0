#pragma once
// Nodes whose sizes are known only at run time, and moves of such values.

#include "plan/native.h"
#include "run/growing.h"
#include "run/size_cache.h"

namespace treadle::run {

class DynamicNodes {
 public:
  // All must outlive the object.
  DynamicNodes(const plan::Program& program, Frame& frame, RunMemory& memory, Polls& polls)
      : program_(program),
        frame_(frame),
        memory_(memory),
        polls_(polls),
        sizes_(program, frame, memory),
        appends_(frame, memory, polls),
        operands_(program.dynamic.size()),
        arguments_(program.dynamic.size()) {}

  // Runs instructions kGuarded, kCompute and kMove from `in` up to `end`, and releases each handle after its last use.
  // On return, `in` is behind the last instruction that has run.
  Status run(const plan::Instruction*& in, const plan::Instruction* end);

  // The same for native code (plan/native.h). False: a value is not what native code was compiled for; nothing that
  // other instructions read has changed.
  bool find_sizes(std::span<const plan::NativeValue> values, int64_t* sizes) const;
  Result<bool> make_results(std::span<const plan::NativeValue> results, const int64_t* sizes, int64_t bytes,
                            void** places);

 private:
  // Arguments of a node's dynamic kernel. Slots of a frame do not move, so addresses of values are looked up once.
  struct Operands {
    struct Source {
      uint32_t slot = 0;
      void* const* address = nullptr;   // null: the operand is left out
      const AnyValue* value = nullptr;  // null: the operand has planned sizes
      ElementType type{};
      size_t width = 0;
    };
    std::vector<DynamicOperand> at;
    std::vector<Source> sources;
    std::vector<DynamicResult> results;
    std::vector<Dims> planned;
  };
  // Arguments of a node's `compute`, kept from call to call so that calls do not allocate them.
  struct Arguments {
    std::vector<AnyValue> inputs, outputs;
  };
  class Call;

  struct Bytes {
    size_t read = 0, made = 0;
  };
  // Returns 0, a KernelError, or kNotDynamic if the dynamic kernel did not run and nothing has changed.
  uint32_t run_kernel(const plan::DynamicNode& node, uint32_t index, Bytes& bytes);
  uint32_t run_text_kernel(const DynamicKernel& kernel, DynamicCall& call);
  Operands first_operands(const plan::DynamicNode& node);
  bool find_operands(Operands& operands, size_t& bytes) const;
  Status move(const plan::Move& move);
  Status run_node(const plan::DynamicNode& node, plan::OpCode code, uint32_t index);
  Status run_guarded(const plan::DynamicNode& node, uint32_t index);
  Status run_prepared(const plan::DynamicNode& node, Prepared& prepared);
  Status run_compute(const plan::DynamicNode& node, uint32_t index);
  Status run_custom(const plan::DynamicNode& node, uint32_t index);
  Status set_arguments(const plan::DynamicNode& node, Arguments& values);
  void drop_arguments(const plan::DynamicNode& node, Arguments& values);
  Status check_arguments(const plan::DynamicNode& node, std::span<const AnyValue> inputs);
  Status compute(const plan::DynamicNode& node, std::span<const AnyValue> inputs, std::span<AnyValue> outputs);
  Status lower_and_run(const ir::Node& node, std::span<const AnyValue> inputs, std::span<AnyValue> outputs);
  Result<AnyValue> input_of(const plan::DynamicNode& node, size_t i, bool borrows);
  const plan::DynamicNode& node_at(uint32_t pc) const { return program_.dynamic[program_.code[pc].index]; }
  bool make_result(const plan::NativeValue& result, std::span<const int64_t> sizes, void*& place);
  bool all_numeric_tensors(const plan::DynamicNode& node) const;
  Status charge_operands(const plan::DynamicNode& node);

  const plan::Program& program_;
  Frame& frame_;
  RunMemory& memory_;
  Polls& polls_;
  SizeCache sizes_;
  Appends appends_;
  std::vector<Operands> operands_;    // by node
  std::vector<Arguments> arguments_;  // by node
};

}  // namespace treadle::run
