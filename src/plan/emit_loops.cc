// Loop and Scan.

#include <algorithm>

#include "op/loop_view.h"
#include "op/parallel.h"
#include "plan/planner.h"

namespace treadle::plan {

Status Planner::emit_loop(const ir::Node& node) {
  const auto index = static_cast<uint32_t>(p_.loops.size());
  p_.loops.emplace_back();
  TREADLE_ASSIGN(const LoopView view, LoopView::read(node));
  const ir::Region& body = view.body();
  Loop loop;
  loop.node = &node;
  loop.is_scan = view.is_scan();
  loop.masked = view.masked();
  if (!loop.is_scan) begin_loop(view, loop);
  for (size_t i = 0; i < view.states(); ++i) {
    const LoopView::State state = view.state(i);
    begin_state(loop, state.initial, state.before, state.after);
  }
  for (size_t i = 0; i < view.scan_inputs(); ++i) {
    const LoopView::ScanInput scan = view.scan_input(i);
    begin_scan_input(loop, scan.whole, scan.element, scan.reverse);
  }
  const uint32_t begin = emit_code(OpCode::kLoopBegin, &node, index);
  loop.first = begin;
  const double work_before = work_ns_;
  const uint32_t body_start = here();
  const auto first_slot = static_cast<uint32_t>(p_.slots.size());
  const bool in_loop = std::exchange(in_loop_, true);
  TREADLE_TRY(emit(body, true));
  in_loop_ = in_loop;
  end_parts(loop, view, first_slot);

  loop.step.simple = is_simple(loop);
  loop.step.straight =
      loop.step.simple && std::all_of(p_.code.begin() + body_start, p_.code.end(), [](const Instruction& in) {
        return in.code == OpCode::kKernel || in.code == OpCode::kCopy;
      });
  if (!loop.is_scan && !uses(body, view.counter())) loop.counter = kNoSlot;
  emit_code(loop.step.simple ? OpCode::kLoopNextSimple : OpCode::kLoopNext, &node, index, body_start);
  p_.code[begin].target = here();
  emit_code(OpCode::kLoopEnd, &node, index);
  loop.last = here() - 1;
  const double work = work_ns_ - work_before;
  loop.schedule.work_ns = work;
  loop.schedule.weight = std::clamp(static_cast<int64_t>(work / kPollUnitNs), int64_t{1}, kPollUnits);
  loop.schedule.holds_loops = p_.loops.size() > index + 1;
  // Only the innermost of nested loops may use a team, because its work is counted in full.
  loop.schedule.may_team = p_.threads > 1 && !loop.schedule.holds_loops && work >= 2 * kMinTeamNs;
  p_.loops[index] = std::move(loop);
  return {};
}

void Planner::end_parts(Loop& loop, const LoopView& view, uint32_t first_slot) {
  std::unordered_set<uint32_t> taken;  // slots that one output already owns
  if (loop.continues != kNoSlot) loop.continues = slot(view.condition_after());
  for (size_t i = 0; i < view.states(); ++i) {
    LoopState& state = loop.states[i];
    end_state(state, view.state(i).after, first_slot, taken);
    const ir::Value* final = view.state(i).final;
    state.final = define(final, final && state.planned ? Storage::kArena : Storage::kHandle);
    if (state.planned && final) {
      p_.slots[state.final].type = p_.slots[state.in].type;
      p_.slots[state.final].bytes = state.bytes;
    }
    if (state.planned) loop.step.swaps.push_back({state.in, state.out, state.bytes});
  }
  for (size_t i = 0; i < view.scan_outputs(); ++i) {
    if (view.scan_output(i).wanted()) end_scan_output(loop, view, i, first_slot, taken);
  }
}

bool Planner::uses(const ir::Region& region, const ir::Value* v) {
  for (const auto& node : region.nodes) {
    if (std::find(node->inputs.begin(), node->inputs.end(), v) != node->inputs.end()) return true;
    for (const auto& inner : node->regions) {
      if (uses(*inner, v)) return true;
    }
  }
  return std::find(region.outputs.begin(), region.outputs.end(), v) != region.outputs.end();
}

void Planner::begin_loop(const LoopView& view, Loop& loop) {
  const ir::Value* condition = view.condition();
  loop.trip_count = slot(view.trip_count());
  loop.condition = condition && is_true(condition) ? kNoSlot : slot(condition);
  loop.counter = define(view.counter(), Storage::kArena);
  p_.slots[loop.counter].bytes = sizeof(int64_t);
  if (!view.condition_before()->is_constant()) {
    // The condition is true in every iteration that runs.
    Tensor yes = Tensor::scalar<bool>(ElementType::kBool, true);
    const uint32_t s = new_slot(Storage::kConstant, Type::tensor(ElementType::kBool, {}));
    p_.slots[s].constant = std::move(yes);
    slot_of_.put(view.condition_before(), s);
  }
  // Without cond, the body's condition is ignored.
  if (condition && !is_true(view.condition_after())) loop.continues = kAsked;
}

bool Planner::is_true(const ir::Value* v) {
  return v->is_constant() && v->constant.type() == ElementType::kBool && v->constant.element_count() == 1 &&
         *v->constant.data<bool>();
}

void Planner::begin_state(Loop& loop, const ir::Value* initial, const ir::Value* in, const ir::Value* out) {
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

uint32_t Planner::typed_copy(const ir::Value* v, uint32_t s) {
  return p_.slots[s].storage == Storage::kHandle || same_memory(p_.slots[s].type, v->type) ? s : emit_copy(s, v->type);
}

void Planner::begin_scan_input(Loop& loop, const ir::Value* whole, const ir::Value* element, bool reverse) {
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
    loop.known_iterations = whole->type.shape[0].value();
  }
  loop.scan_inputs.push_back(scan);
}

void Planner::advance(Loop& loop, uint32_t s, size_t bytes, bool reverse) {
  const auto stride = static_cast<int64_t>(bytes);
  loop.step.advances.push_back({s, reverse ? -stride : stride});
}

bool Planner::is_own(uint32_t s, uint32_t first_slot, const std::unordered_set<uint32_t>& taken) const {
  return s >= first_slot && fresh_[s] && p_.slots[s].storage == Storage::kArena && !taken.contains(s);
}

void Planner::end_state(LoopState& state, const ir::Value* out, uint32_t first_slot,
                        std::unordered_set<uint32_t>& taken) {
  uint32_t s = slot(out);
  if (state.planned) {
    if (!is_own(s, first_slot, taken)) s = emit_copy(s, out->type);
    taken.insert(s);
    fresh_[s] = false;
  } else if (is_fixed(out->type)) {
    s = typed_copy(out, s);
  }
  state.made_by_iteration = s >= first_slot;
  state.out = s;
}

void Planner::end_scan_output(Loop& loop, const LoopView& view, size_t i, uint32_t first_slot,
                              std::unordered_set<uint32_t>& taken) {
  const auto [element, whole, axis, reverse] = view.scan_output(i);
  ScanOutput scan;
  scan.element = slot(element);
  scan.reverse = reverse;
  scan.element_type = element->type;
  scan.element_planned = is_fixed(element->type) && p_.slots[scan.element].storage != Storage::kHandle;
  if (scan.element_planned) scan.element_bytes = bytes_of(element->type);
  scan.whole_planned =
      scan.element_planned && is_fixed(whole->type) && loop.continues == kNoSlot && loop.condition == kNoSlot;
  scan.whole = define(whole, scan.whole_planned ? Storage::kArena : Storage::kHandle);
  // If the addresses of rows follow in known steps, the body writes them in place, or the back edge copies them.
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
  loop.step.grows |= rows && !scan.whole_planned;
  if (const Type* type = view.row_type(i)) scan.empty = type->is_known() ? *type : element->type;
  loop.scan_outputs.push_back(scan);
}

bool Planner::is_simple(const Loop& loop) const {
  return std::all_of(loop.states.begin(), loop.states.end(), [](const LoopState& s) { return s.planned; }) &&
         std::all_of(loop.scan_inputs.begin(), loop.scan_inputs.end(), [](const ScanInput& s) { return s.planned; }) &&
         std::all_of(loop.scan_outputs.begin(), loop.scan_outputs.end(),
                     [](const ScanOutput& s) { return s.row != kNoSlot; }) &&
         (loop.continues == kNoSlot || p_.slots[loop.continues].storage != Storage::kHandle);
}

}  // namespace treadle::plan
