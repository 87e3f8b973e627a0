// From a specialised graph to a program, in two steps.
//
// Emission walks the graph once and writes instructions. Every value gets a slot. A value whose sizes are known is
// written by a kernel into planned memory; any other is a handle, and the node that makes it is guarded by an inline
// cache or computes on values. Aliases (Reshape and its like on planned memory) share their input's slot.
//
// A loop's states are two pieces of memory each, swapped on the back edge; for that, what a body hands out must be
// memory of its own: a body output that is an input, a captured value, a constant, an alias of one, or listed twice is
// copied first (the parallel move of the back edge).
#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "check/inference.h"
#include "op/parallel.h"
#include "op/scan_attributes.h"
#include "plan/chain_loops.h"
#include "plan/fusion.h"
#include "plan/memory.h"
#include "plan/program.h"
#include "plan/releases.h"

namespace treadle::plan {

namespace {

// Whether values of this type have a fixed place. Sizes that no memory holds have none: they are left to the run, which
// refuses them where it reaches their node.
bool is_fixed(const Type& type) {
  if (!type.is_concrete() || is_string(type.element)) return false;
  constexpr int64_t kMost = int64_t{1} << 56;
  const auto count = element_count(known_dims(type.shape));
  return count.ok() && count.value() <= kMost;
}

size_t bytes_of(const Type& type) {
  return static_cast<size_t>(element_count_unchecked(known_dims(type.shape))) * byte_width(type.element);
}

bool same_memory(const Type& a, const Type& b) {
  return is_fixed(a) && is_fixed(b) && a.element == b.element && same(a.shape, b.shape);
}

Operand operand_of(const ir::Value& value) {
  Operand operand;
  operand.type = value.type.element;
  operand.dims = known_dims(value.type.shape);
  operand.strides = contiguous_strides(operand.dims);
  if (value.is_constant()) operand.constant = value.constant.raw();
  return operand;
}

class Planner {
 public:
  Planner(Program& program, bool fuse) : p_(program), fusion_(*program.graph, fuse) { new_slot(Storage::kNull, {}); }

  Status run() {
    const ir::Region& top = p_.graph->top();
    for (size_t i = 0; i < top.inputs.size(); ++i) add_input(i, *top.inputs[i]);
    TREADLE_TRY(emit(top));
    for (const ir::Value* v : top.outputs) add_output(v);
    emit_code(OpCode::kEnd, nullptr);
    finish_groups();
    chain_loops(p_);
    place_in_arena(p_, operands_);
    place_releases(p_);
    bind_operands();
    return {};
  }

 private:
  // --- slots

  uint32_t new_slot(Storage storage, const Type& type) {
    Slot slot;
    slot.storage = storage;
    slot.type = type;
    if (is_fixed(type)) slot.bytes = bytes_of(type);
    p_.slots.push_back(std::move(slot));
    fresh_.push_back(storage == Storage::kArena);
    return static_cast<uint32_t>(p_.slots.size() - 1);
  }

  uint32_t new_scratch(size_t bytes) {
    if (bytes == 0) return kNoSlot;
    const uint32_t s = new_slot(Storage::kArena, {});
    p_.slots[s].bytes = bytes;
    return s;
  }

  uint32_t slot(const ir::Value* v) {
    if (!v) return kNoSlot;
    const auto it = slot_of_.find(v);
    if (it != slot_of_.end()) return it->second;
    TREADLE_ASSERT(v->is_constant());
    const uint32_t s = new_slot(Storage::kConstant, v->type);
    p_.slots[s].constant = v->constant;
    return slot_of_[v] = s;
  }

  uint32_t define(const ir::Value* v, Storage storage) {
    if (!v) return kNoSlot;
    return slot_of_[v] = new_slot(storage, v->type);
  }

  // Where a value of its type is kept when nobody else provides memory for it.
  static Storage own_storage(const Type& type) { return is_fixed(type) ? Storage::kArena : Storage::kHandle; }

  void add_input(size_t i, const ir::Value& v) {
    Input input;
    input.type = v.type;
    if (!v.is_constant()) {
      input.slot = define(&v, is_fixed(v.type) ? Storage::kInput : Storage::kHandle);
      p_.slots[input.slot].index = static_cast<uint32_t>(i);
    }
    p_.inputs.push_back(std::move(input));
  }

