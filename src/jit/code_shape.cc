#include "jit/code_shape.h"

#include <llvm/IR/Module.h>

#include <algorithm>
#include <bit>

#include "jit/nest.h"
#include "jit/reductions.h"

namespace treadle::jit {

using plan::ElementwiseCode;
using Step = ElementwiseCode::Step;

namespace {

// The number of LLVM instructions that compile in 12 ms, everything else included; the number of operations of such a
// loop; and the LLVM instructions that each further operation may add.
constexpr size_t kInstructions = 650, kOperations = 200, kInstructionsMore = 4;
// Steps of at least kLongStep instructions may become functions; a call takes kCall instructions.
constexpr size_t kLongStep = 12, kCall = 2;
// Vectors of a tile: with two or eight, `mandelbrot` takes 1.2 times as long (bench.py loops).
constexpr int64_t kTileVectors = 4;

struct StepSize {
  size_t instructions = 0;
  bool alone = true;  // the step needs nothing of the function around it
};

// Measures steps by writing them into a module that never runs.
class Measure final : private StepHost {
 public:
  Measure(unsigned lanes, Isa isa) : lanes_(lanes), isa_(isa), module_("sizes", context_), b_(context_) {}

  const StepSize& of(const Step& step) {
    const auto [at, is_new] = known_.try_emplace(StepKind(step));
    if (is_new) at->second = write(step);
    return at->second;
  }

 private:
  StepSize write(const Step& step) {
    llvm::SmallVector<llvm::Type*, 3> types(step.argument_count, lanes_of(element(step.from), lanes_));
    if (step.op == kernels::ElementwiseOp::kWhere && !step.converts) {
      types[0] = lanes_of(element(ElementType::kBool), lanes_);
    }
    function_ = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), types, false),
                                       llvm::Function::InternalLinkage, "step", module_);
    b_.SetInsertPoint(llvm::BasicBlock::Create(context_, "", function_));
    alone_ = true;
    llvm::SmallVector<llvm::Value*, 3> arguments;
    for (llvm::Argument& argument : function_->args()) arguments.push_back(&argument);
    const IrScope scope(b_, lanes_, isa_);
    write_step(step, arguments, *this);
    return {function_->getInstructionCount(), alone_};
  }
  llvm::Type* element(ElementType type) { return element_ir_type(context_, type); }

  void fail_if(llvm::Value* /*condition*/, uint32_t /*code*/) override { alone_ = false; }
  llvm::Value* row_function(kernels::ElementwiseOp /*op*/, ElementType /*type*/) override {
    alone_ = false;
    return llvm::ConstantPointerNull::get(b_.getPtrTy());
  }
  llvm::Value* stack(size_t bytes) override { return b_.CreateAlloca(llvm::ArrayType::get(b_.getInt8Ty(), bytes)); }

  const unsigned lanes_;
  const Isa isa_;
  llvm::LLVMContext context_;
  llvm::Module module_;
  llvm::IRBuilder<> b_;
  llvm::Function* function_ = nullptr;
  bool alone_ = true;
  std::map<StepKind, StepSize> known_;
};

class Chooser {
 public:
  Chooser(const plan::NativeRequest& request, const Chunks& chunks, std::span<const uint32_t> inlined)
      : chunks_(chunks), measure_(chunks.full, request.isa) {
    size_t operations = 0;
    for (const uint32_t pc : inlined) {
      Instruction in;
      in.pc = pc;
      in.code = request.elementwise(pc);
      in.tile = chunks.is_short(in.code->count) && in.code->reductions.empty() ? 0 : kTileVectors;
      in.written = vectors_of(*in.code, in.tile);
      operations += in.code->steps.size();
      for (const Step& step : in.code->steps) in.size += measure_.of(step).instructions;
      instructions_.push_back(in);
    }
    limit_ = kInstructions + (operations > kOperations ? (operations - kOperations) * kInstructionsMore : 0);
    // The instructions with the most code come first.
    std::sort(instructions_.begin(), instructions_.end(), [](const Instruction& a, const Instruction& b) {
      return std::pair(b.all(), a.pc) < std::pair(a.all(), b.pc);
    });
  }

  CodeShape choose() {
    if (sum() > limit_) call_long_steps();
    call_kernels();
    for (const Instruction& in : instructions_) {
      if (in.called) {
        forms_.kernels.insert(in.pc);
      } else if (in.tile > 0) {
        forms_.tiles[in.pc] = in.tile;
      }
    }
    return std::move(forms_);
  }

