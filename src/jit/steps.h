#pragma once
// One step of an elementwise instruction as IR.

#include <functional>

#include "jit/ir_lanes.h"
#include "plan/native.h"

namespace treadle::jit {

// What a step may need from the function that it is written into.
class StepHost {
 public:
  virtual ~StepHost() = default;
  // Leaves the function with `code` where `condition` (i1) holds.
  virtual void fail_if(llvm::Value* condition, uint32_t code) = 0;
  // The address of the row function of an operation.
  virtual llvm::Value* row_function(kernels::ElementwiseOp op, ElementType type) = 0;
  // Memory of the function's frame.
  virtual llvm::Value* stack(size_t bytes) = 0;
};

// The IR type of one element; null where plan::is_native() does not hold. Bools are bytes; float16 and bfloat16 are
// their bits.
llvm::Type* element_ir_type(llvm::LLVMContext& context, ElementType type);

// Whether write_step() knows the step.
bool knows_step(const plan::ElementwiseCode::Step& step);

// `arguments`: of the scope's lane count. Returns the result in element_ir_type(step.to).
llvm::Value* write_step(const plan::ElementwiseCode::Step& step, llvm::ArrayRef<llvm::Value*> arguments,
                        StepHost& host);

}  // namespace treadle::jit