  void add_output(const ir::Value* v) {
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
    }
    output.slot = s;
    p_.outputs.push_back(output);
  }

  // --- instructions

  uint32_t emit_code(OpCode code, const ir::Node* node, uint32_t index = 0, uint32_t target = 0) {
    Instruction in;
    in.code = code;
    in.index = index;
    in.target = target;
    p_.code.push_back(in);
    operands_.emplace_back();
    p_.node_of.push_back(node);
    return static_cast<uint32_t>(p_.code.size() - 1);
  }

  uint32_t here() const { return static_cast<uint32_t>(p_.code.size()); }

  // The contents of `from` in planned memory of its own.
  uint32_t emit_copy(uint32_t from, const Type& type) {
    const uint32_t to = new_slot(Storage::kArena, type);
    emit_copy_to(from, to, bytes_of(type));
    return to;
  }

  void emit_copy_to(uint32_t from, uint32_t to, size_t bytes) {
    p_.copies.push_back({from, to, bytes});
    emit_code(OpCode::kCopy, nullptr, static_cast<uint32_t>(p_.copies.size() - 1));
  }

  void emit_move(uint32_t from, uint32_t to) {
    p_.moves.emplace_back(from, to);
    emit_code(OpCode::kMove, nullptr, static_cast<uint32_t>(p_.moves.size() - 1));
  }

  // `is_body`: of a loop. Where nothing else is in it, a lone operation is a group too, so that the whole loop can be a
  // chain.
  Status emit(const ir::Region& region, bool is_body = false) {
    const std::vector<Unit> units = fusion_.units(region);
    const bool groups_only = is_body && std::all_of(units.begin(), units.end(), [&](const Unit& unit) {
                               return unit.fused || fusion_.can_be_group(unit);
                             });
    for (const Unit& unit : units) {
      if (unit.fused || groups_only) {
        FusedGroup group = fusion_.build(unit);
        if (unit.fused || group.builder.chain_shape()) {
          emit_fused(unit, std::move(group));
          continue;
        }
      }
      for (const ir::Node* node : unit.nodes) {
        Status status = emit(*node);
        if (!status.ok()) return status.place().empty() ? std::move(status).in(node_place(*node)) : std::move(status);
      }
    }
    return {};
  }

  void emit_fused(const Unit& unit, FusedGroup group) {
    std::vector<uint32_t> operands;
    for (const ir::Value* v : group.inputs) operands.push_back(slot(v));
    for (const ir::Value* v : group.outputs) operands.push_back(define(v, Storage::kArena));
    for (const auto& [alias, base] : group.aliases) slot_of_[alias] = slot(base);
    const uint32_t at = emit_code(OpCode::kKernel, unit.nodes.back());
    p_.fused[at] = {unit.nodes, group.inputs, group.outputs};
    operands_[at] = std::move(operands);
    count_work(group.builder.estimated_ns());
    groups_.emplace_back(at, std::move(group));
  }

  Status emit(const ir::Node& node) {
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
      return is_alias(node) ? emit_alias(node) : emit_kernel(node);
    }
    return emit_dynamic(node);
  }

  // All sizes are known, and all contents that preparation depends on.
  static bool is_planned(const ir::Node& node) {
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

  bool is_alias(const ir::Node& node) {
    if (node.op->alias_input < 0 || !node.outputs[0]) return false;
    const ir::Value* v = node.inputs[static_cast<size_t>(node.op->alias_input)];
    return v && !v->is_constant() && p_.slots[slot(v)].storage != Storage::kHandle;
  }

  Status emit_alias(const ir::Node& node) {
    slot_of_[node.outputs[0]] = slot(node.inputs[static_cast<size_t>(node.op->alias_input)]);
    return {};
  }

  // Gather of one index along the outermost axis, from memory that stays while the program runs.
  bool is_row(const ir::Node& node) {
    if (node.op->name != "Gather" || !node.op->domain.empty() || !node.outputs[0]) return false;
    const Shape& data = node.inputs[0]->type.shape;
    if (!element_count(node.inputs[1]->type.shape).is_known(1) ||
        p_.slots[slot(node.inputs[0])].storage == Storage::kHandle) {
      return false;
    }
    const int64_t axis = node.attributes.get_int("axis");
    const size_t first = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(data.size()) : axis);
    return std::all_of(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(first),
                       [](const Dim& d) { return d.is_known(1); });
  }