 private:
  struct Instruction {
    uint32_t pc = 0;
    const ElementwiseCode* code = nullptr;
    int64_t tile = 0;    // vectors of a tile; 0: the instruction is written out whole
    size_t size = 0;     // LLVM instructions of its steps for one vector
    size_t written = 0;  // vectors for which the steps are written
    bool has_functions = false;
    bool called = false;  // its kernel is called
    size_t all() const { return called ? 0 : size * written; }
  };

  // The number of vectors for which the steps are written.
  size_t vectors_of(const ElementwiseCode& code, int64_t tile) const {
    if (tile == 0) return chunks_.size(code.count);
    if (!code.reductions.empty()) return vectors_of_lines(code);
    Nest nest = *common_nest(code);
    cut(nest, tile * chunks_.full);
    if (nest.split == 0) return chunks_.size(nest.tile_count(1));
    const int64_t rest = nest.sizes[nest.split - 1] % nest.step;
    return chunks_.size(nest.tile_count(nest.step)) + (rest > 0 ? chunks_.size(nest.tile_count(rest)) : 0);
  }
  // The same for results that are reduced: a tile, and the rest of a line behind its tiles.
  size_t vectors_of_lines(const ElementwiseCode& code) const {
    const plan::Lines& lines = code.lines;
    const int64_t tile = kTileVectors * static_cast<int64_t>(chunks_.full);
    if (lines.inner > 1) {
      const int64_t some = std::min(lines.inner, tile);
      return chunks_.size(some) + chunks_.size(lines.inner % some);
    }
    if (!chunks_.is_short(lines.n)) return chunks_.size(tile) + chunks_.size(lines.n % tile);
    return 2 * chunks_.size(lines.n * rows_of_tile(lines, lines.outer, chunks_));
  }
  size_t sum() const {
    size_t sum = functions_;
    for (const Instruction& in : instructions_) sum += in.all();
    return sum;
  }

  // Replaces instructions by calls of their kernels. Over several vectors, kernels are hardly slower than inline code,
  // least of all if long steps take most of the time; once some kernels are called, the other instructions gain little.
  // Over one vector, the call itself takes the time.
  void call_kernels() {
    size_t left = sum();
    if (left <= limit_) return;
    for (const bool with_functions : {true, false}) {
      for (Instruction& in : instructions_) {
        if (!with_functions && left <= limit_ / 2) return;
        if (in.called || in.written == 1 || (with_functions && !in.has_functions)) continue;
        left -= in.all();
        in.called = true;
      }
    }
  }

  // The LLVM instructions of a kind of step, without functions and with one.
  struct Found {
    size_t instructions = 0, vectors = 0, longest = 0;
    size_t saved() const {
      const size_t before = instructions * vectors, after = instructions * longest + kCall * vectors;
      return before > after ? before - after : 0;
    }
  };

  void call_long_steps() {
    std::map<StepKind, Found> kinds;
    for_long_steps([&](const Instruction& in, const Step& step) {
      Found& found = kinds[StepKind(step)];
      found.instructions = measure_.of(step).instructions;
      found.vectors += in.written;
      found.longest = std::max(found.longest, std::min(in.written, vectors_of_call(step.argument_count)));
    });
    for (const auto& [kind, found] : kinds) {
      if (found.saved() == 0) continue;
      forms_.functions.insert(kind);
      functions_ += found.instructions * found.longest;
    }
    for_long_steps([&](Instruction& in, const Step& step) {
      if (!forms_.functions.contains(StepKind(step))) return;
      in.size -= measure_.of(step).instructions - kCall;
      in.has_functions = true;
    });
  }
  void for_long_steps(const std::function<void(Instruction&, const Step&)>& fn) {
    for (Instruction& in : instructions_) {
      for (const Step& step : in.code->steps) {
        if (is_long(step)) fn(in, step);
      }
    }
  }
  bool is_long(const Step& step) {
    const StepSize& size = measure_.of(step);
    return !step.converts && size.alone && size.instructions >= kLongStep;
  }

  const Chunks& chunks_;
  Measure measure_;
  std::vector<Instruction> instructions_;
  size_t limit_ = 0;
  size_t functions_ = 0;  // LLVM instructions of the functions
  CodeShape forms_;
};

}  // namespace

StepKind::StepKind(const Step& step)
    : converts(step.converts),
      op(step.op),
      from(step.from),
      to(step.to),
      argument_count(step.argument_count),
      alpha(std::bit_cast<uint64_t>(step.params.alpha)),
      beta(std::bit_cast<uint64_t>(step.params.beta)) {}

CodeShape choose_shape(const plan::NativeRequest& request, const Chunks& chunks, std::span<const uint32_t> inlined) {
  return Chooser(request, chunks, inlined).choose();
}

}  // namespace treadle::jit
