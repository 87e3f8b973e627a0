#pragma once
// Nodes whose sizes are known only at run time, and moves of such values.

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
        operands_(program.dynamic.size()) {}

  // Runs an instruction kGuarded, kCompute or kMove, and gives up the handles that it is the last to use.
  Status run(const plan::Instruction& in);

 private:
  // What the dynamic kernel of a node is called with: sizes that are planned stay as they are.
  struct Operands {
    struct Source {
      uint32_t slot = 0;
      ElementType type{};
      size_t width = 0;
      bool is_handle = false;
    };
    std::vector<DynamicOperand> at;
    std::vector<Source> sources, results;
    std::vector<Dims> planned;
    std::vector<uint32_t> handles;  // inputs of run-time size
  };
  class Call;

  // False: nothing has happened.
  Result<bool> run_kernel(const plan::DynamicNode& node, uint32_t index);
  Operands first_operands(const plan::DynamicNode& node) const;
  bool find_operands(Operands& operands, size_t& bytes) const;
  Status run_guarded(const plan::DynamicNode& node, uint32_t index);
  Status run_prepared(const plan::DynamicNode& node, Prepared& prepared);
  Status run_compute(const plan::DynamicNode& node);
  Result<AnyValue> input_of(const plan::DynamicNode& node, size_t i, bool borrows);
  bool all_numeric_tensors(const plan::DynamicNode& node) const;
  Status charge_operands(const plan::DynamicNode& node);

  const plan::Program& program_;
  Frame& frame_;
  RunMemory& memory_;
  Polls& polls_;
  SizeCache sizes_;
  Appends appends_;
  std::vector<Operands> operands_;  // by node
};

}  // namespace treadle::run
