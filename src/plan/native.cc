// When native code pays. What it costs is counted over a loop with all that is inside of it; what it saves is counted
// by loop, per trip of that loop, so that who runs loops can add up what each of them has really run (run/trips.cc).
#include "plan/native.h"

#include <algorithm>
#include <cmath>

#include "op/costs.h"
#include "op/op_def.h"
#include "plan/chain_loops.h"

namespace treadle::plan {

namespace {

constexpr double kVectorBytes = 64, kMostVectors = 10, kTileVectors = 4;  // written out; of longer ones, in a loop

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

// Of a step over long rows no more is saved than a pass over memory, of a function nothing that counts.
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

int64_t known_trips(const Program& program, const Loop& loop) {
  if (loop.known_trips >= 0) return loop.known_trips;
  if (loop.is_scan || loop.continues != kNoSlot || loop.trip_count == kNoSlot) return 1;
  const Slot& slot = program.slots[loop.trip_count];
  return slot.storage == Storage::kConstant ? *static_cast<const int64_t*>(slot.constant.raw()) : 1;
}

// A walk over the body of one loop.
class Body {
 public:
  Body(const Program& program, uint32_t index) : p_(program), loop_(program.loops[index]) {
    gain_.trip_ns = costs::kIterationNs + loop_.schedule.work_ns;
    for (uint32_t pc = loop_.first + 1; pc < loop_.last; ++pc) {
      if (p_.code[pc].code == OpCode::kLoopBegin) {
        add_inner(p_.code[pc].index);
        pc = p_.loops[p_.code[pc].index].last;
      } else if (p_.code[pc].code == OpCode::kKernel) {
        add_kernel(pc);
      } else {
        // What goes by sizes of the run is done by the engine, whoever asks for it.
        if (!is_dynamic(p_.code[pc].code)) gain_.saved_ns += costs::kSavedInstructionNs;
        compile_ns_ += costs::kCompileOperationNs;
        operations_ += 1;
      }
    }
    gain_.saved_ns += costs::kSavedPassNs * (only_elementwise_ ? passes_ : fused_passes_);
    if (loop_.schedule.chain) {
      gain_.trip_ns =
          costs::kChainIterationNs + costs::kChainOperationNs * static_cast<double>(loop_.schedule.chain->steps.size());
    }
    if (loop_.step.simple) gain_.saved_ns += costs::kSavedIterationNs;
    gain_.saved_ns = std::min(gain_.saved_ns, costs::kMostSaved * gain_.trip_ns);
    if (gain_.saved_ns < costs::kLeastSaved * gain_.trip_ns) gain_.saved_ns = 0;
    gain_.ahead_ns += gain_.saved_ns;
  }

  NativeGain gain() const {
    const double more = costs::kCompileOperationNs * std::max(0.0, operations_ - costs::kFreeOperations);
    NativeGain gain = gain_;
    gain.compile_ns = std::min(costs::kCompileNs + compile_ns_, costs::kMostCompileNs + more);
    return gain;
  }

 private:
  void add_inner(uint32_t index) {
    const Loop& inner = p_.loops[index];
    const Body body(p_, index);
    gain_.ahead_ns += static_cast<double>(known_trips(p_, inner)) * body.gain_.ahead_ns;
    gain_.trip_ns += costs::kInnerLoopNs - inner.schedule.work_ns;
    gain_.saved_ns += costs::kSavedInnerLoopNs;
    compile_ns_ += body.compile_ns_;
    operations_ += body.operations_;
    only_elementwise_ = false;
  }

  void add_kernel(uint32_t pc) {
    double operations = 1, vectors = 1;
    if (const ElementwiseCode* code = elementwise_code(p_, pc)) {
      operations = static_cast<double>(code->steps.size());
      vectors = vectors_of(*code);
      const bool is_long = vectors > kMostVectors;
      if (is_long) vectors = kTileVectors;
      add_group(*code, is_long, p_.kernels[p_.code[pc].index].chain != nullptr);
    } else {
      gain_.trip_ns += costs::kKernelNs;
      gain_.saved_ns += saved_of(other_code(p_, pc));
      only_elementwise_ = false;
    }
    compile_ns_ += costs::kCompileOperationNs * operations * vectors;
    operations_ += operations;
  }

  // Native code makes one pass of a group over long rows; the interpreter makes one for each step, in cache. A loop
  // that does nothing else makes none at all: it keeps elements in registers from iteration to iteration
  // (jit/blocks.cc).
  void add_group(const ElementwiseCode& code, bool is_long, bool is_chain) {
    const double steps = static_cast<double>(code.steps.size()), passes = passes_of(code), count = count_of(code);
    const double reductions = static_cast<double>(code.reductions.size());
    gain_.trip_ns += costs::kOperationNs * steps;
    gain_.saved_ns += costs::kSavedGroupNs;
    if (!is_chain) {
      gain_.trip_ns += costs::kTileStepNs * steps;
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
  double compile_ns_ = 0, operations_ = 0;  // with the loops inside
  double passes_ = 0, fused_passes_ = 0;    // over elements of long rows: all, and those but the first of each group
  bool only_elementwise_ = true;
};

}  // namespace

NativeGain expected_gain(const Program& program, uint32_t index) {
  return Body(program, index).gain();
}

NativeRequest describe_loop(const Program& program, uint32_t index) {
  NativeRequest request;
  request.program = &program;
  request.loop = index;
  const Loop& loop = program.loops[index];
  for (uint32_t pc = loop.first + 1; pc < loop.last; ++pc) {
    if (auto code = dynamic_code(program, pc)) request.dynamic.emplace(pc, std::move(*code));
  }
  return request;
}

}  // namespace treadle::plan