  // Its result is a pointer into the data.
  Status emit_row(const ir::Node& node) {
    const Type& data = node.inputs[0]->type;
    Row row;
    row.from = slot(node.inputs[0]);
    row.index = slot(node.inputs[1]);
    row.to = define(node.outputs[0], Storage::kPointer);
    row.wide = node.inputs[1]->type.element == ElementType::kInt64;
    row.bytes = bytes_of(node.outputs[0]->type);
    const int64_t axis = node.attributes.get_int("axis");
    row.count =
        data.shape[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(data.shape.size()) : axis)].value();
    p_.rows.push_back(row);
    const uint32_t at = emit_code(OpCode::kRow, &node, static_cast<uint32_t>(p_.rows.size() - 1));
    operands_[at] = {row.from, row.index, row.to};
    return {};
  }

  Status emit_kernel(const ir::Node& node) {
    std::vector<Operand> in, out;
    std::vector<uint32_t> operands;
    for (const ir::Value* v : node.inputs) {
      in.push_back(v ? operand_of(*v) : Operand());
      operands.push_back(slot(v));
    }
    for (const ir::Value* v : node.outputs) {
      out.push_back(v ? operand_of(*v) : Operand());
      operands.push_back(define(v, Storage::kArena));
    }
    PrepareContext context{node, in, out, p_.states, *p_.packs, {}, 0, nullptr, p_.threads};
    TREADLE_TRY(node.op->prepare(context));
    operands.push_back(new_scratch(context.scratch_bytes));
    const uint32_t at = emit_code(OpCode::kKernel, &node);
    p_.code[at].run = context.kernel.run;
    p_.code[at].state = context.kernel.state;
    operands_[at] = std::move(operands);
    size_t bytes = 0;
    for (const Operand& operand : in) bytes += operand.byte_size();
    for (const Operand& operand : out) bytes += operand.byte_size();
    count_work(std::max(context.cost_ns, static_cast<double>(bytes) * kByteNs));
    return {};
  }

  // After an instruction of about `ns` nanoseconds.
  void count_work(double ns) {
    work_ns_ += kInstructionNs + ns;
    unpolled_ns_ += kInstructionNs + ns;
    if (unpolled_ns_ < kPollUnitNs * kPollUnits) return;
    emit_code(OpCode::kPoll, nullptr);
    unpolled_ns_ = 0;
  }

  Status emit_dynamic(const ir::Node& node) {
    if (!node.op->prepare && !node.op->compute) {
      return error(Code::kNotImplemented, "operator {}-{} cannot be run on these types", node.op->name,
                   node.version->since);
    }
    DynamicNode dynamic;
    dynamic.node = &node;
    for (const ir::Value* v : node.inputs) dynamic.inputs.push_back(slot(v));
    for (const ir::Value* v : node.outputs) dynamic.outputs.push_back(define(v, Storage::kHandle));
    p_.dynamic.push_back(std::move(dynamic));
    emit_code(node.op->prepare ? OpCode::kGuarded : OpCode::kCompute, &node,
              static_cast<uint32_t>(p_.dynamic.size() - 1));
    count_work(kDynamicNs);
    return {};
  }

  // --- If

  Status emit_if(const ir::Node& node) {
    for (const ir::Value* v : node.outputs) define(v, v ? own_storage(v->type) : Storage::kNull);
    const uint32_t branch = emit_code(OpCode::kBranchUnless, &node);
    operands_[branch] = {slot(node.inputs[0])};
    TREADLE_TRY(emit_branch(node, *node.region("then_branch")));
    const uint32_t jump = emit_code(OpCode::kJump, &node);
    p_.code[branch].target = here();
    TREADLE_TRY(emit_branch(node, *node.region("else_branch")));
    p_.code[jump].target = here();
    return {};
  }

  Status emit_branch(const ir::Node& node, const ir::Region& branch) {
    TREADLE_TRY(emit(branch));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (!node.outputs[i]) continue;
      const uint32_t from = slot(branch.outputs[i]), to = slot(node.outputs[i]);
      if (p_.slots[to].storage == Storage::kHandle) {
        emit_move(from, to);
        note_type(branch.outputs[i], from);
      } else {
        emit_copy_to(from, to, p_.slots[to].bytes);
      }
    }
    return {};
  }

  // A planned value that is about to be wrapped as a handle needs its own sizes, which an alias's slot does not have.
  void note_type(const ir::Value* v, uint32_t from) {
    if (is_fixed(v->type)) p_.moves.back().first = typed_slot(v, from);
  }

  uint32_t typed_slot(const ir::Value* v, uint32_t s) {
    if (!is_fixed(v->type) || same_memory(p_.slots[s].type, v->type)) return s;
    // Same memory, other sizes: a copy under the right type, made just before the last instruction.
    const Instruction moved = p_.code.back();
    p_.code.pop_back();
    operands_.pop_back();
    const ir::Node* node = p_.node_of.back();
    p_.node_of.pop_back();
    const uint32_t copy = emit_copy(s, v->type);
    p_.code.push_back(moved);
    operands_.emplace_back();
    p_.node_of.push_back(node);
    return copy;
  }

  // --- Loop and Scan

  Status emit_loop(const ir::Node& node) {
    const ir::Region& body = *node.region("body");
    const auto index = static_cast<uint32_t>(p_.loops.size());
    p_.loops.emplace_back();
    Loop loop;
    loop.node = &node;
    size_t first_in = 0, first_out = 0, states = 0;
    std::vector<ScanAxis> in_axes, out_axes;
    if (node.op->control == Control::kLoop) {
      first_in = 2;
      first_out = 1;
      states = body.inputs.size() - 2;
      out_axes.resize(body.outputs.size() - 1 - states);
      begin_loop(node, body, loop);
    } else {
      TREADLE_ASSIGN(ScanAttributes scan, read_scan(node, node.inputs.size(), body.outputs.size()));
      loop.is_scan = true;
      loop.masked = scan.masked;
      states = scan.states;
      in_axes = scan.inputs;
      out_axes = scan.outputs;
    }
    for (size_t i = 0; i < states; ++i) {
      begin_state(loop, node.inputs[first_in + i], body.inputs[first_in + i], body.outputs[first_out + i]);
    }
    for (size_t i = 0; i < in_axes.size(); ++i) {
      begin_scan_input(loop, node.inputs[states + i], body.inputs[states + i], in_axes[i].reverse);
    }
    const uint32_t begin = emit_code(OpCode::kLoopBegin, &node, index);
    loop.first = begin;
    const double work_before = work_ns_;
    const uint32_t body_start = here();
    const auto first_slot = static_cast<uint32_t>(p_.slots.size());
    TREADLE_TRY(emit(body, true));

    std::unordered_set<uint32_t> taken;  // slots that one output owns already
    if (loop.go_on != kNoSlot) {
      TREADLE_TRY(check_condition(body.outputs[0]->type));
      loop.go_on = slot(body.outputs[0]);
    }
    for (size_t i = 0; i < states; ++i) {
      end_state(loop.states[i], body.outputs[first_out + i], first_slot, taken);
      const ir::Value* final = i < node.outputs.size() ? node.outputs[i] : nullptr;
      loop.states[i].final = define(final, final && loop.states[i].planned ? Storage::kArena : Storage::kHandle);
      if (loop.states[i].planned && final) {
        p_.slots[loop.states[i].final].type = p_.slots[loop.states[i].in].type;
        p_.slots[loop.states[i].final].bytes = loop.states[i].bytes;
      }
      if (loop.states[i].planned) loop.step.swaps.emplace_back(loop.states[i].in, loop.states[i].out);
    }
    for (size_t i = 0; i < out_axes.size(); ++i) {
      const size_t at = first_out + states + i;
      const ir::Value* whole = states + i < node.outputs.size() ? node.outputs[states + i] : nullptr;
      if (!whole || !body.outputs[at]) continue;
      end_scan_output(loop, body, at, whole, out_axes[i].reverse, first_slot, taken);
    }
    loop.simple = is_simple(loop);
    if (!is_scan(node) && !uses(body, body.inputs[0])) loop.counter = kNoSlot;
    emit_code(loop.simple ? OpCode::kLoopNextSimple : OpCode::kLoopNext, &node, index, body_start);
    p_.code[begin].target = here();
    emit_code(OpCode::kLoopEnd, &node, index);
    loop.last = here() - 1;
    loop.weight = std::clamp(static_cast<int64_t>((work_ns_ - work_before) / kPollUnitNs), int64_t{1}, kPollUnits);
    // Of nested loops the innermost, whose work is counted in full.
    loop.may_team = p_.threads > 1 && p_.loops.size() == index + 1 && work_ns_ - work_before >= 2 * kMinTeamNs;
    p_.loops[index] = std::move(loop);
    return {};
  }

  // Planned memory is read as what it is declared; handles are looked at in the run.
  static Status check_condition(const Type& type) {
    const Dim count = type.has_shape ? element_count(type.shape) : Dim();
    const bool fits = type.is_tensor() && type.element == ElementType::kBool;
    if (!type.is_known() || (fits && (!count.is_known() || count.value() == 1))) return {};
    return error(Code::kInvalidModel, "the body's condition is {}, expected one bool", type.to_string());
  }

  static bool is_scan(const ir::Node& node) { return node.op->control == Control::kScan; }

  static bool uses(const ir::Region& region, const ir::Value* v) {
    for (const auto& node : region.nodes) {
      if (std::find(node->inputs.begin(), node->inputs.end(), v) != node->inputs.end()) return true;
      for (const auto& inner : node->regions) {
        if (uses(*inner, v)) return true;
      }
    }
    return std::find(region.outputs.begin(), region.outputs.end(), v) != region.outputs.end();
  }

  void begin_loop(const ir::Node& node, const ir::Region& body, Loop& loop) {
    const ir::Value* m = node.inputs.empty() ? nullptr : node.inputs[0];
    const ir::Value* condition = node.inputs.size() > 1 ? node.inputs[1] : nullptr;
    loop.trip_count = slot(m);
    loop.condition = condition && is_true(condition) ? kNoSlot : slot(condition);
    loop.counter = define(body.inputs[0], Storage::kArena);
    p_.slots[loop.counter].bytes = sizeof(int64_t);
    if (!body.inputs[1]->is_constant()) {
      // A trip that runs has a true condition.
      Tensor yes = Tensor::scalar<bool>(ElementType::kBool, true);
      const uint32_t s = new_slot(Storage::kConstant, Type::tensor(ElementType::kBool, {}));
      p_.slots[s].constant = std::move(yes);
      slot_of_[body.inputs[1]] = s;
    }
    // With cond left out, the body's condition is not asked.
    if (condition && !is_true(body.outputs[0])) loop.go_on = kAsked;
  }

  static bool is_true(const ir::Value* v) {
    return v->is_constant() && v->constant.type() == ElementType::kBool && v->constant.element_count() == 1 &&
           *v->constant.data<bool>();
  }

  void begin_state(Loop& loop, const ir::Value* initial, const ir::Value* in, const ir::Value* out) {
    LoopState state;
    state.initial = slot(initial);
    state.planned = same_memory(in->type, out->type) && same_memory(in->type, initial->type);
    state.shape_is_fixed = loop.is_scan;
    if (!state.planned && is_fixed(initial->type)) state.initial = typed_copy(initial, state.initial);
    state.in = define(in, state.planned ? Storage::kArena : Storage::kHandle);
    fresh_[state.in] = false;
    if (state.planned) state.bytes = p_.slots[state.in].bytes;
    loop.states.push_back(state);
  }

  // `s`, or a copy where it holds the memory of `v` under other sizes.
  uint32_t typed_copy(const ir::Value* v, uint32_t s) {
    return p_.slots[s].storage == Storage::kHandle || same_memory(p_.slots[s].type, v->type) ? s
                                                                                             : emit_copy(s, v->type);
  }

  void begin_scan_input(Loop& loop, const ir::Value* whole, const ir::Value* element, bool reverse) {
    ScanInput scan;
    scan.whole = slot(whole);
    scan.planned = is_fixed(element->type);
    if (!scan.planned && is_fixed(whole->type)) scan.whole = typed_copy(whole, scan.whole);
    scan.reverse = reverse;
    scan.element = define(element, scan.planned ? Storage::kPointer : Storage::kHandle);
    scan.element_type = element->type;
    if (scan.planned) scan.element_bytes = bytes_of(element->type);
    if (scan.planned) advance(loop, scan.element, scan.element_bytes, reverse);
    if (whole->type.has_shape && !whole->type.shape.empty() && whole->type.shape[0].is_known()) {
      loop.known_trips = whole->type.shape[0].value();
    }
    loop.scan_inputs.push_back(scan);
  }

  static void advance(Loop& loop, uint32_t s, size_t bytes, bool reverse) {
    const auto stride = static_cast<int64_t>(bytes);
    loop.step.advances.push_back({s, reverse ? -stride : stride});
  }

  // Memory that the body wrote in this trip, for this value alone.
  bool is_own(uint32_t s, uint32_t first_slot, const std::unordered_set<uint32_t>& taken) const {
    return s >= first_slot && fresh_[s] && p_.slots[s].storage == Storage::kArena && !taken.contains(s);
  }

  void end_state(LoopState& state, const ir::Value* out, uint32_t first_slot, std::unordered_set<uint32_t>& taken) {
    uint32_t s = slot(out);
    if (state.planned) {
      if (!is_own(s, first_slot, taken)) s = emit_copy(s, out->type);
      taken.insert(s);
      fresh_[s] = false;
    } else if (is_fixed(out->type)) {
      s = typed_copy(out, s);
    }
    state.made_by_trip = s >= first_slot;
    state.out = s;
  }

  void end_scan_output(Loop& loop, const ir::Region& body, size_t at, const ir::Value* whole, bool reverse,
                       uint32_t first_slot, std::unordered_set<uint32_t>& taken) {
    const ir::Value* element = body.outputs[at];
    ScanOutput scan;
    scan.element = slot(element);
    scan.reverse = reverse;
    scan.element_type = element->type;
    scan.element_planned = is_fixed(element->type) && p_.slots[scan.element].storage != Storage::kHandle;
    if (scan.element_planned) scan.element_bytes = bytes_of(element->type);
    scan.whole_planned =
        scan.element_planned && is_fixed(whole->type) && loop.go_on == kNoSlot && loop.condition == kNoSlot;
    scan.whole = define(whole, scan.whole_planned ? Storage::kArena : Storage::kHandle);
    // Rows that follow each other in known steps are written in place or copied by the step of the back edge.
    const bool rows = scan.whole_planned || (scan.element_planned && !scan.reverse);
    if (rows && is_own(scan.element, first_slot, taken)) {
      scan.row = scan.element;
      taken.insert(scan.element);
      fresh_[scan.element] = false;
      p_.slots[scan.element].storage = Storage::kPointer;
    } else if (rows) {
      scan.row = new_slot(Storage::kPointer, {});
      loop.step.rows.push_back({scan.row, scan.element, scan.element_bytes});
    }
    if (rows) advance(loop, scan.row, scan.element_bytes, reverse);
    loop.grows |= rows && !scan.whole_planned;
    if (at < body.output_types.size()) scan.empty = body.output_types[at];
    loop.scan_outputs.push_back(scan);
  }

  // --- Fused groups, once it is known where their operands are

  void finish_groups() {
    find_padded();
    for (auto& [at, group] : groups_) {
      if (!finish_chain(at, group)) finish_tiles(at, group);
    }
    // The two pieces of memory of a state take turns.
    for (const Loop& loop : p_.loops) {
      for (const LoopState& state : loop.states) {
        if (!state.planned) continue;
        size_t& in = p_.slots[state.in].bytes;
        size_t& out = p_.slots[state.out].bytes;
        in = out = std::max(in, out);
      }
    }
  }

  // Planned memory that may be made longer, so that chains write and read whole vectors there: what they make, and loop
  // states, whose memory is cleared behind the state. Elsewhere, what is not an element could be anything.
  void find_padded() {
    padded_.resize(p_.slots.size());
    auto pad = [&](uint32_t s) { padded_[s] = p_.slots[s].storage == Storage::kArena; };
    for (const Loop& loop : p_.loops) {
      for (const LoopState& state : loop.states) {
        if (!state.planned) continue;
        late_.insert(state.in);
        pad(state.in);
      }
    }
    for (const auto& [at, group] : groups_) {
      if (!group.builder.chain_shape()) continue;
      for (size_t i = 0; i < group.outputs.size(); ++i) pad(operands_[at][group.inputs.size() + i]);
    }
  }

  bool finish_chain(uint32_t at, const FusedGroup& group) {
    std::vector<kernels::FusedBuilder::Bound> bound;
    std::vector<const ir::Value*> values = group.inputs;
    values.insert(values.end(), group.outputs.begin(), group.outputs.end());
    for (size_t i = 0; i < values.size(); ++i) {
      const uint32_t s = operands_[at][i];
      bound.push_back({values[i]->is_constant() ? values[i]->constant.raw() : nullptr, padded_[s], late_.contains(s)});
    }
    std::optional<kernels::FusedChain> made = group.builder.chain(bound);
    if (!made) return false;
    for (size_t i = 0; i < values.size(); ++i) {
      size_t& bytes = p_.slots[operands_[at][i]].bytes;
      if (bound[i].padded) bytes = std::max(bytes, made->padded_bytes(values[i]->type.element));
    }
    for (const auto& extra : made->extras) operands_[at].push_back(new_extra(extra));
    for (kernels::ChainStep& step : made->steps) {
      for (uint32_t& place : step.in) place = operands_[at][place];
      step.out = operands_[at][step.out];
    }
    const auto* chain = p_.states.make<kernels::FusedChain>(std::move(*made));
    p_.code[at].run = chain->run;
    p_.code[at].state = chain->steps.data();
    return true;
  }

  uint32_t new_extra(const kernels::FusedChain::Extra& extra) {
    if (extra.contents.empty()) return new_scratch(extra.bytes);
    const uint32_t s = new_slot(Storage::kConstant, {});
    Tensor contents = *Tensor::allocate(ElementType::kUint8, {static_cast<int64_t>(extra.contents.size())});
    std::memcpy(contents.mutable_raw(), extra.contents.data(), extra.contents.size());
    p_.slots[s].constant = std::move(contents);
    return s;
  }

  void finish_tiles(uint32_t at, FusedGroup& group) {
    const auto* plan = p_.states.make<kernels::FusedPlan>(group.builder.finish());
    operands_[at].push_back(
        new_scratch(plan->scratch_bytes() * scratch_parts(plan->tile_count(), plan->tile_ns(), p_.threads)));
    p_.code[at].run = run_fused;
    p_.code[at].state = plan;
  }

  bool is_simple(const Loop& loop) const {
    return std::all_of(loop.states.begin(), loop.states.end(), [](const LoopState& s) { return s.planned; }) &&
           std::all_of(loop.scan_inputs.begin(), loop.scan_inputs.end(),
                       [](const ScanInput& s) { return s.planned; }) &&
           std::all_of(loop.scan_outputs.begin(), loop.scan_outputs.end(),
                       [](const ScanOutput& s) { return s.row != kNoSlot; }) &&
           (loop.go_on == kNoSlot || p_.slots[loop.go_on].storage != Storage::kHandle);
  }

  // Operand lists go into one pool, whose address is fixed once it is complete.
  void bind_operands() {
    size_t total = 0;
    for (const auto& list : operands_) total += list.size();
    p_.operand_pool.reserve(total);
    for (size_t at = 0; at < p_.code.size(); ++at) {
      p_.code[at].operands = p_.operand_pool.data() + p_.operand_pool.size();
      if (p_.code[at].code == OpCode::kKernel) p_.code[at].index = static_cast<uint32_t>(operands_[at].size());
      p_.operand_pool.insert(p_.operand_pool.end(), operands_[at].begin(), operands_[at].end());
    }
  }

  static constexpr uint32_t kAsked = UINT32_MAX;
  // Estimates of what takes how long.
  static constexpr double kInstructionNs = 4;
  static constexpr double kDynamicNs = 200;
  static constexpr double kByteNs = 0.03;

  Program& p_;
  double work_ns_ = 0;      // of all instructions so far
  double unpolled_ns_ = 0;  // of those since the last kPoll
  Fusion fusion_;
  std::unordered_map<const ir::Value*, uint32_t> slot_of_;
  std::vector<std::vector<uint32_t>> operands_;          // per instruction, until bound
  std::vector<std::pair<uint32_t, FusedGroup>> groups_;  // by instruction
  std::vector<bool> padded_;                             // per slot
  std::unordered_set<uint32_t> late_;                    // slots of what the trip before made
  std::vector<bool>
      fresh_;  // per slot: planned memory that only its own value uses, so that an output may take it over
};

}  // namespace

Result<std::shared_ptr<const Program>> make_program(std::unique_ptr<ir::Graph>& graph, PackCache& packs, bool optimize,
                                                    int threads) {
  auto program = std::make_shared<Program>();
  program->graph = std::move(graph);
  program->packs = &packs;
  program->threads = threads;
  Status status = Planner(*program, optimize).run();
  if (!status.ok()) {
    graph = std::move(program->graph);
    return status;
  }
  return std::shared_ptr<const Program>(std::move(program));
}

}  // namespace treadle::plan
