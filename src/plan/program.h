#pragma once
// The one form in which models run: a graph with all its bodies as one flat list of instructions over slots. A branch
// is a jump, a loop is a back edge, a scan slice is a pointer that advances. Immutable, and shared by all threads;
// run::Context holds everything that changes during a run.

#include <memory>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/denormals.h"
#include "ir/graph.h"
#include "op/dynamic_kernel.h"
#include "op/kernel.h"
#include "op/op_def.h"
#include "plan/opcodes.h"

namespace treadle::kernels {
struct ChainStep;
}

namespace treadle::plan {

struct ChainLoop;
struct KernelCode;

inline constexpr uint32_t kNoSlot = 0;  // slot 0 is null: an operand that is left out

// A run checks its limits about every kPollUnits * kPollUnitNs nanoseconds of estimated work.
inline constexpr double kPollUnitNs = 25;
inline constexpr int64_t kPollUnits = 4096;

struct Instruction {
  OpCode code = OpCode::kEnd;
  uint32_t index = 0;                  // see IndexOf
  uint32_t target = 0;                 // see Flow
  const uint32_t* operands = nullptr;  // kKernel: operands of its call, like `run` and `state`
  KernelFn run = nullptr;
  const void* state = nullptr;
};

enum class Storage : uint8_t {
  kNull,
  kConstant,  // `constant`
  kInput,     // the caller's memory, position `index` among the inputs
  kOutput,    // memory that the run returns, position `index` among the outputs
  kArena,     // `offset` in the context's arena
  kPointer,   // moves along a scan input or a scan output
  kHandle,    // a reference-counted value (AnyValue), of any size
};

struct Slot {
  Storage storage = Storage::kNull;
  uint32_t index = 0;
  size_t offset = 0;
  size_t bytes = 0;                       // kArena, kOutput
  Type type;                              // concrete for memory that kernels write
  Tensor constant;                        // kConstant
  uint32_t first = UINT32_MAX, last = 0;  // the first and last instruction that use arena memory
  const ir::Value* value = nullptr;       // the first value that it holds; null: memory of the plan's own
};

// A prepared kernel over slots: inputs, outputs, scratch, memory kept from run to run.
struct KernelCall {
  std::vector<uint32_t> operands;
  uint32_t inputs = 0, outputs = 0, kept = 0;  // numbers of operands
  Kernel kernel;
  const kernels::ChainStep* chain = nullptr;  // the steps that `kernel` runs; null if it is no chain (kernels/chain.h)
  std::vector<const ir::Node*> group;         // the nodes that it runs; empty: the instruction's node
  std::shared_ptr<const KernelCode> code;     // its computation (plan/kernel_code.h); null: not in a loop, or unknown
};

struct Copy {
  uint32_t from = 0, to = 0;
  size_t bytes = 0;
};

// One row of a tensor's outermost dimension, by an index that is checked.
struct Row {
  uint32_t from = 0, index = 0, to = 0;
  bool wide = false;  // the index is int64; otherwise int32
  int64_t count = 0;  // rows
  size_t bytes = 0;   // bytes of a row
};

// The layout of a value to which a loop appends, with room for later elements, so that none has to move (see
// plan/growing.h).
enum class Growth : uint8_t {
  kNone,     // row-major: only if all axes before the grown one are 1
  kRows,     // room along the grown axis, which may be any axis
  kColumns,  // the same, with the grown axis innermost in memory
};

struct Move {
  uint32_t from = 0, to = 0;
  bool takes = false;  // `from` has no later reader and the same sizes as `to`, so the value is moved
};

// A node that runs through its inline cache (kGuarded) or computes on values (kCompute).
struct DynamicNode {
  const ir::Node* node = nullptr;
  std::vector<uint32_t> inputs, outputs;  // slots
  std::vector<uint32_t> releases;         // handles that no instruction needs once the node has run
  bool in_loop = false;
  bool checks = false;            // a check: sizes that passed before need not be checked again
  Growth growth = Growth::kNone;  // layout of output 0, if the node appends to input 0
  DynamicKernel kernel;           // accepts any sizes; if the node has one
};

struct LoopState {
  uint32_t initial = 0;            // slot before the loop
  uint32_t in = 0;                 // the body's input
  uint32_t out = 0;                // the body's output; planned: memory of its own, swapped with `in` on the back edge
  uint32_t final = 0;              // slot after the loop; kNoSlot: unused
  size_t bytes = 0;                // planned
  bool planned = false;            // a known size; otherwise a handle
  bool shape_is_fixed = false;     // handles: a change of shape is an error (Scan)
  bool made_by_iteration = false;  // for handles: every iteration makes `out` anew (it is no captured value)
  bool grows = false;              // for handles: a node with a Growth appends to it
};

struct ScanInput {
  uint32_t whole = 0;
  uint32_t element = 0;  // kPointer, or a handle if the element's shape is dynamic
  bool planned = false;
  bool reverse = false;
  Type element_type;  // planned: concrete
  size_t element_bytes = 0;
};

struct ScanOutput {
  uint32_t element = 0;  // slot that the body writes
  uint32_t whole = 0;
  uint32_t row = kNoSlot;        // pointer to this iteration's row if rows have one size; `element` if written in place
  bool element_planned = false;  // its size is known; otherwise it is a handle
  bool whole_planned = false;    // `whole` has its memory before the loop begins
  bool reverse = false;
  Type element_type;  // element_planned: concrete
  size_t element_bytes = 0;
  Type empty;  // type of `whole` if no iteration ran
};

// The step from one iteration to the next: operations of the back edge on planned memory (plan/back_edge.h).
struct LoopStep {
  struct Row {
    uint32_t to, from;  // slots: a row of a scan output, the body's value
    size_t bytes;
  };
  struct Swap {
    uint32_t in, out;  // slots of a planned state
    size_t bytes;
  };
  struct Advance {
    uint32_t slot;  // kPointer
    int64_t stride;
  };
  bool simple = false;    // the back edge does nothing else
  bool straight = false;  // likewise, and the body is kernels and copies in sequence
  bool grows = false;     // some rows are written to memory that grows
  std::vector<Row> rows;
  std::vector<Swap> swaps;
  std::vector<Advance> advances;
};

// A kernel outside of loops, over the rows that belong to some iterations.
struct RowKernel {
  static constexpr size_t kMostOperands = 8;
  struct Operand {
    uint32_t slot = kNoSlot;
    size_t row_bytes = 0;  // for each iteration; 0: every iteration reads all of it
  };
  uint32_t at = 0;     // the instruction that makes these rows
  Kernel whole, rest;  // for a whole strip of iterations, and for the last strip
  uint8_t operand_count = 0;
  Operand operands[kMostOperands];
};

// Kernels in front of a loop that run for a strip of its iterations at a time (plan/strip_mining.h).
struct Strips {
  int64_t iterations = 0;  // iterations of a strip; 0: no strips
  std::vector<RowKernel> kernels;
  std::vector<uint32_t> inputs;  // scan inputs that the kernels make; all strips use the same memory
};

// When iterations run, and on which threads.
struct LoopSchedule {
  int64_t weight = 1;  // work of an iteration, in kPollUnitNs
  double work_ns = 0;  // work of an iteration; inner loops count with one iteration
  bool holds_loops = false;
  bool may_team = false;  // iterations are long enough to be shared among threads (base/thread_pool.h, set_team)
  const ChainLoop* chain = nullptr;  // all iterations as one chain; null: no chain (plan/chain_loops.h)
  Strips strips;
};

struct Loop {
  const ir::Node* node = nullptr;
  bool is_scan = false;
  bool masked = false;            // scan input 0 is a mask (op/loop_signature.h)
  uint32_t trip_count = kNoSlot;  // M
  uint32_t condition = kNoSlot;   // cond before the first iteration
  uint32_t counter = kNoSlot;     // int64, the body's first input; kNoSlot: unused
  uint32_t continues = kNoSlot;   // the body's condition; kNoSlot: ignored
  int64_t known_iterations = -1;  // of a scan whose length is known at planning
  std::vector<LoopState> states;
  std::vector<ScanInput> scan_inputs;
  std::vector<ScanOutput> scan_outputs;
  uint32_t first = 0, last = 0;    // instructions of the loop, with LoopBegin and LoopEnd
  bool in_loop = false;            // nested in another loop
  std::vector<uint32_t> releases;  // handles that no instruction needs after the loop
  LoopStep step;
  LoopSchedule schedule;
};

// The work of one thread at a time, strip by strip: the kernels, then the iterations of the loop.
struct PipelineStage {
  static constexpr uint32_t kNoLoop = UINT32_MAX;
  struct Need {
    uint32_t stage = 0;
    bool all = false;  // needs all strips; otherwise the strips up to the same one
  };
  std::vector<RowKernel> kernels;
  uint32_t loop = kNoLoop;
  std::vector<Need> needs;
};

// Loops of the same number of iterations that can run at the same time, and the instructions between them
// (plan/pipelines.h).
struct Pipeline {
  uint32_t first = 0, last = 0;         // instructions: kPipeline and kPipelineEnd
  int64_t iterations = 0, strip = 0;    // iterations of each loop; iterations of a strip
  std::vector<uint32_t> before, after;  // instructions that run before and after all stages
  std::vector<PipelineStage> stages;    // in the order of the program

