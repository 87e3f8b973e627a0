// Emits nodes without bodies, and If.

#include <algorithm>

#include "base/stop.h"
#include "op/axes.h"
#include "op/costs.h"
#include "op/operands.h"
#include "op/place.h"
#include "op/size_check.h"
#include "plan/kernel_code.h"
#include "plan/planner.h"

namespace treadle::plan {

namespace {

// Whether this error makes planning fail. For any other error of a node, the run reports it if it reaches the node.
bool fails_plan(const Status& status) {
  constexpr Code kCodes[] = {Code::kNotImplemented, Code::kInternal, Code::kCancelled, Code::kLimit};
  return std::find(std::begin(kCodes), std::end(kCodes), status.code()) != std::end(kCodes);
}

}  // namespace

Status Planner::emit(const ir::Region& region, bool is_body) {
  const std::vector<Unit> units = fusion_.units(region);
  const bool groups_only = is_body && std::all_of(units.begin(), units.end(), [&](const Unit& unit) {
                             return unit.reductions.empty() && (unit.fused || fusion_.can_be_group(unit));
                           });
  for (const Unit& unit : units) {
    if (stop_requested()) return stopped();
    if (unit.fused || groups_only) {
      FusedGroup group = fusion_.build(unit);
      if (unit.fused || group.builder.chain_shape()) {
        emit_fused(unit, std::move(group));
        continue;
      }
    }
    for (const ir::Node* node : unit.nodes) {
      Status status = emit(*node, unit);
      if (!status.ok()) return status.place().empty() ? std::move(status).in(node_place(*node)) : std::move(status);
    }
  }
  return {};
}

void Planner::emit_fused(const Unit& unit, FusedGroup group) {
  KernelCall call;
  call.inputs = static_cast<uint32_t>(group.inputs.size());
  call.outputs = static_cast<uint32_t>(group.outputs.size());
  call.operands.reserve(group.inputs.size() + group.outputs.size() + unit.reductions.size() + 2);
  for (const ir::Value* v : group.inputs) call.operands.push_back(slot(v));
  for (const ir::Value* v : group.outputs) call.operands.push_back(define(v, Storage::kArena));
  for (const auto& [alias, base] : group.aliases) slot_of_.put(alias, slot(base));
  for (const ir::Node* node : unit.reductions) call.operands.push_back(define(node->outputs[0], Storage::kArena));
  call.outputs += static_cast<uint32_t>(unit.reductions.size());
  call.group = unit.all();
  if (wants_code()) call.code = code_of_group(fusion_, unit, {group.inputs, group.outputs}, call);
  const ir::Node* const last = call.group.back();
  const uint32_t at = emit_call(last, std::move(call));
  count_work(group.builder.estimated_ns());
  groups_.emplace_back(p_.code[at].index, std::move(group));
}

Status Planner::emit(const ir::Node& node, const Unit& unit) {
  if (unit.views.empty()) return emit(node);
  return is_planned(node) ? emit_kernel(node, unit) : emit_after_views(node, unit);
}

Status Planner::emit_after_views(const ir::Node& node, const Unit& unit) {
  for (const ir::Value* v : unit.views) TREADLE_TRY(emit(*v->producer));
  return emit_dynamic(node);
}

Status Planner::emit(const ir::Node& node) {
  switch (node.op->control) {
    case Control::kIf:
      return emit_if(node);
    case Control::kLoop:
    case Control::kScan:
      return emit_loop(node);
    case Control::kNone:
      break;
  }
  if (is_planned(node)) {
    if (is_row(node)) return emit_row(node);
    return is_alias(node) ? emit_alias(node) : emit_kernel(node, {});
  }
  return emit_dynamic(node);
}

bool Planner::is_planned(const ir::Node& node) {
  if (!node.op->prepare) return false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ir::Value* v = node.inputs[i];
    if (!v) continue;
    if (!is_fixed(v->type)) return false;
    if (i < 64 && (node.op->shape_inputs >> i & 1) && !v->is_constant()) return false;
  }
  return std::all_of(node.outputs.begin(), node.outputs.end(),
                     [](const ir::Value* v) { return !v || is_fixed(v->type); });
}

