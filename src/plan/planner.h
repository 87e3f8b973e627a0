#pragma once
// From a specialised graph to a program, in two steps.
//
// Emission walks the graph once and writes instructions. Every value gets a slot. A kernel writes a value of known
// sizes into planned memory. Any other value is a handle; an inline cache guards the node that makes it, or the node
// computes on values. Aliases (Reshape and similar nodes on planned memory) share their input's slot.
//
// A loop's state is two pieces of memory, which the back edge swaps. So every output of a body must be memory of its
// own. An output that is an input, a captured value, a constant, an alias of one, or listed twice is copied first (the
// parallel move of the back edge).
//
// This header is for the source files of emission: planner.cc (slots, inputs and outputs), emit_nodes.cc (nodes and
// branches), emit_loops.cc (Loop and Scan), add_pipelines.cc (loops that run at the same time), finish_groups.cc (fused
// groups).

#include <deque>
#include <unordered_set>
#include <vector>

#include "base/pointer_map.h"
#include "kernels/fused.h"
#include "op/loop_view.h"
#include "plan/fusion.h"
#include "plan/program.h"

namespace treadle::plan {

// Whether values of this type have planned memory. Sizes that exceed any memory do not; the run refuses them if it
// reaches their node.
bool is_fixed(const Type& type);
size_t bytes_of(const Type& type);  // for a type that is_fixed
bool same_memory(const Type& a, const Type& b);

class Planner {
 public:
  Planner(Program& program, const ProgramOptions& options)
      : p_(program),
        observed_(options.observed),
        plain_(options.plain),
        fusion_(*program.graph, {options.optimize, !options.plain, program.threads}) {
    new_slot(Storage::kNull, {});
  }

  Status run();

 private:
  // --- slots

  void list_values();  // in Program::values
  uint32_t new_slot(Storage storage, const Type& type);
  uint32_t new_scratch(size_t bytes);
  uint32_t slot(const ir::Value* v);
  uint32_t define(const ir::Value* v, Storage storage);
  // Where a value of this type is stored if no other instruction provides its memory.
  static Storage own_storage(const Type& type) { return is_fixed(type) ? Storage::kArena : Storage::kHandle; }
  void add_input(size_t i, const ir::Value& v);
  void add_output(const ir::Value* v);
  // Operand lists of kernels go into one pool, whose address is fixed once the pool is complete.
  void bind_kernels();

  // --- instructions

  uint32_t emit_code(OpCode code, const ir::Node* node, uint32_t index = 0, uint32_t target = 0);
  uint32_t emit_call(const ir::Node* node, KernelCall call);
  uint32_t here() const { return static_cast<uint32_t>(p_.code.size()); }

  // Copies `from` into planned memory of its own.
  uint32_t emit_copy(uint32_t from, const Type& type);
  void emit_copy_to(uint32_t from, uint32_t to, size_t bytes);
  void emit_move(uint32_t from, uint32_t to);

  // `is_body`: `region` is the body of a loop. Then a single operation is a group as well if the body has no other
  // nodes, so that the whole loop can be a chain.
  Status emit(const ir::Region& region, bool is_body = false);
  void emit_fused(const Unit& unit, FusedGroup group);
  Status emit(const ir::Node& node);
  Status emit(const ir::Node& node, const Unit& unit);

  // Whether all sizes are known, and all contents on which preparation depends.
  static bool is_planned(const ir::Node& node);
  bool is_alias(const ir::Node& node);
  Status emit_alias(const ir::Node& node);

  // Whether the node is a Gather of one index along the outermost axis, from memory that stays while the program runs.
  bool is_row(const ir::Node& node);

  // The result is a pointer into the data.
  Status emit_row(const ir::Node& node);
  Status emit_kernel(const ir::Node& node, const Unit& unit);
  Status emit_after_views(const ir::Node& node, const Unit& unit);

  // Counts the work of an instruction of about `ns` nanoseconds.
  void count_work(double ns);
  Status emit_dynamic(const ir::Node& node);

  // --- If

  Status emit_if(const ir::Node& node);
  Status emit_branch(const ir::Node& node, const ir::Region& branch);

  // A planned value that becomes a handle needs a slot with its own sizes; an alias's slot may have others.
  static bool can_be_taken(const ir::Region& branch, size_t i, const Slot& from, const Slot& to);
  void note_type(const ir::Value* v, uint32_t from);
  uint32_t typed_slot(const ir::Value* v, uint32_t s);

  // --- Loop and Scan

  Status emit_loop(const ir::Node& node);
  // Adds the slots of the loop's results. `first_slot`: the first slot of its body.
  void end_parts(Loop& loop, const LoopView& view, uint32_t first_slot);

  // Whether `region` or a nested body reads `v`.
  static bool uses(const ir::Region& region, const ir::Value* v);
  void begin_loop(const LoopView& view, Loop& loop);
  static bool is_true(const ir::Value* v);
  void begin_state(Loop& loop, const ir::Value* initial, const ir::Value* in, const ir::Value* out);

  // `s`, or a copy if its memory belongs to another value than `v`, of other sizes.
  uint32_t typed_copy(const ir::Value* v, uint32_t s);
  void begin_scan_input(Loop& loop, const ir::Value* whole, const ir::Value* element, bool reverse);
  static void advance(Loop& loop, uint32_t s, size_t bytes, bool reverse);

  // Whether the slot is memory that the body wrote in this iteration, for this value alone.
  bool is_own(uint32_t s, uint32_t first_slot, const std::unordered_set<uint32_t>& taken) const;
  void end_state(LoopState& state, const ir::Value* out, uint32_t first_slot, std::unordered_set<uint32_t>& taken);
  void end_scan_output(Loop& loop, const LoopView& view, size_t i, uint32_t first_slot,
                       std::unordered_set<uint32_t>& taken);
  // Whether all of it is planned memory, so that the back edge only swaps and advances pointers.
  bool is_simple(const Loop& loop) const;

  // --- Pipelines (plan/pipelines.h)

  void add_pipelines();
  // Inserts in front of instruction `at`. If `takes_jumps`, jumps to `at` then lead to the new instruction.
  void insert_code(OpCode code, uint32_t at, uint32_t index, bool takes_jumps);

  // --- Fused groups, once the slots of their operands are known

  void finish_groups();

  // Finds planned memory that may be made longer, so that chains read and write whole vectors there: results of chains,
  // and loop states, whose memory behind the state is cleared. In other memory, bytes behind the elements may hold
  // anything.
  void find_padded();
  bool finish_chain(KernelCall& call, const FusedGroup& group);
  uint32_t new_extra(const kernels::FusedChain::Extra& extra);
  void finish_reduced(KernelCall& call, FusedGroup& group);
  void finish_tiles(KernelCall& call, FusedGroup& group);

  static constexpr uint32_t kAsked = UINT32_MAX;
  Program& p_;
  const bool observed_, plain_;
  // Whether instructions say what they compute: in loops, for native code.
  bool wants_code() const { return in_loop_ || plain_; }
  bool in_loop_ = false;    // emission is inside of a loop
  double work_ns_ = 0;      // work of all instructions so far
  double unpolled_ns_ = 0;  // work of the instructions since the last kPoll
  Fusion fusion_;
  PointerMap<ir::Value, uint32_t> slot_of_;
  std::deque<std::pair<uint32_t, FusedGroup>> groups_;  // by kernel
  std::vector<bool> padded_;                            // per slot
  std::unordered_set<uint32_t> late_;                   // slots of values from the iteration before
  // By slot: planned memory that only its own value uses, so that an output may take it over.
  std::vector<bool> fresh_;
};

}  // namespace treadle::plan