  int64_t strips() const { return (iterations + strip - 1) / strip; }
};

struct Input {
  uint32_t slot = kNoSlot;  // kNoSlot: unused
  Type type;
};

struct Output {
  uint32_t slot = kNoSlot;
  Type type;            // its own type: the slot's may be another value's, with as many elements
  bool direct = false;  // the program writes into the memory that the run returns
  // For a direct output.
  Dims dims;
  size_t bytes = 0;
};

struct Program {
  std::unique_ptr<ir::Graph> graph;  // owns the nodes and attributes to which the program refers
  std::vector<Instruction> code;
  std::vector<uint32_t> operand_pool;
  std::vector<Slot> slots;
  std::vector<KernelCall> kernels;
  std::vector<Copy> copies;
  std::vector<Row> rows;
  std::vector<Move> moves;
  std::vector<DynamicNode> dynamic;
  std::vector<Loop> loops;
  std::vector<Pipeline> pipelines;
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  std::vector<const ir::Node*> node_of;  // by instruction, for messages; null for glue
  size_t arena_bytes = 0;
  StateArena states;
  std::shared_ptr<PackCache> packs;  // kept alive by the program: loops may be compiled when the session is gone
  int threads = 1;                   // the number that a run may use
  Denormals denormals = Denormals::kKeep;
  double work_ns = 0;  // estimated time of all instructions; a loop's count once
  // Values that stand for a value of the model (ir::Value::origin), and their slots; only if ProgramOptions::observed.
  std::vector<std::pair<const ir::Value*, uint32_t>> values;
};

struct ProgramOptions {
  bool optimize = true;  // nodes may share an instruction
  int threads = 1;       // the number that a run may use
  Denormals denormals = Denormals::kKeep;
  // For observers of runs (run/observer.h): an instruction makes all elements of its outputs at once, in their order,
  // and Program::values is filled.
  bool observed = false;
  // For writers of code (c/compile.h): every kernel says what it computes (KernelCall::code) if it can, and none runs.
  // No instruction reduces what it makes, and no loop is shared among threads.
  bool plain = false;
};

// Plans a specialised graph (see specialize.h). On failure `graph` is given back: packed constants stay in `packs`
// under their addresses, so the constants must live as long as `packs`.
Result<std::shared_ptr<const Program>> make_program(std::unique_ptr<ir::Graph>& graph, std::shared_ptr<PackCache> packs,
                                                    const ProgramOptions& options = {});

// The nodes that an instruction runs; none for glue.
std::span<const ir::Node* const> nodes_of(const Program& program, uint32_t pc);
// Names of the operators of these nodes, joined by "+".
std::string op_names(const Program& program, uint32_t pc);
// The method of its kernel (Kernel::method); empty if there is only one, or no kernel.
std::string_view method_of(const Program& program, uint32_t pc);
// Targets of jumps and branches.
std::unordered_set<uint32_t> branch_targets(const Program& program);
// Iterations of each execution of a loop, if known at planning; otherwise -1.
int64_t planned_iterations(const Program& program, const Loop& loop);
// The instruction's kernel; null for other instructions.
inline const KernelCall* kernel_of(const Program& program, uint32_t pc) {
  const Instruction& in = program.code[pc];
  return in.code == OpCode::kKernel ? &program.kernels[in.index] : nullptr;
}

// A readable listing (treadle run --plan).
std::string print(const Program& program);

}  // namespace treadle::plan