bool Planner::is_alias(const ir::Node& node) {
  if (node.op->alias_input < 0 || !node.outputs[0]) return false;
  const ir::Value* v = node.inputs[static_cast<size_t>(node.op->alias_input)];
  return v && !v->is_constant() && p_.slots[slot(v)].storage != Storage::kHandle;
}

Status Planner::emit_alias(const ir::Node& node) {
  slot_of_.put(node.outputs[0], slot(node.inputs[static_cast<size_t>(node.op->alias_input)]));
  return {};
}

bool Planner::is_row(const ir::Node& node) {
  if (node.op->sizes != SizeRule::kGather || !node.outputs[0]) return false;
  if (is_sub_byte(node.outputs[0]->type.element)) return false;  // a row may begin within a byte
  const Shape& data = node.inputs[0]->type.shape;
  if (!element_count(node.inputs[1]->type.shape).is_known(1) ||
      p_.slots[slot(node.inputs[0])].storage == Storage::kHandle) {
    return false;
  }
  const int64_t axis = node.attributes.get_int("axis");
  const size_t first = static_cast<size_t>(from_front(axis, static_cast<int64_t>(data.size())));
  return std::all_of(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(first),
                     [](const Dim& d) { return d.is_known(1); });
}

Status Planner::emit_row(const ir::Node& node) {
  const Type& data = node.inputs[0]->type;
  Row row;
  row.from = slot(node.inputs[0]);
  row.index = slot(node.inputs[1]);
  row.to = define(node.outputs[0], Storage::kPointer);
  row.wide = node.inputs[1]->type.element == ElementType::kInt64;
  row.bytes = bytes_of(node.outputs[0]->type);
  const int64_t axis = node.attributes.get_int("axis");
  row.count = data.shape[static_cast<size_t>(from_front(axis, static_cast<int64_t>(data.shape.size())))].value();
  p_.rows.push_back(row);
  emit_code(OpCode::kRow, &node, static_cast<uint32_t>(p_.rows.size() - 1));
  return {};
}

Status Planner::emit_kernel(const ir::Node& node, const Unit& unit) {
  std::vector<Operand> in, out;
  KernelCall call;
  call.inputs = static_cast<uint32_t>(node.inputs.size());
  call.outputs = static_cast<uint32_t>(node.outputs.size());
  in.reserve(node.inputs.size());
  out.reserve(node.outputs.size());
  call.operands.reserve(node.inputs.size() + node.outputs.size() + 2);
  for (const ir::Value* v : node.inputs) {
    Fusion::Source source;
    if (v) source = fusion_.source(unit, v);
    in.push_back(source.operand);
    call.operands.push_back(slot(source.value));
  }
  for (const ir::Value* v : node.outputs) out.push_back(v ? operand_of(*v) : Operand());
  ElementwiseForm form;
  PrepareContext context{node, in, out, p_.states, *p_.packs, {}, 0, wants_code() ? &form : nullptr, p_.threads};
  if (plain_) {
    constexpr int64_t kMostListed = 1 << 20;
    context.form_only = true;
    context.most_moves = kMostListed;
  }
  Status refused = node.op->prepare(context);
  if (was_stopped()) return stopped();  // the kernel may be incomplete
  if (!refused.ok()) return fails_plan(refused) ? std::move(refused) : emit_after_views(node, unit);
  for (const ir::Value* v : node.outputs) call.operands.push_back(define(v, Storage::kArena));
  call.operands.push_back(plain_ ? kNoSlot : new_scratch(context.scratch_bytes));
  if (context.kept_bytes > 0 && !plain_) {
    call.operands.push_back(new_scratch(context.kept_bytes));
    call.kept = 1;
  }
  call.kernel = context.kernel;
  if (wants_code()) call.code = code_of_node(node, form, call, plain_);
  emit_call(&node, std::move(call));
  size_t bytes = 0;
  for (const Operand& operand : in) bytes += operand.byte_size();
  for (const Operand& operand : out) bytes += operand.byte_size();
  count_work(std::max(context.cost_ns, static_cast<double>(bytes) * costs::kPlannedByteNs));
  return {};
}

