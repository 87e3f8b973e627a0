#pragma once
// The one form in which models run: a graph with all its bodies as one flat list of instructions over slots. A branch
// is a jump, a loop is a back edge, a scan slice is a pointer that advances. Immutable, shared by all threads; what
// changes during a run lives in run::Context.

#include <memory>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

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

inline constexpr uint32_t kNoSlot = 0;  // slot 0 is null: an operand that was left out

// A run looks at its limits about every kPollUnits * kPollUnitNs nanoseconds, counted by what instructions are
// estimated to take.
inline constexpr double kPollUnitNs = 25;
inline constexpr int64_t kPollUnits = 4096;

struct Instruction {
  OpCode code = OpCode::kEnd;
  uint32_t index = 0;                  // see IndexOf
  uint32_t target = 0;                 // see Flow
  const uint32_t* operands = nullptr;  // kKernel: of its call, as `run` and `state` are
  KernelFn run = nullptr;
  const void* state = nullptr;
};

enum class Storage : uint8_t {
  kNull,
  kConstant,  // `constant`
  kInput,     // memory of the caller's, position `index` among the inputs
  kOutput,    // memory handed out, position `index` among the outputs
  kArena,     // `offset` in the context's arena
  kPointer,   // moves along a scan input or a scan output
  kHandle,    // a reference-counted value (AnyValue), of any size
};

struct Slot {
  Storage storage = Storage::kNull;
  uint32_t index = 0;
  size_t offset = 0;
  size_t bytes = 0;                       // kArena, kOutput
  Type type;                              // concrete for what kernels write
  Tensor constant;                        // kConstant
  uint32_t first = UINT32_MAX, last = 0;  // instructions between which arena memory is taken
};

// A prepared kernel over slots: those of the inputs, of the outputs, then scratch, then what it keeps from run to run.
struct KernelCall {
  std::vector<uint32_t> operands;
  uint32_t inputs = 0, outputs = 0, kept = 0;  // of the operands
  Kernel kernel;
  const kernels::ChainStep* chain = nullptr;  // the steps that `kernel` runs, where it is a chain (kernels/chain.h)
  std::vector<const ir::Node*> group;         // empty: it runs the instruction's node
  std::shared_ptr<const KernelCode> code;     // what it computes (plan/kernel_code.h); null: not in a loop, or unknown
};

struct Copy {
  uint32_t from = 0, to = 0;
  size_t bytes = 0;
};

// One row of a tensor's outermost dimension, found by an index that is checked.
struct Row {
  uint32_t from = 0, index = 0, to = 0;
  bool wide = false;  // the index is int64, else int32
  int64_t count = 0;  // rows
  size_t bytes = 0;   // per row
};

// How a value that a loop appends to is laid out with room for what will come, so that nothing has to move (see
// plan/growing.h).
enum class Growth : uint8_t {
  kNone,     // row-major: only where all axes before the grown one are 1
  kRows,     // room along the grown axis, wherever it is
  kColumns,  // the same, and the grown axis is the innermost one in memory
};

struct Move {
  uint32_t from = 0, to = 0;
  bool takes = false;  // nobody reads `from` behind it, and both places stand for the same sizes
};

// A node that runs through its inline cache (kGuarded) or on values (kCompute).
struct DynamicNode {
  const ir::Node* node = nullptr;
  std::vector<uint32_t> inputs, outputs;  // slots
  std::vector<uint32_t> releases;         // handles that nobody needs once the node has run
  bool in_loop = false;
  bool checks = false;            // it makes nothing that is read: sizes that it has taken need not be looked at again
  Growth growth = Growth::kNone;  // of output 0, where the node appends to input 0
  DynamicKernel kernel;           // takes the sizes at hand, where the node has one
};

struct LoopState {
  uint32_t initial = 0;         // slot before the loop
  uint32_t in = 0;              // the body's input
  uint32_t out = 0;             // the body's output; planned: memory of its own, swapped with `in` on the back edge
  uint32_t final = 0;           // slot after the loop; kNoSlot: nobody wants it
  size_t bytes = 0;             // planned
  bool planned = false;         // fixed size, else a handle
  bool shape_is_fixed = false;  // handles: a change of shape is an error (Scan)
  bool made_by_trip = false;    // handles: every trip writes `out` anew (it is no captured value)
  bool grows = false;           // handles: appended to by a node with a Growth
};

struct ScanInput {
  uint32_t whole = 0;
  uint32_t element = 0;  // kPointer, or a handle where the element's shape is known only at run time
  bool planned = false;
  bool reverse = false;
  Type element_type;  // planned: concrete
  size_t element_bytes = 0;
};

struct ScanOutput {
  uint32_t element = 0;  // slot that the body writes
  uint32_t whole = 0;
  uint32_t row = kNoSlot;        // pointer to the row of this trip, if all rows have one size; `element` itself where
                                 // that is written in place
  bool element_planned = false;  // its size is known, else it is a handle
  bool whole_planned = false;    // `whole` has its memory before the loop starts
  bool reverse = false;
  Type element_type;  // element_planned: concrete
  size_t element_bytes = 0;
  Type empty;  // element type when no trip ran
};

// How one trip follows another: what the back edge does with planned memory (plan/back_edge.h).
struct LoopStep {
  struct Row {
    uint32_t to, from;  // slots: a row of a scan output, the body's value
    size_t bytes;
  };
  struct Swap {
    uint32_t in, out;  // of a planned state
    size_t bytes;
  };
  struct Advance {
    uint32_t slot;  // kPointer
    int64_t stride;
  };
  bool simple = false;    // there is nothing else to do
  bool straight = false;  // likewise, and the body is kernels and copies, one after the other
  bool grows = false;     // some rows go to memory that grows
  std::vector<Row> rows;
  std::vector<Swap> swaps;
  std::vector<Advance> advances;
};

