#pragma once
// From a specialised graph to a program, in two steps.
//
// Emission walks the graph once and writes instructions. Every value gets a slot. A value whose sizes are known is
// written by a kernel into planned memory; any other is a handle, and the node that makes it is guarded by an inline
// cache or computes on values. Aliases (Reshape and its like on planned memory) share their input's slot.
//
// A loop's states are two pieces of memory each, swapped on the back edge; for that, what a body hands out must be
// memory of its own: a body output that is an input, a captured value, a constant, an alias of one, or listed twice is
// copied first (the parallel move of the back edge).
//
// This header is for the files that emission is spread over: planner.cc (slots, inputs and outputs), emit_nodes.cc
// (nodes and branches), emit_loops.cc (Loop and Scan), add_pipelines.cc (loops that run at the same time),
// finish_groups.cc (fused groups).

#include <deque>
#include <unordered_set>
#include <vector>

#include "base/pointer_map.h"
#include "kernels/fused.h"
#include "op/loop_view.h"
#include "plan/fusion.h"
#include "plan/program.h"

namespace treadle::plan {

// Whether values of this type have a fixed place. Sizes that no memory holds have none: they are left to the run, which
// refuses them where it reaches their node.
bool is_fixed(const Type& type);
size_t bytes_of(const Type& type);  // of one that is_fixed
bool same_memory(const Type& a, const Type& b);

class Planner {
 public:
  Planner(Program& program, bool fuse) : p_(program), fusion_(*program.graph, fuse, program.threads) {
    new_slot(Storage::kNull, {});
  }

  Status run();

 private:
  // --- slots

  uint32_t new_slot(Storage storage, const Type& type);
  uint32_t new_scratch(size_t bytes);
  uint32_t slot(const ir::Value* v);
  uint32_t define(const ir::Value* v, Storage storage);
  // Where a value of its type is kept when nobody else provides memory for it.
  static Storage own_storage(const Type& type) { return is_fixed(type) ? Storage::kArena : Storage::kHandle; }
  void add_input(size_t i, const ir::Value& v);
  void add_output(const ir::Value* v);
  // Operand lists of kernels go into one pool, whose address is fixed once it is complete.
  void bind_kernels();

  // --- instructions

  uint32_t emit_code(OpCode code, const ir::Node* node, uint32_t index = 0, uint32_t target = 0);
  uint32_t emit_call(const ir::Node* node, KernelCall call);
  uint32_t here() const { return static_cast<uint32_t>(p_.code.size()); }

  // The contents of `from` in planned memory of its own.
  uint32_t emit_copy(uint32_t from, const Type& type);
  void emit_copy_to(uint32_t from, uint32_t to, size_t bytes);
  void emit_move(uint32_t from, uint32_t to);

  // `is_body`: of a loop. Where nothing else is in it, a lone operation is a group too, so that the whole loop can be a
  // chain.
  Status emit(const ir::Region& region, bool is_body = false);
  void emit_fused(const Unit& unit, FusedGroup group);
  Status emit(const ir::Node& node);
  Status emit(const ir::Node& node, const Unit& unit);

  // All sizes are known, and all contents that preparation depends on.
  static bool is_planned(const ir::Node& node);
  bool is_alias(const ir::Node& node);
  Status emit_alias(const ir::Node& node);

  // Gather of one index along the outermost axis, from memory that stays while the program runs.
  bool is_row(const ir::Node& node);

  // Its result is a pointer into the data.
  Status emit_row(const ir::Node& node);
  Status emit_kernel(const ir::Node& node, const Unit& unit);
  Status emit_after_views(const ir::Node& node, const Unit& unit);

  // After an instruction of about `ns` nanoseconds.
  void count_work(double ns);
  Status emit_dynamic(const ir::Node& node);

  // --- If

  Status emit_if(const ir::Node& node);
  Status emit_branch(const ir::Node& node, const ir::Region& branch);

  // A planned value that is about to be wrapped as a handle needs its own sizes, which an alias's slot does not have.
  static bool can_be_taken(const ir::Region& branch, size_t i, const Slot& from, const Slot& to);
  void note_type(const ir::Value* v, uint32_t from);
  uint32_t typed_slot(const ir::Value* v, uint32_t s);

  // --- Loop and Scan

  Status emit_loop(const ir::Node& node);
  // Where its results go; `first_slot`: the first that its body made.
  void end_parts(Loop& loop, const LoopView& view, uint32_t first_slot);

  // Whether `region`, or a body in it, reads `v`.
  static bool uses(const ir::Region& region, const ir::Value* v);
  void begin_loop(const LoopView& view, Loop& loop);
  static bool is_true(const ir::Value* v);
  void begin_state(Loop& loop, const ir::Value* initial, const ir::Value* in, const ir::Value* out);

  // `s`, or a copy where it holds the memory of `v` under other sizes.
  uint32_t typed_copy(const ir::Value* v, uint32_t s);
  void begin_scan_input(Loop& loop, const ir::Value* whole, const ir::Value* element, bool reverse);
  static void advance(Loop& loop, uint32_t s, size_t bytes, bool reverse);

  // Memory that the body wrote in this trip, for this value alone.
  bool is_own(uint32_t s, uint32_t first_slot, const std::unordered_set<uint32_t>& taken) const;
  void end_state(LoopState& state, const ir::Value* out, uint32_t first_slot, std::unordered_set<uint32_t>& taken);
  void end_scan_output(Loop& loop, const LoopView& view, size_t i, uint32_t first_slot,
                       std::unordered_set<uint32_t>& taken);
  // All of it is planned memory, so that the back edge only swaps and advances pointers.
  bool is_simple(const Loop& loop) const;

  // --- Pipelines (plan/pipelines.h)

  void add_pipelines();
  // In front of instruction `at`; jumps to that one go to the new one if it `takes_jumps`.
  void insert_code(OpCode code, uint32_t at, uint32_t index, bool takes_jumps);

  // --- Fused groups, once it is known where their operands are

  void finish_groups();

  // Planned memory that may be made longer, so that chains write and read whole vectors there: what they make, and loop
  // states, whose memory is cleared behind the state. Elsewhere, what is not an element could be anything.
  void find_padded();
  bool finish_chain(KernelCall& call, const FusedGroup& group);
  uint32_t new_extra(const kernels::FusedChain::Extra& extra);
  void finish_reduced(KernelCall& call, FusedGroup& group);
  void finish_tiles(KernelCall& call, FusedGroup& group);

  static constexpr uint32_t kAsked = UINT32_MAX;
  Program& p_;
  bool in_loop_ = false;    // what is emitted
  double work_ns_ = 0;      // of all instructions so far
  double unpolled_ns_ = 0;  // of those since the last kPoll
  Fusion fusion_;
  PointerMap<ir::Value, uint32_t> slot_of_;
  std::deque<std::pair<uint32_t, FusedGroup>> groups_;  // by kernel
  std::vector<bool> padded_;                            // per slot
  std::unordered_set<uint32_t> late_;                   // slots of what the trip before made
  // Per slot: planned memory that only its own value uses, so that an output may take it over.
  std::vector<bool> fresh_;
};

}  // namespace treadle::plan