void Planner::count_work(double ns) {
  work_ns_ += costs::kInstructionNs + ns;
  unpolled_ns_ += costs::kInstructionNs + ns;
  if (unpolled_ns_ < kPollUnitNs * kPollUnits) return;
  emit_code(OpCode::kPoll, nullptr);
  unpolled_ns_ = 0;
}

Status Planner::emit_dynamic(const ir::Node& node) {
  const bool is_lowered_in_run = node.op->lower && node.regions.empty();
  if (!node.op->prepare && !node.op->compute && !is_lowered_in_run) {
    return error(Code::kNotImplemented, "operator {}-{} cannot be run on these types", node.op->name,
                 node.version->since);
  }
  DynamicNode dynamic;
  dynamic.node = &node;
  for (const ir::Value* v : node.inputs) dynamic.inputs.push_back(slot(v));
  for (const ir::Value* v : node.outputs) dynamic.outputs.push_back(define(v, Storage::kHandle));
  dynamic.checks = is_size_check(*node.op);
  dynamic.kernel = dynamic_kernel_of(node, p_.states);
  p_.dynamic.push_back(std::move(dynamic));
  emit_code(node.op->prepare ? OpCode::kGuarded : OpCode::kCompute, &node,
            static_cast<uint32_t>(p_.dynamic.size() - 1));
  count_work(costs::kDynamicNs);
  return {};
}

Status Planner::emit_if(const ir::Node& node) {
  for (const ir::Value* v : node.outputs) define(v, v ? own_storage(v->type) : Storage::kNull);
  const uint32_t branch = emit_code(OpCode::kBranchUnless, &node, slot(node.inputs[0]));
  TREADLE_TRY(emit_branch(node, *node.region("then_branch")));
  const uint32_t jump = emit_code(OpCode::kJump, &node);
  p_.code[branch].target = here();
  TREADLE_TRY(emit_branch(node, *node.region("else_branch")));
  p_.code[jump].target = here();
  return {};
}

Status Planner::emit_branch(const ir::Node& node, const ir::Region& branch) {
  TREADLE_TRY(emit(branch));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.outputs[i]) continue;
    const uint32_t from = slot(branch.outputs[i]), to = slot(node.outputs[i]);
    if (p_.slots[to].storage == Storage::kHandle) {
      emit_move(from, to);
      p_.moves.back().takes = can_be_taken(branch, i, p_.slots[from], p_.slots[to]);
      note_type(branch.outputs[i], from);
    } else {
      emit_copy_to(from, to, p_.slots[to].bytes);
    }
  }
  return {};
}

// Whether only the If reads output `i` of the branch, and both slots have the same sizes. Then the value may be moved.
bool Planner::can_be_taken(const ir::Region& branch, size_t i, const Slot& from, const Slot& to) {
  const ir::Value* v = branch.outputs[i];
  if (from.storage != Storage::kHandle || !v->producer || v->producer->parent != &branch) return false;
  if (std::ranges::count(branch.outputs, v) > 1) return false;
  if (!from.type.is_concrete() && !to.type.is_concrete()) return true;
  return from.type.is_concrete() && to.type.is_concrete() && from.type.element == to.type.element &&
         same(from.type.shape, to.type.shape);
}

void Planner::note_type(const ir::Value* v, uint32_t from) {
  if (is_fixed(v->type)) p_.moves.back().from = typed_slot(v, from);
}

uint32_t Planner::typed_slot(const ir::Value* v, uint32_t s) {
  if (!is_fixed(v->type) || same_memory(p_.slots[s].type, v->type)) return s;
  // The slot has the same memory, but other sizes: emits a copy with the right type before the last instruction.
  const Instruction moved = p_.code.back();
  p_.code.pop_back();
  const ir::Node* node = p_.node_of.back();
  p_.node_of.pop_back();
  const uint32_t copy = emit_copy(s, v->type);
  p_.code.push_back(moved);
  p_.node_of.push_back(node);
  return copy;
}

}  // namespace treadle::plan
