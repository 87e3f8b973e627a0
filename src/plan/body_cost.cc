// When native code pays. Its cost is summed over a loop and all its inner loops. Its gain is counted for each loop, per
// iteration of that loop, so that the interpreter can add up the real iterations (run/loop_runner.cc).
#include "plan/body_cost.h"

#include <algorithm>
#include <cmath>

#include "op/costs.h"
#include "op/op_def.h"
#include "plan/chain_loops.h"

namespace treadle::plan {

std::vector<BodyPart> parts_of_body(const Program& program, const Loop& loop) {
  using enum BodyPart::Kind;
  std::vector<BodyPart> parts;
  for (uint32_t pc = loop.first + 1; pc < loop.last; ++pc) {
    const Instruction& in = program.code[pc];
    BodyPart part{.pc = pc, .group = elementwise_code(program, pc), .code = other_code(program, pc)};
    if (in.code == OpCode::kLoopBegin) {
      part.kind = kLoop;
      part.loop = in.index;
      pc = program.loops[in.index].last;
    } else if (in.code == OpCode::kKernel) {
      part.kind = part.group ? kGroup : kKernel;
    } else if (is_dynamic(in.code)) {
      part.kind = kDynamic;
    }
    parts.push_back(part);
  }
  return parts;
}

namespace {

// The vectors of AVX-512. Beyond kMostVectors native code loops over tiles (jit/chunks.h, jit/code_shape.cc).
constexpr double kVectorBytes = 64, kMostVectors = 10, kTileVectors = 4;

double count_of(const ElementwiseCode& code) {
  return static_cast<double>(code.count);
}

double vectors_of(const ElementwiseCode& code) {
  double vectors = 1;
  for (const ElementwiseCode::Step& step : code.steps) {
    vectors = std::max(vectors, std::ceil(count_of(code) * static_cast<double>(byte_width(step.to)) / kVectorBytes));
  }
  return vectors;
}

// The passes over memory that native code saves for a group over long rows: one for each step, except for functions,
// which take much longer than a pass.
double passes_of(const ElementwiseCode& code) {
  return static_cast<double>(std::count_if(code.steps.begin(), code.steps.end(), [](const auto& step) {
    return step.converts || kernels::info(step.op).price != kernels::Price::kFunction;
  }));
}

double saved_of(const InstructionCode* code) {
  if (!code) return costs::kSavedInstructionNs;
  if (const auto* best = std::get_if<ArgReductionCode>(code)) {
    return costs::kSavedKernelNs + costs::kSavedPositionNs * static_cast<double>(best->outer * best->n * best->inner);
  }
  const auto* product = std::get_if<ProductCode>(code);
  return product && product->shape.m == 1 ? costs::kSavedProductNs : costs::kSavedKernelNs;
}

// A walk over the body of one loop.
class Body {
 public:
  Body(const Program& program, uint32_t index) : p_(program), loop_(program.loops[index]) {
    gain_.iteration_ns = costs::kIterationNs + loop_.schedule.work_ns;
    for (const BodyPart& part : parts_of_body(p_, loop_)) add(part);
    gain_.saved_ns += costs::kSavedPassNs * (only_elementwise_ ? passes_ : fused_passes_);
    if (loop_.schedule.chain) {
      gain_.iteration_ns =
          costs::kChainIterationNs + costs::kChainOperationNs * static_cast<double>(loop_.schedule.chain->steps.size());
    }
    if (loop_.step.simple) gain_.saved_ns += costs::kSavedIterationNs;
    gain_.saved_ns = std::min(gain_.saved_ns, costs::kMostSaved * gain_.iteration_ns);
    if (gain_.saved_ns < costs::kLeastSaved * gain_.iteration_ns) gain_.saved_ns = 0;
    gain_.ahead_ns += gain_.saved_ns;
  }

  NativeGain gain() const {
    const double more = costs::kCompileOperationNs * std::max(0.0, operations_ - costs::kFreeOperations);
    NativeGain gain = gain_;
    gain.compile_ns = std::min(costs::kCompileNs + compile_ns_, costs::kMostCompileNs + more);
    return gain;
  }

 private:
  void add(const BodyPart& part) {
    switch (part.kind) {
      case BodyPart::Kind::kLoop:
        return add_inner(part.loop);
      case BodyPart::Kind::kGroup:
        return add_group(part);
      case BodyPart::Kind::kKernel:
        return add_kernel(part.code);
      case BodyPart::Kind::kGlue:
        gain_.saved_ns += costs::kSavedInstructionNs;
        return add_code(1, 1);
      case BodyPart::Kind::kDynamic:  // the engine computes it in either case
        return add_code(1, 1);
    }
  }

  void add_code(double operations, double vectors) {
    compile_ns_ += costs::kCompileOperationNs * operations * vectors;
    operations_ += operations;
  }

  void add_inner(uint32_t index) {
    const Loop& inner = p_.loops[index];
    const Body body(p_, index);
    const int64_t planned = planned_iterations(p_, inner), iterations = planned < 0 ? 1 : planned;
    gain_.ahead_ns += static_cast<double>(iterations) * body.gain_.ahead_ns;
    gain_.iteration_ns += costs::kInnerLoopNs - inner.schedule.work_ns;
    gain_.saved_ns += costs::kSavedInnerLoopNs;
    compile_ns_ += body.compile_ns_;
    operations_ += body.operations_;
    only_elementwise_ = false;
  }

  void add_kernel(const InstructionCode* code) {
    gain_.iteration_ns += costs::kKernelNs;
    gain_.saved_ns += saved_of(code);
    only_elementwise_ = false;
    add_code(1, 1);
  }

  // For a group over long rows, native code makes one pass; the interpreter makes one for each step, in cache. A loop
  // with nothing else makes no pass at all: native code keeps its elements in registers from iteration to iteration
  // (jit/element_strips.cc).
  void add_group(const BodyPart& part) {
    const ElementwiseCode& code = *part.group;
    const bool is_long = vectors_of(code) > kMostVectors, is_chain = kernel_of(p_, part.pc)->chain != nullptr;
    add_code(static_cast<double>(code.steps.size()), is_long ? kTileVectors : vectors_of(code));
    const double steps = static_cast<double>(code.steps.size()), passes = passes_of(code), count = count_of(code);
    const double reductions = static_cast<double>(code.reductions.size());
    gain_.iteration_ns += costs::kOperationNs * steps;
    gain_.saved_ns += costs::kSavedGroupNs;
    if (!is_chain) {
      gain_.iteration_ns += costs::kTileStepNs * steps;
      gain_.saved_ns += costs::kTileStepNs * passes;
    }
    if (is_long) {
      passes_ += count * (passes + reductions);
      fused_passes_ += count * std::max(0.0, passes - 1 + reductions);
    } else {
      gain_.saved_ns += costs::kSavedElementNs * count * passes;
    }
  }

  const Program& p_;
  const Loop& loop_;
  NativeGain gain_;
  double compile_ns_ = 0, operations_ = 0;  // inner loops included
  double passes_ = 0, fused_passes_ = 0;    // over elements of long rows: all passes, and all but each group's first
  bool only_elementwise_ = true;
};

}  // namespace

NativeGain expected_gain(const Program& program, uint32_t index) {
  return Body(program, index).gain();
}

}  // namespace treadle::plan
