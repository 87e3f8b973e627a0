// Slots, inputs and outputs of a program.

#include "plan/planner.h"

#include "base/memory_account.h"
#include "base/pages.h"
#include "base/stop.h"
#include "plan/chain_loops.h"
#include "plan/growing.h"
#include "plan/memory.h"
#include "plan/releases.h"
#include "plan/strip_mining.h"
#include "plan/verify.h"

namespace treadle::plan {

bool is_fixed(const Type& type) {
  if (!type.is_concrete() || is_string(type.element)) return false;
  constexpr int64_t kMost = int64_t{1} << 56;
  const auto count = element_count(known_dims(type.shape));
  return count.ok() && count.value() <= kMost;
}

size_t bytes_of(const Type& type) {
  return static_cast<size_t>(known_element_count(type.shape)) * byte_width(type.element);
}

bool same_memory(const Type& a, const Type& b) {
  return is_fixed(a) && is_fixed(b) && a.element == b.element && same(a.shape, b.shape);
}

namespace {

// In long programs, room for slots is reserved so that they are not moved while their number grows. Values, scratch and
// constants of chains mostly fit. Reserved memory that is never used is never touched.
constexpr size_t kSlotsPerValue = 3, kManyValues = 4096;

}  // namespace

void Planner::list_values() {
  for (const ir::Value* v : p_.graph->values()) {
    if (v->origin == 0) continue;
    if (const uint32_t* s = slot_of_.find(v)) p_.values.emplace_back(v, *s);
  }
}

Status Planner::run() {
  const ir::Region& top = p_.graph->top();
  if (fusion_.values() >= kManyValues) {
    p_.slots.reserve(kSlotsPerValue * fusion_.values());
    ask_for_large_pages(p_.slots.data(), p_.slots.capacity() * sizeof(Slot));
  }
  for (size_t i = 0; i < top.inputs.size(); ++i) add_input(i, *top.inputs[i]);
  TREADLE_TRY(emit(top));
  for (const ir::Value* v : top.outputs) add_output(v);
  emit_code(OpCode::kEnd, nullptr);
  if (p_.threads > 1 && !observed_) add_pipelines();
  if (!observed_ && !plain_) strip_mine(p_);
  fresh_.resize(p_.slots.size());
  if (!plain_) finish_groups();
  if (stop_requested()) return stopped();
  if (!plain_) chain_loops(p_);
  place_in_arena(p_);
  if (stop_requested()) return stopped();
  place_releases(p_);
  if (!observed_) find_growing(p_);
  bind_kernels();
  if (observed_) list_values();
  p_.work_ns = work_ns_;
  return stop_requested() ? stopped() : Status();
}

uint32_t Planner::new_slot(Storage storage, const Type& type) {
  Slot slot;
  slot.storage = storage;
  slot.type = type;
  if (is_fixed(type)) slot.bytes = bytes_of(type);
  p_.slots.push_back(std::move(slot));
  fresh_.push_back(storage == Storage::kArena);
  return static_cast<uint32_t>(p_.slots.size() - 1);
}

uint32_t Planner::new_scratch(size_t bytes) {
  if (bytes == 0) return kNoSlot;
  const uint32_t s = new_slot(Storage::kArena, {});
  p_.slots[s].bytes = bytes;
  return s;
}

uint32_t Planner::slot(const ir::Value* v) {
  if (!v) return kNoSlot;
  if (const uint32_t* known = slot_of_.find(v)) return *known;
  TREADLE_ASSERT(v->is_constant());
  const uint32_t s = new_slot(Storage::kConstant, v->type);
  p_.slots[s].constant = v->constant;
  p_.slots[s].value = v;
  slot_of_.put(v, s);
  return s;
}

uint32_t Planner::define(const ir::Value* v, Storage storage) {
  if (!v) return kNoSlot;
  const uint32_t s = new_slot(storage, v->type);
  p_.slots[s].value = v;
  slot_of_.put(v, s);
  return s;
}

void Planner::add_input(size_t i, const ir::Value& v) {
  Input input;
  input.type = v.type;
  if (!v.is_constant()) {
    input.slot = define(&v, is_fixed(v.type) ? Storage::kInput : Storage::kHandle);
    p_.slots[input.slot].index = static_cast<uint32_t>(i);
  }
  p_.inputs.push_back(std::move(input));
}

void Planner::add_output(const ir::Value* v) {
  uint32_t s = slot(v);
  const auto index = static_cast<uint32_t>(p_.outputs.size());
  Output output;
  output.type = v->type;
  if (is_fixed(v->type) && p_.slots[s].storage != Storage::kHandle) {
    if (!fresh_[s]) s = emit_copy(s, v->type);
    fresh_[s] = false;
    p_.slots[s].storage = Storage::kOutput;
    p_.slots[s].index = index;
    output.direct = true;
    output.dims = known_dims(v->type.shape);
    output.bytes = bytes_of(v->type);
  }
  output.slot = s;
  p_.outputs.push_back(std::move(output));
}

uint32_t Planner::emit_code(OpCode code, const ir::Node* node, uint32_t index, uint32_t target) {
  Instruction in;
  in.code = code;
  in.index = index;
  in.target = target;
  p_.code.push_back(in);
  p_.node_of.push_back(node);
  return static_cast<uint32_t>(p_.code.size() - 1);
}

uint32_t Planner::emit_copy(uint32_t from, const Type& type) {
  const uint32_t to = new_slot(Storage::kArena, type);
  emit_copy_to(from, to, bytes_of(type));
  return to;
}

void Planner::emit_copy_to(uint32_t from, uint32_t to, size_t bytes) {
  p_.copies.push_back({from, to, bytes});
  emit_code(OpCode::kCopy, nullptr, static_cast<uint32_t>(p_.copies.size() - 1));
}

void Planner::emit_move(uint32_t from, uint32_t to) {
  p_.moves.push_back({from, to});
  emit_code(OpCode::kMove, nullptr, static_cast<uint32_t>(p_.moves.size() - 1));
}

uint32_t Planner::emit_call(const ir::Node* node, KernelCall call) {
  p_.kernels.push_back(std::move(call));
  return emit_code(OpCode::kKernel, node, static_cast<uint32_t>(p_.kernels.size() - 1));
}

void Planner::bind_kernels() {
  size_t total = 0;
  for (const KernelCall& call : p_.kernels) total += call.operands.size();
  p_.operand_pool.reserve(total);
  for (Instruction& in : p_.code) {
    if (in.code != OpCode::kKernel) continue;
    const KernelCall& call = p_.kernels[in.index];
    in.run = call.kernel.run;
    in.state = call.kernel.state;
    in.operands = p_.operand_pool.data() + p_.operand_pool.size();
    p_.operand_pool.insert(p_.operand_pool.end(), call.operands.begin(), call.operands.end());
  }
}

std::span<const ir::Node* const> nodes_of(const Program& program, uint32_t pc) {
  const KernelCall* call = kernel_of(program, pc);
  if (call && !call->group.empty()) return call->group;
  return {&program.node_of[pc], program.node_of[pc] ? size_t{1} : 0};
}

std::string op_names(const Program& program, uint32_t pc) {
  std::string names;
  for (const ir::Node* node : nodes_of(program, pc)) names += (names.empty() ? "" : "+") + node->op->name;
  return names;
}

std::string_view method_of(const Program& program, uint32_t pc) {
  const KernelCall* call = kernel_of(program, pc);
  return call == nullptr ? std::string_view() : call->kernel.method;
}

int64_t planned_iterations(const Program& program, const Loop& loop) {
  if (loop.known_iterations >= 0) return loop.known_iterations;
  const auto goes_on = [&](uint32_t s) {
    const Slot& flag = program.slots[s];
    return s == kNoSlot || (flag.storage == Storage::kConstant && *flag.constant.data<bool>());
  };
  const Slot& count = program.slots[loop.trip_count];
  const bool is_counted = count.storage == Storage::kConstant && goes_on(loop.continues) && goes_on(loop.condition);
  return is_counted ? std::max<int64_t>(*count.constant.data<int64_t>(), 0) : -1;
}

std::unordered_set<uint32_t> branch_targets(const Program& program) {
  std::unordered_set<uint32_t> targets;
  for (const Instruction& in : program.code) {
    if (in.code == OpCode::kJump || in.code == OpCode::kBranchUnless) targets.insert(in.target);
  }
  return targets;
}

Result<std::shared_ptr<const Program>> make_program(std::unique_ptr<ir::Graph>& graph, std::shared_ptr<PackCache> packs,
                                                    const ProgramOptions& options) {
  auto program = std::make_shared<Program>();
  program->graph = std::move(graph);
  program->packs = std::move(packs);
  program->threads = options.threads;
  program->denormals = options.denormals;
  Status status = within_memory([&]() -> Status {
    TREADLE_TRY(Planner(*program, options).run());
#ifndef NDEBUG
    TREADLE_TRY(verify(*program));
#endif
    return {};
  });
  if (!status.ok()) {
    graph = std::move(program->graph);
    return status;
  }
  return std::shared_ptr<const Program>(std::move(program));
}

}  // namespace treadle::plan