// A kernel that lies outside of loops, over the rows that belong to some trips.
struct RowKernel {
  static constexpr size_t kMostOperands = 8;
  struct Operand {
    uint32_t slot = kNoSlot;
    size_t row_bytes = 0;  // for each trip; 0: every trip sees all of it
  };
  uint32_t at = 0;     // the instruction whose rows these are
  Kernel whole, rest;  // of a whole block of trips, and of the last one
  uint8_t operand_count = 0;
  Operand operands[kMostOperands];
};

// Kernels in front of a loop that run for a block of its trips at a time (plan/strip_mining.h).
struct Strips {
  int64_t trips = 0;  // of a block; 0: there are none
  std::vector<RowKernel> kernels;
  std::vector<uint32_t> inputs;  // scan inputs that they make, a block in the same place each time
};

// When and by whom trips are run.
struct LoopSchedule {
  int64_t weight = 1;  // of a trip, in kPollUnitNs
  double work_ns = 0;  // of a trip, loops inside counted with one trip
  bool holds_loops = false;
  bool may_team = false;             // trips are long enough to be shared among threads (base/thread_pool.h, set_team)
  const ChainLoop* chain = nullptr;  // all trips as one chain; null: there is none (plan/chain_loops.h)
  Strips blocks;
};

struct Loop {
  const ir::Node* node = nullptr;
  bool is_scan = false;
  bool masked = false;            // scan input 0 is a mask (op/loop_signature.h)
  uint32_t trip_count = kNoSlot;  // M
  uint32_t condition = kNoSlot;   // cond before the first trip
  uint32_t counter = kNoSlot;     // int64, the body's first input; kNoSlot: nobody reads it
  uint32_t continues = kNoSlot;   // the body's condition; kNoSlot: it is not asked
  int64_t known_trips = -1;       // of a scan whose length the plan knows
  std::vector<LoopState> states;
  std::vector<ScanInput> scan_inputs;
  std::vector<ScanOutput> scan_outputs;
  uint32_t first = 0, last = 0;    // instructions of the loop, LoopBegin and LoopEnd included
  bool in_loop = false;            // inside another one
  std::vector<uint32_t> releases;  // handles that nobody needs after the loop
  LoopStep step;
  LoopSchedule schedule;
};

// What one thread does at a time, block of trips by block of trips: the kernels, then the trips of the loop.
struct PipelineStage {
  static constexpr uint32_t kNoLoop = UINT32_MAX;
  struct Need {
    uint32_t stage = 0;
    bool all = false;  // every block, else the blocks up to the same one
  };
  std::vector<RowKernel> kernels;
  uint32_t loop = kNoLoop;
  std::vector<Need> needs;
};

// Loops of as many trips that can run at the same time, and what stands between them (plan/pipelines.h).
struct Pipeline {
  uint32_t first = 0, last = 0;         // instructions: kPipeline and kPipelineEnd
  int64_t trips = 0, block = 0;         // of each loop; trips of a block
  std::vector<uint32_t> before, after;  // instructions that run before all stages, and behind them
  std::vector<PipelineStage> stages;    // in the order of the program

  int64_t blocks() const { return (trips + block - 1) / block; }
};

struct Input {
  uint32_t slot = kNoSlot;  // kNoSlot: not used
  Type type;
};

struct Output {
  uint32_t slot = kNoSlot;
  Type type;            // of the slot's memory other values may have made another one, with as many elements
  bool direct = false;  // the program writes into the memory that is handed out
  // Of a direct one.
  Dims dims;
  size_t bytes = 0;
};

struct Program {
  std::unique_ptr<ir::Graph> graph;  // owns nodes and attributes that the rest refers to
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
  std::vector<const ir::Node*> node_of;  // per instruction, for messages; null for glue
  size_t arena_bytes = 0;
  StateArena states;
  std::shared_ptr<PackCache> packs;  // kept as long: loops may be compiled when the session is gone
  int threads = 1;                   // that a run may use
  double work_ns = 0;                // about what all instructions take, those of loops once
};

// Plans a specialised graph (see specialize.h). On failure the graph is handed back: what was packed of its constants
// stays in `packs` under their addresses, so they must live as long as that. `optimize`: nodes may share an
// instruction. `threads`: that a run may use.
Result<std::shared_ptr<const Program>> make_program(std::unique_ptr<ir::Graph>& graph, std::shared_ptr<PackCache> packs,
                                                    bool optimize = true, int threads = 1);

// The nodes that an instruction runs; none for glue.
std::span<const ir::Node* const> nodes_of(const Program& program, uint32_t pc);
// The names of their operators, joined by "+".
std::string op_names(const Program& program, uint32_t pc);
// How its kernel computes (Kernel::method); empty: there is one way, or no kernel.
std::string_view method_of(const Program& program, uint32_t pc);
// Instructions that jumps and branches lead to.
std::unordered_set<uint32_t> branch_targets(const Program& program);
// Iterations of a loop each time that it runs, where the plan knows them; else -1.
int64_t planned_trips(const Program& program, const Loop& loop);
// Its kernel, null where it is something else.
inline const KernelCall* kernel_of(const Program& program, uint32_t pc) {
  const Instruction& in = program.code[pc];
  return in.code == OpCode::kKernel ? &program.kernels[in.index] : nullptr;
}

// A readable listing (treadle run --plan).
std::string print(const Program& program);

}  // namespace treadle::plan
