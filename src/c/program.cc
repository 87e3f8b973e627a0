// Control flow and memory.

#include <algorithm>

#include "c/writer.h"
#include "op/place.h"
#include "opt/uses.h"

namespace treadle::c {

using plan::kNoSlot;
using plan::OpCode;
using plan::Storage;

Writer::Writer(File& file, const plan::Program& program, bool in_structures)
    : p_(program), file_(file), in_structures_(in_structures) {
  text_.set_depth(1);
}

// --- memory ----------------------------------------------------------------------------------------------------------

void Writer::find_names(const std::vector<std::string>& output_names) {
  places_.resize(p_.slots.size());
  const auto& top = p_.graph->top();
  std::vector<std::string> inputs, outputs;
  for (const ir::Value* v : top.inputs) inputs.emplace_back(v->name);
  for (const ir::Value* v : top.outputs) outputs.emplace_back(v->name);
  if (output_names.size() == outputs.size()) outputs = output_names;
  const std::vector<std::string> input_members = member_names(inputs), output_members = member_names(outputs);
  for (size_t i = 0; i < inputs.size(); ++i) body_.inputs.push_back({inputs[i], input_members[i], p_.inputs[i].type});
  for (size_t i = 0; i < outputs.size(); ++i) {
    body_.outputs.push_back({outputs[i], output_members[i], p_.outputs[i].type});
  }
}

Writer::Place& Writer::place(uint32_t s) {
  Place& place = places_[s];
  if (place.name.empty()) {
    const plan::Slot& slot = p_.slots[s];
    std::string name = slot.value ? std::string(slot.value->name) : "v";
    // The part behind the last slash says most.
    if (const size_t slash = name.find_last_of('/'); slash != std::string::npos && slash + 1 < name.size()) {
      name.erase(0, slash + 1);
    }
    if (slot.storage == Storage::kInput) name = body_.inputs[slot.index].name;
    if (slot.storage == Storage::kOutput) name = body_.outputs[slot.index].name;
    place.name = file_.names().add(name);
  }
  return place;
}

ElementType Writer::element(uint32_t s) const {
  const ElementType type = p_.slots[s].type.element;
  return is_held(type) ? type : ElementType::kUint8;
}

std::string Writer::pointer(uint32_t s, ElementType type, bool is_const) {
  const plan::Slot& slot = p_.slots[s];
  const auto cast = [&](const std::string& x) {
    return fmt::format("(({}{} *)(void *){})", is_const ? "const " : "", stored(type), x);
  };
  if (slot.storage == Storage::kConstant) {
    const void* elements = slot.constant.raw();
    const auto count = static_cast<size_t>(slot.constant.element_count());
    if (count == 0) return fmt::format("((const {} *)0)", stored(type));
    const std::string name = slot.value ? std::string(slot.value->name) : "constant";
    std::string known = file_.constant(name, slot.constant.type(), elements, count);
    if (slot.constant.type() == type) return known;
    return fmt::format("((const {} *)(const void *){})", stored(type), known);
  }
  Place& at = place(s);
  at.is_used = true;
  if (element(s) == type) return at.name;
  return slot.storage == Storage::kInput ? fmt::format("((const {} *)(const void *){})", stored(type), at.name)
                                         : cast(at.name);
}

std::string Writer::reads(uint32_t s, ElementType type) {
  return pointer(s, type, true);
}
std::string Writer::writes(uint32_t s, ElementType type) {
  return pointer(s, type, false);
}

const Tensor* Writer::constant(uint32_t s) const {
  return p_.slots[s].storage == Storage::kConstant ? &p_.slots[s].constant : nullptr;
}

std::string Writer::scratch(size_t bytes) {
  const size_t at = instruction_scratch_;
  instruction_scratch_ += aligned(bytes);
  scratch_bytes_ = std::max(scratch_bytes_, instruction_scratch_);
  return fmt::format("(memory + {})", p_.arena_bytes + at);
}

std::string Writer::error_of_instruction() {
  instruction_fails_ = body_.may_fail = true;
  return "error";
}

std::string Writer::converted(ElementType from, ElementType to, const std::string& x,
                              const kernels::CastOptions& options) {
  return functions().converted(from, to, x, options);
}

std::string Writer::copy(const std::string& to, const std::string& from, size_t bytes) const {
  return fmt::format("memcpy({}, {}, {});", to, from, bytes);
}

// The pointers at the head of the function.
std::string Writer::declarations() {
  Text text;
  text.set_depth(1);
  for (uint32_t s = 0; s < p_.slots.size(); ++s) {
    const Place& at = places_[s];
    if (!at.is_used || at.is_local) continue;
    const plan::Slot& slot = p_.slots[s];
    const std::string_view t = stored(element(s));
    switch (slot.storage) {
      case Storage::kInput:
        if (in_structures_) text.line("const {} *const {} = inputs->{};", t, at.name, body_.inputs[slot.index].name);
        break;
      case Storage::kOutput:
        if (in_structures_) text.line("{} *const {} = outputs->{};", t, at.name, body_.outputs[slot.index].name);
        break;
      case Storage::kArena:
        text.line("{} *const {} = ({} *)(void *)(memory + {});", t, at.name, t, slot.offset);
        break;
      default:
        break;
    }
  }
  return text.str();
}

// --- control flow ----------------------------------------------------------------------------------------------------

void Writer::refuse(uint32_t pc, std::string reason) {
  const ir::Node* node = p_.node_of[pc];
  std::string name = node ? node_place(*node) : std::string("a copy between values");
  body_.refusals.push_back({std::move(name), std::move(reason)});
}

void Writer::comment(uint32_t pc) {
  std::string names;
  for (const ir::Node* node : plan::nodes_of(p_, pc)) {
    names += (names.empty() ? "" : ", ") + node_place(*node);
  }
  if (names.empty()) return;
  constexpr size_t kLongest = 400;
  if (names.size() > kLongest) names = names.substr(0, kLongest) + " ...";
  text_.line("/* {} */", in_comment(names));
}

void Writer::write_range(uint32_t begin, uint32_t end) {
  for (uint32_t pc = begin; pc < end;) {
    pc_ = pc;
    const plan::Instruction& in = p_.code[pc];
    instruction_scratch_ = 0;
    if (in.code == OpCode::kBranchUnless) {
      pc = write_branch(pc);
    } else if (in.code == OpCode::kLoopBegin) {
      pc = write_loop(pc);
    } else {
      write_instruction(pc++);
    }
  }
}

void Writer::write_instruction(uint32_t pc) {
  const plan::Instruction& in = p_.code[pc];
  switch (in.code) {
    case OpCode::kKernel:
      write_kernel(pc);
      break;
    case OpCode::kCopy: {
      const plan::Copy& copied = p_.copies[in.index];
      if (copied.bytes == 0) break;
      const ElementType type = element(copied.to);
      text_.line("{}", copy(writes(copied.to, type), reads(copied.from, element(copied.from)), copied.bytes));
      break;
    }
    case OpCode::kRow:
      comment(pc);
      write_row(p_.rows[in.index]);
      break;
    case OpCode::kGuarded:
    case OpCode::kCompute:
    case OpCode::kMove:
      refuse(pc, "the sizes of its result are known only when it runs");
      break;
    default:
      break;
  }
}

// Whether none of its results has an element.
bool Writer::is_empty(const plan::KernelCall& call) const {
  bool any = false;
  for (const uint32_t s : std::span(call.operands).subspan(call.inputs, call.outputs)) {
    if (s == kNoSlot) continue;
    const Type& type = p_.slots[s].type;
    any = true;
    if (p_.slots[s].storage == Storage::kHandle || !type.is_concrete() || known_element_count(type.shape) > 0) {
      return false;
    }
  }
  return any;
}

void Writer::write_kernel(uint32_t pc) {
  const plan::KernelCall& call = *plan::kernel_of(p_, pc);
  for (const uint32_t s : call.operands) {
    const Type& type = p_.slots[s].type;
    if (type.is_known() && !is_held(type.element)) {
      return refuse(pc, fmt::format("C has no elements of type {}", name(type.element)));
    }
  }
  if (is_empty(call)) return;
  comment(pc);
  std::string why;
  instruction_fails_ = false;
  const auto* elementwise = plan::elementwise_code(p_, pc);
  const auto* other = plan::other_code(p_, pc);
  if (elementwise) {
    c::write_elementwise(*this, *elementwise, why);
  } else if (other) {
    write_other(*other, why);
  } else if (const OperatorFn write = operator_writer(*p_.node_of[pc]); write && call.group.empty()) {
    write({*this, *p_.node_of[pc], call}, why);
  } else {
    why = "its code is not written in C yet";
  }
  if (!why.empty()) return refuse(pc, std::move(why));
  if (instruction_fails_) text_.line("if (error != 0) return error;");
}

void Writer::write_other(const plan::InstructionCode& code, std::string& why) {
  struct Visitor {
    Writer& w;
    std::string& why;
    void operator()(const plan::MoveCode& of) { write_moves(w, of, why); }
    void operator()(const plan::ReductionCode& of) { write_reduction(w, of, why); }
    void operator()(const plan::ArgReductionCode& of) { write_extremes(w, of, why); }
    void operator()(const plan::ProductCode& of) { write_product(w, of, why); }
    void operator()(const plan::GatherCode& of) { write_gather(w, of, why); }
  };
  std::visit(Visitor{*this, why}, code);
}

uint32_t Writer::write_branch(uint32_t pc) {
  const plan::Instruction& in = p_.code[pc];
  const uint32_t jump = in.target - 1, end = p_.code[jump].target;
  if (p_.slots[in.index].storage == Storage::kHandle) {
    refuse(pc, "the sizes of its condition are known only when it runs");
    return end;
  }
  comment(pc);
  text_.open("if ({}[0])", reads(in.index, ElementType::kBool));
  write_range(pc + 1, jump);
  text_.otherwise();
  write_range(in.target, end);
  text_.close();
  return end;
}

void Writer::write_row(const plan::Row& row) {
  const ElementType index = row.wide ? ElementType::kInt64 : ElementType::kInt32;
  const ElementType type = element(row.to);
  const size_t count = row.bytes / byte_width(type);
  const std::string at = file_.names().add("at");
  text_.line("int64_t {} = {}[0];", at, reads(row.index, index));
  text_.line("if ({} < 0) {} += {};", at, at, row.count);
  text_.line("if ({0} < 0 || {0} >= {1}) return {2};", at, row.count, error("INDEX_OUT_OF_RANGE"));
  Place& to = place(row.to);
  to.is_local = true;
  text_.line("const {} *const {} = {} + (ptrdiff_t){} * {};", stored(type), to.name, reads(row.from, type), at, count);
  text_.line("(void){};", to.name);
}

uint32_t Writer::write_loop(uint32_t pc) {
  const plan::Loop& loop = p_.loops[p_.code[pc].index];
  const uint32_t next = loop.last - 1, after = loop.last + 1;
  const auto is_handle = [&](uint32_t s) { return p_.slots[s].storage == Storage::kHandle; };
  std::string why;
  for (const auto& state : loop.states) {
    if (!state.planned) why = "a state changes its sizes from iteration to iteration";
  }
  for (const auto& scan : loop.scan_inputs) {
    if (!scan.planned || is_handle(scan.whole)) why = "the sizes of a scan input are known only when it runs";
  }
  for (const auto& scan : loop.scan_outputs) {
    if (!scan.whole_planned) why = "the number of rows that it collects is known only when it runs";
  }
  for (const uint32_t s : {loop.trip_count, loop.condition, loop.continues}) {
    if (is_handle(s)) why = "the sizes of its condition or count are known only when it runs";
  }
  if (!why.empty()) {
    refuse(pc, why);
    write_range(pc + 1, next);  // for further reasons
    return after;
  }
  comment(pc);
  const std::string n = file_.names().add("trips"), at = file_.names().add("trip");
  text_.open("");
  // How many iterations.
  const int64_t known = plan::planned_iterations(p_, loop);
  if (loop.masked) {
    // Up to the last row of the mask that is not all false.
    const auto& mask = loop.scan_inputs[0];
    const int64_t length = loop.known_iterations, width = static_cast<int64_t>(mask.element_bytes);
    text_.line("ptrdiff_t {} = {};", n, length);
    text_.line("while ({0} > 1 && memchr({1} + ({0} - 1) * {2}, 1, {2}) == NULL) --{0};", n,
               reads(mask.whole, ElementType::kBool), width);
  } else if (known >= 0) {
    text_.line("const ptrdiff_t {} = {};", n, known);
  } else {
    text_.line("ptrdiff_t {} = PTRDIFF_MAX;", n);
    if (loop.trip_count != kNoSlot) {
      const std::string m = reads(loop.trip_count, ElementType::kInt64);
      text_.line("if ({0}[0] < {1}) {1} = {0}[0] < 0 ? 0 : (ptrdiff_t){0}[0];", m, n);
    }
    if (loop.condition != kNoSlot) text_.line("if (!{}[0]) {} = 0;", reads(loop.condition, ElementType::kBool), n);
  }
  // States, each in two pieces of memory that change places.
  for (const auto& state : loop.states) {
    const ElementType type = element(state.in);
    const std::string from = reads(state.initial, element(state.initial));
    for (const uint32_t s : {state.in, state.out}) {
      Place& here = place(s);
      here.is_local = true;
      text_.line("{0} *{1} = ({0} *)(void *)(memory + {2});", stored(element(s)), here.name, p_.slots[s].offset);
    }
    if (state.bytes > 0) text_.line("{}", copy(writes(state.in, type), from, state.bytes));
  }
  for (const auto& scan : loop.scan_outputs) {
    if (!loop.masked || scan.element_bytes == 0) continue;
    text_.line("if ({0} < {1}) memset((unsigned char *){2} + {0} * {3}, 0, (size_t)({1} - {0}) * {3});", n,
               loop.known_iterations, writes(scan.whole, element(scan.whole)), scan.element_bytes);
  }
  text_.open("for (ptrdiff_t {0} = 0; {0} < {1}; ++{0})", at, n);
  const auto row_at = [&](bool reverse, int64_t count) {
    const std::string row = reverse ? fmt::format("({} - 1 - {})", n, at) : at;
    return count == 1 ? row : fmt::format("{} * {}", row, count);
  };
  for (const auto& scan : loop.scan_inputs) {
    Place& here = place(scan.element);
    here.is_local = true;
    const ElementType type = element(scan.element);
    text_.line("const {} *const {} = {} + {};", stored(type), here.name, reads(scan.whole, type),
               row_at(scan.reverse, known_element_count(scan.element_type.shape)));
    text_.line("(void){};", here.name);
  }
  for (const auto& scan : loop.scan_outputs) {
    Place& here = place(scan.row);
    here.is_local = true;
    const ElementType type = element(scan.row);
    const auto count = static_cast<int64_t>(scan.element_bytes / byte_width(type));
    text_.line("{} *const {} = {} + {};", stored(type), here.name, writes(scan.whole, type),
               row_at(scan.reverse, count));
  }
  if (loop.counter != kNoSlot) text_.line("*{} = {};", writes(loop.counter, ElementType::kInt64), at);
  write_range(pc + 1, next);
  // The back edge, in the order of plan/back_edge.h.
  std::string go;
  if (loop.continues != kNoSlot) {
    go = file_.names().add("goes_on");
    text_.line("const int {} = {}[0];", go, reads(loop.continues, ElementType::kBool));
  }
  for (const auto& row : loop.step.rows) {
    if (row.bytes == 0) continue;
    text_.line("{}", copy(place(row.to).name, reads(row.from, element(row.from)), row.bytes));
  }
  for (const auto& swap : loop.step.swaps) {
    const std::string in = place(swap.in).name, out = place(swap.out).name;
    const std::string kept = file_.names().add("kept");
    text_.line("{} *const {} = {};", stored(element(swap.in)), kept, in);
    text_.line("{} = {};", in, out);
    text_.line("{} = {};", out, kept);
  }
  if (!go.empty()) text_.line("if (!{}) break;", go);
  text_.close();
  for (const auto& state : loop.states) {
    if (state.final == kNoSlot || state.bytes == 0) continue;
    text_.line("{}", copy(writes(state.final, element(state.final)), place(state.in).name, state.bytes));
  }
  text_.close();
  return after;
}

// --- the body --------------------------------------------------------------------------------------------------------

Result<Body> Writer::write(const std::vector<std::string>& output_names) {
  find_names(output_names);
  write_range(0, static_cast<uint32_t>(p_.code.size()));
  // An input that nothing reads may be of any type.
  const opt::ValueSet read = opt::values_read(p_.graph->top());
  for (size_t i = 0; i < p_.inputs.size(); ++i) {
    const plan::Input& input = p_.inputs[i];
    if (input.slot == kNoSlot || !read.contains(p_.graph->top().inputs[i])) continue;
    if (p_.slots[input.slot].storage == Storage::kHandle || !is_held(input.type.element)) {
      return treadle::error(Code::kNotImplemented,
                            "input '{}' is {}; C needs a tensor of numbers whose sizes are known", body_.inputs[i].own,
                            input.type.to_string());
    }
  }
  for (const plan::Output& output : p_.outputs) {
    if (!output.direct || !is_held(output.type.element)) {
      body_.refusals.push_back({"an output", fmt::format("it is {}", output.type.to_string())});
    }
  }
  body_.declarations = declarations();
  body_.text = text_.str();
  body_.scratch_bytes = p_.arena_bytes + scratch_bytes_;
  // What a caller has to pass: inputs and outputs that the body names.
  for (size_t i = 0; i < body_.inputs.size(); ++i) {
    const uint32_t s = p_.inputs[i].slot;
    if (s == kNoSlot) continue;
    body_.inputs[i].is_used = places_[s].is_used;
    if (!in_structures_ && places_[s].is_used) body_.inputs[i].name = places_[s].name;
  }
  for (uint32_t s = 0; s < p_.slots.size(); ++s) {
    if (p_.slots[s].storage != Storage::kOutput || !places_[s].is_used) continue;
    Member& output = body_.outputs[p_.slots[s].index];
    output.is_used = true;
    if (!in_structures_) output.name = places_[s].name;
  }
  return std::move(body_);
}

Result<Body> write_body(File& file, const plan::Program& program, const std::vector<std::string>& output_names,
                        bool in_structures) {
  return Writer(file, program, in_structures).write(output_names);
}

}  // namespace treadle::c
