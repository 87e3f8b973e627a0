#pragma once
// The roles of a program's slots for its instructions. `describe` takes each record of a program apart by a structured
// binding that names all members. So a new member does not compile before `describe` gives it a role, visits it as a
// number that affects the instruction, or leaves it out on purpose (nodes, preparations, scheduling). The listing, the
// native key, the verifier, the lifetimes and the layout of native loops are visitors of `describe`.

#include <utility>

#include "plan/program.h"

namespace treadle::plan {

enum class Role : uint8_t {
  kReads,        // its elements
  kWrites,       // its elements
  kScratch,      // memory whose contents are undefined before and after the instruction
  kKeeps,        // memory that no other instruction touches, kept from run to run; zero before the first run
  kReadsValue,   // a value: a handle, or planned memory with the type of its slot
  kWritesValue,  // a handle
  kReadsRows,    // pointers are set to read its rows
  kWritesRows,   // pointers are set to write its rows
  kPoints,       // a pointer that is set
  kCarries,      // a loop's state, which the iteration before made
  kHandsOn,      // the state's successor; a planned one is swapped with the state
};

// When an instruction of a loop uses the slot.
enum class When : uint8_t { kAtOnce, kBegin, kEachIteration, kBackEdge, kEnd };

struct SlotUse {
  const char* name = "";
  uint32_t number = 0;  // index among the slots of this name
  uint32_t slot = kNoSlot;
  Role role = Role::kReads;
  When when = When::kAtOnce;
};

constexpr bool writes(Role role) {
  return role == Role::kWrites || role == Role::kWritesValue;
}
constexpr bool is_value(Role role) {
  return role == Role::kReadsValue || role == Role::kWritesValue;
}

// Base of visitors; ignores everything.
struct RecordVisitor {
  void slot(const SlotUse&) {}
  template <class T>
  void number(const char*, T) {}
  void type(const char*, const Type&) {}
};

template <class V>
void describe(const KernelCall& call, V&& v) {
  const auto& [operands, inputs, outputs, kept, kernel, chain, group, code] = call;
  v.number("inputs", inputs);
  v.number("outputs", outputs);
  v.number("kept", kept);
  const size_t first_kept = operands.size() - kept;
  for (uint32_t i = 0; i < operands.size(); ++i) {
    if (i < inputs) {
      v.slot({"input", i, operands[i], Role::kReads});
    } else if (i < inputs + outputs) {
      v.slot({"output", i - inputs, operands[i], Role::kWrites});
    } else if (i < first_kept) {
      v.slot({"scratch", i - inputs - outputs, operands[i], Role::kScratch});
    } else {
      v.slot({"kept", static_cast<uint32_t>(i - first_kept), operands[i], Role::kKeeps});
    }
  }
}

template <class V>
void describe(const DynamicNode& dynamic, V&& v) {
  const auto& [node, inputs, outputs, releases, in_loop, checks, growth, kernel] = dynamic;
  for (uint32_t i = 0; i < inputs.size(); ++i) v.slot({"input", i, inputs[i], Role::kReadsValue});
  for (uint32_t i = 0; i < outputs.size(); ++i) v.slot({"output", i, outputs[i], Role::kWritesValue});
}

template <class V>
void describe(const Copy& copy, V&& v) {
  const auto& [from, to, bytes] = copy;
  v.slot({"from", 0, from, Role::kReads});
  v.slot({"to", 0, to, Role::kWrites});
  v.number("bytes", bytes);
}

template <class V>
void describe(const Row& row, V&& v) {
  const auto& [from, index, to, wide, count, bytes] = row;
  v.slot({"from", 0, from, Role::kReadsRows});
  v.slot({"index", 0, index, Role::kReads});
  v.slot({"to", 0, to, Role::kPoints});
  v.number("wide", wide);
  v.number("rows", count);
  v.number("bytes", bytes);
}

template <class V>
void describe(const Move& move, V&& v) {
  const auto& [from, to, takes] = move;
  v.slot({"from", 0, from, Role::kReadsValue});
  v.slot({"to", 0, to, Role::kWritesValue});
}

// The bool that decides a branch.
struct Flag {
  uint32_t slot = kNoSlot;
};

template <class V>
void describe(const Flag& flag, V&& v) {
  const auto& [slot] = flag;
  v.slot({"flag", 0, slot, Role::kReads});
}

template <class V>
void describe(const LoopState& state, uint32_t i, V&& v) {
  const auto& [initial, in, out, final, bytes, planned, shape_is_fixed, made_by_iteration, grows] = state;
  v.slot({"initial state", i, initial, Role::kReads, When::kBegin});
  v.slot({"state", i, in, Role::kCarries, When::kEachIteration});
  v.slot({"next state", i, out, Role::kHandsOn, planned ? When::kEachIteration : When::kBackEdge});
  v.slot({"final state", i, final, Role::kWrites, When::kEnd});
  v.number("bytes", bytes);
  v.number("planned", planned);
}

template <class V>
void describe(const ScanInput& scan, uint32_t i, V&& v) {
  const auto& [whole, element, planned, reverse, element_type, element_bytes] = scan;
  v.slot({"scan input", i, whole, Role::kReadsRows, When::kBegin});
  v.slot({"scanned element", i, element, Role::kPoints, When::kEachIteration});
  v.type("element type", element_type);
  v.number("planned", planned);
  v.number("reverse", reverse);
  v.number("element bytes", element_bytes);
}

template <class V>
void describe(const ScanOutput& scan, uint32_t i, V&& v) {
  const auto& [element, whole, row, element_planned, whole_planned, reverse, element_type, element_bytes, empty] = scan;
  v.slot({"scan output", i, whole, Role::kWritesRows, When::kBegin});
  v.slot({"made element", i, element, Role::kReads, When::kBackEdge});
  v.slot({"row", i, row, Role::kPoints, When::kEachIteration});
  v.type("element type", element_type);
  v.number("element planned", element_planned);
  v.number("whole planned", whole_planned);
  v.number("reverse", reverse);
  v.number("element bytes", element_bytes);
}

// The loop visits the step's slots.
template <class V>
void describe(const LoopStep& step, V&& v) {
  const auto& [simple, straight, grows, rows, swaps, advances] = step;
  v.number("simple", simple);
  v.number("grows", grows);
  v.number("rows", rows.size());
  v.number("swaps", swaps.size());
  v.number("advances", advances.size());
  for (const auto& [to, from, bytes] : rows) {
    v.number("to", to);
    v.number("from", from);
    v.number("bytes", bytes);
  }
  for (const auto& [in, out, bytes] : swaps) {
    v.number("in", in);
    v.number("out", out);
    v.number("bytes", bytes);
  }
  for (const auto& [slot, stride] : advances) {
    v.number("pointer", slot);
    v.number("stride", stride);
  }
}

template <class V>
void describe(const Loop& loop, V&& v) {
  const auto& [node, is_scan, masked, trip_count, condition, counter, continues, known_iterations, states, scan_inputs,
               scan_outputs, first, last, in_loop, releases, step, schedule] = loop;
  v.slot({"trip count", 0, trip_count, Role::kReads, When::kBegin});
  v.slot({"condition", 0, condition, Role::kReads, When::kBegin});
  v.slot({"counter", 0, counter, Role::kWrites, When::kEachIteration});
  v.slot({"continue condition", 0, continues, Role::kReads, When::kBackEdge});
  v.number("is scan", is_scan);
  v.number("known iterations", known_iterations);
  v.number("masked", masked);
  v.number("weight", schedule.weight);
  v.number("first", first);
  v.number("last", last);
  v.number("states", states.size());
  v.number("scan inputs", scan_inputs.size());
  v.number("scan outputs", scan_outputs.size());
  for (uint32_t i = 0; i < states.size(); ++i) describe(states[i], i, v);
  for (uint32_t i = 0; i < scan_inputs.size(); ++i) describe(scan_inputs[i], i, v);
  for (uint32_t i = 0; i < scan_outputs.size(); ++i) describe(scan_outputs[i], i, v);
  describe(step, v);
}

// For prepared kernels: operands end with the result and scratch.
template <class V>
void describe(const RowKernel& rows, V&& v) {
  const auto& [at, whole, rest, operand_count, operands] = rows;
  v.number("at", at);
  for (uint32_t i = 0; i < operand_count; ++i) {
    const auto& [slot, row_bytes] = operands[i];
    if (i + 2 < operand_count) {
      v.slot({"rows input", i, slot, Role::kReads, When::kEachIteration});
    } else if (i + 2 == operand_count) {
      v.slot({"rows output", 0, slot, Role::kWrites, When::kEachIteration});
    } else {
      v.slot({"rows scratch", 0, slot, Role::kScratch, When::kEachIteration});
    }
    v.number("row bytes", row_bytes);
  }
}

template <class V>
void describe(const Strips& strips, V&& v) {
  const auto& [iterations, kernels, inputs] = strips;
  v.number("iterations", iterations);
  for (const RowKernel& kernel : kernels) describe(kernel, v);
}

template <class V>
void describe(const Pipeline& pipeline, V&& v) {
  const auto& [first, last, iterations, strip, before, after, stages] = pipeline;
  v.number("iterations", iterations);
  v.number("strip", strip);
  for (const PipelineStage& stage : stages) {
    for (const RowKernel& kernel : stage.kernels) describe(kernel, v);
  }
}

// The record of an instruction without slots.
struct NoRecord {};
template <class V>
void describe(const NoRecord&, V&&) {}

// Calls `f` with the record of an instruction.
template <class F>
decltype(auto) with_record(const Program& p, const Instruction& in, F&& f) {
  switch (info(in.code).index) {
    case IndexOf::kKernel:
      return f(p.kernels[in.index]);
    case IndexOf::kDynamic:
      return f(p.dynamic[in.index]);
    case IndexOf::kCopy:
      return f(p.copies[in.index]);
    case IndexOf::kRow:
      return f(p.rows[in.index]);
    case IndexOf::kMove:
      return f(p.moves[in.index]);
    case IndexOf::kFlag:
      return f(Flag{in.index});
    case IndexOf::kLoop:
      return f(p.loops[in.index]);
    case IndexOf::kPipeline:
      return f(p.pipelines[in.index]);
    case IndexOf::kNothing:
    case IndexOf::kLoopOf:
    case IndexOf::kPipelineOf:
      break;
  }
  return f(NoRecord());
}

// The number of records to which an index can refer.
inline size_t record_count(const Program& p, IndexOf index) {
  switch (index) {
    case IndexOf::kKernel:
      return p.kernels.size();
    case IndexOf::kDynamic:
      return p.dynamic.size();
    case IndexOf::kCopy:
      return p.copies.size();
    case IndexOf::kRow:
      return p.rows.size();
    case IndexOf::kMove:
      return p.moves.size();
    case IndexOf::kFlag:
      return p.slots.size();
    case IndexOf::kLoop:
    case IndexOf::kLoopOf:
      return p.loops.size();
    case IndexOf::kPipeline:
    case IndexOf::kPipelineOf:
      return p.pipelines.size();
    case IndexOf::kNothing:
      break;
  }
  return 1;
}

template <class F>
struct SlotVisitor : RecordVisitor {
  explicit SlotVisitor(F& function) : f(function) {}
  void slot(const SlotUse& use) { f(use); }
  F& f;
};

// Calls `f` with each SlotUse of a record.
template <class Record, class F>
void for_each_slot(const Record& record, F&& f) {
  describe(record, SlotVisitor<std::remove_reference_t<F>>(f));
}

// For an instruction. A loop's slots belong to its first instruction.
template <class F>
void for_each_slot(const Program& p, uint32_t pc, F&& f) {
  with_record(p, p.code[pc], [&](const auto& record) { for_each_slot(record, f); });
}

// Calls `f` with every instruction number in a program, as uint32_t&.
template <class F>
void for_each_position(Program& p, F&& f) {
  const auto rows = [&](std::vector<RowKernel>& kernels) {
    for (RowKernel& kernel : kernels) f(kernel.at);
  };
  for (Loop& loop : p.loops) {
    f(loop.first), f(loop.last);
    rows(loop.schedule.strips.kernels);
  }
  for (Pipeline& pipeline : p.pipelines) {
    f(pipeline.first), f(pipeline.last);
    for (uint32_t& place : pipeline.before) f(place);
    for (uint32_t& place : pipeline.after) f(place);
    for (PipelineStage& stage : pipeline.stages) rows(stage.kernels);
  }
}

}  // namespace treadle::plan
