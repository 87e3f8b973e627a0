#pragma once
// The one form in which models run: a graph with all its bodies as one flat list of instructions over slots. A branch
// is a jump, a loop is a back edge, a scan slice is a pointer that advances. Immutable, shared by all threads; what
// changes during a run lives in exec::Context.

#include <memory>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "op/kernel.h"
#include "op/op_def.h"

namespace treadle::plan {

inline constexpr uint32_t kNoSlot = 0;  // slot 0 is null: an operand that was left out

enum class OpCode : uint8_t {
  kKernel,        // run(state, slots, operands)
  kGuarded,       // index: guarded[]; prepared per shapes seen
  kCompute,       // index: guarded[]; values in, values out
  kCopy,          // bytes: index -> copies[]
  kMove,          // index: moves[]; a value of run-time size takes another place
  kJump,          // target
  kBranchUnless,  // operands[0]: bool slot; target
  kLoopBegin,     // index: loops[]; target: the LoopEnd, when no trip runs
  kLoopNext,      // index: loops[]; target: the first instruction of the body
  kLoopEnd,       // index: loops[]
  kEnd,
};

struct Instruction {
  OpCode code = OpCode::kEnd;
  uint32_t index = 0;
  uint32_t target = 0;
  const uint32_t* operands = nullptr;
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

struct Copy {
  uint32_t from = 0, to = 0;
  size_t bytes = 0;
};

// A node that runs through its inline cache (kGuarded) or on values (kCompute).
struct DynamicNode {
  const ir::Node* node = nullptr;
  std::vector<uint32_t> inputs, outputs;  // slots
};

struct LoopState {
  uint32_t initial = 0;  // slot before the loop
  uint32_t in = 0;       // the body's input
  uint32_t out = 0;      // the body's output: memory of its own, swapped with `in` on the back edge
  uint32_t final = 0;    // slot after the loop; kNoSlot: nobody wants it
  size_t bytes = 0;
  bool planned = false;         // fixed size, else handles
  bool shape_is_fixed = false;  // handles: a change of shape is an error (Scan)
};

struct ScanInput {
  uint32_t whole = 0;
  uint32_t element = 0;  // kPointer, or a handle where the element's shape is known only at run time
  bool planned = false;
  bool reverse = false;
  size_t element_bytes = 0;  // planned
};

struct ScanOutput {
  uint32_t element = 0;  // slot that the body writes; kPointer: written in place
  uint32_t whole = 0;
  bool in_place = false;  // `element` points into the whole
  bool element_planned = false;
  bool whole_planned = false;  // `whole` has its memory before the loop starts
  bool reverse = false;
  size_t element_bytes = 0;
  ElementType type = ElementType::kUndefined;
  Type empty;  // element type when no trip ran
};

struct Loop {
  bool is_scan = false;
  uint32_t trip_count = kNoSlot;  // M
  uint32_t condition = kNoSlot;   // cond before the first trip
  uint32_t counter = kNoSlot;     // int64, the body's first input; kNoSlot: nobody reads it
  uint32_t go_on = kNoSlot;       // the body's condition; kNoSlot: not asked
  bool go_on_is_handle = false;
  bool exact_trips = false;  // the number of trips is known when the loop begins
  std::vector<LoopState> states;
  std::vector<ScanInput> scan_inputs;
  std::vector<ScanOutput> scan_outputs;
  // What the back edge does when everything is planned: pairs to swap, pointers to advance, rows to copy.
  struct Advance {
    uint32_t slot;
    int64_t stride;
  };
  std::vector<std::pair<uint32_t, uint32_t>> swaps;
  bool simple = false;           // no handles, no growing outputs: only swaps, advances and row copies
  std::string place;             // for messages
  uint32_t first = 0, last = 0;  // instructions of the loop, LoopBegin and LoopEnd included
};

struct Input {
  uint32_t slot = kNoSlot;  // kNoSlot: not used
  Type type;
};

struct Output {
  uint32_t slot = kNoSlot;
  bool direct = false;  // the program writes into the memory that is handed out
};

struct Program {
  std::unique_ptr<ir::Graph> graph;  // owns nodes and attributes that the rest refers to
  std::vector<Instruction> code;
  std::vector<uint32_t> operand_pool;
  std::vector<Slot> slots;
  std::vector<Copy> copies;
  std::vector<std::pair<uint32_t, uint32_t>> moves;  // from, to
  std::vector<DynamicNode> dynamic;
  std::vector<Loop> loops;
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  std::vector<const ir::Node*> node_of;  // per instruction, for messages; null for glue
  size_t arena_bytes = 0;
  StateArena states;
  PackCache* packs = nullptr;
};

// Plans a specialised graph (see specialize.h). `packs` outlives the program.
Result<std::shared_ptr<const Program>> make_program(std::unique_ptr<ir::Graph> graph, PackCache& packs);

// A readable listing (--dump=plan).
std::string print(const Program& program);

}  // namespace treadle::plan
