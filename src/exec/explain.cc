// Estimates. A trip's arithmetic is counted in elementary operations, its memory in bytes of the values that it
// touches. The roof is what the machine needs for the larger of the two: products at the speed of our own product of
// 128 x 128 matrices, memory at the speed of the cache that holds all that one trip touches. The estimate adds what the
// way of running costs: every instruction its own roof, since the next one waits for it, and a few nanoseconds around
// it.
#include "exec/explain.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "op/gemm.h"
#include "op/op_def.h"
#include "plan/chain_loops.h"

namespace treadle::exec {

namespace {

using plan::Instruction;
using plan::kNoSlot;
using plan::Loop;
using plan::OpCode;
using plan::Program;
using plan::Storage;

// Around one instruction: of the interpreter, of a chain, of native code, and around a kernel that native code calls.
constexpr double kProgramNs = 3, kChainNs = 1, kNativeNs = 0.3, kCallNs = 2;
constexpr double kDynamicNs = 200;          // an instruction that looks at sizes first
constexpr double kFunctionOperations = 12;  // of exp and its like, per element

bool is_function(kernels::ElementwiseOp op) {
  using enum kernels::ElementwiseOp;
  switch (op) {
    case kAdd:
    case kSub:
    case kMul:
    case kMin:
    case kMax:
    case kAbs:
    case kNeg:
    case kRelu:
    case kWhere:
    case kClip:
    case kEqual:
    case kLess:
    case kGreater:
    case kLessOrEqual:
    case kGreaterOrEqual:
    case kAnd:
    case kOr:
    case kXor:
    case kNot:
    case kAffine:
      return false;
    default:
      return true;
  }
}

double elements_of(const ir::Value* v) {
  return v && v->type.is_concrete() ? static_cast<double>(element_count_unchecked(known_dims(v->type.shape))) : 0;
}

int64_t last_dim(const ir::Value* v, size_t from_the_end = 1) {
  if (!v || !v->type.is_concrete() || v->type.shape.size() < from_the_end) return 1;
  return v->type.shape[v->type.shape.size() - from_the_end].value();
}

// Of a node that is a kernel of its own.
double flops_of(const ir::Node& node) {
  const std::string& op = node.op->name;
  const double result = node.outputs.empty() ? 0 : elements_of(node.outputs[0]);
  if (op == "MatMul" || op == "Gemm") {
    const bool transposed = op == "Gemm" && node.attributes.get_int("transA") != 0;
    return 2 * result * static_cast<double>(last_dim(node.inputs[0], transposed ? 2 : 1));
  }
  if (op == "PermutedMatMul") {
    // Each element of an operand is used once per column of the other.
    return 2 * std::sqrt(elements_of(node.inputs[0]) * elements_of(node.inputs[1]) * result);
  }
  if ((op == "Conv" || op == "FusedConv") && node.inputs[1]->type.is_concrete()) {
    const double filters = static_cast<double>(std::max<int64_t>(node.inputs[1]->type.shape[0].value(), 1));
    return 2 * result * elements_of(node.inputs[1]) / filters;
  }
  return std::max(result, elements_of(node.inputs.empty() ? nullptr : node.inputs[0]));
}

std::string op_names(const std::vector<const ir::Node*>& nodes) {
  std::string text;
  for (const ir::Node* node : nodes) text += (text.empty() ? "" : "+") + node->op->name;
  return text;
}

class Explainer {
 public:
  Explainer(const Program& program, const NativeLoops* native, std::span<const opt::Journal* const> journals,
            const MachineRoof& roof)
      : p_(program), native_(native), journals_(journals), roof_(roof) {
    for (uint32_t pc = 0; pc < p_.code.size(); ++pc) {
      const ir::Node* node = p_.code[pc].code == OpCode::kKernel ? p_.node_of[pc] : nullptr;
      if (node && node->attributes.has(kHalfWeights)) half_weights_.insert(p_.code[pc].operands[1]);
    }
  }

  Explanation run() {
    Explanation e;
    if (native_) {
      e.mode = native_->mode();
      e.cache = native_->cache_folder();
    } else {
      e.mode = Jit::kOff;
    }
    e.instructions = p_.code.size();
    e.arena_bytes = p_.arena_bytes;
    for (const Instruction& in : p_.code) e.guarded += in.code == OpCode::kGuarded || in.code == OpCode::kCompute;
    e.loops.resize(p_.loops.size());
    // Inner loops have larger numbers; what they take is part of what is around them.
    for (size_t i = p_.loops.size(); i-- > 0;) e.loops[i] = describe(static_cast<uint32_t>(i), e.loops);
    for (size_t i = 0; i < p_.loops.size(); ++i) place(static_cast<uint32_t>(i), e.loops);
    for (const opt::Journal* journal : journals_) {
      std::copy_if(journal->entries().begin(), journal->entries().end(), std::back_inserter(e.maps),
                   [](const opt::JournalEntry& entry) {
                     return entry.change == opt::Change::kMapped || entry.change == opt::Change::kReassociated;
                   });
    }
    return e;
  }

 private:
  LoopReport describe(uint32_t index, const std::vector<LoopReport>& others) {
    const Loop& loop = p_.loops[index];
    LoopReport report;
    report.node = loop.node->name;
    report.op = loop.node->op->name;
    report.parent = parent(index);
    report.trips = trips_of(loop);
    report.states = loop.states.size();
    report.scan_inputs = loop.scan_inputs.size();
    report.scan_outputs = loop.scan_outputs.size();
    for (const plan::LoopState& state : loop.states) report.state_bytes += state.bytes;
    collect_rewrites(report);
    find_wave(index, report);
    report.block_trips = loop.blocks.trips;
    for (const plan::RowKernel& kernel : loop.blocks.kernels) {
      const ir::Node& node = *p_.node_of[kernel.at];
      report.blocked.push_back({std::string(node.name), node.op->name, {}});
    }
    std::string why;
    find_obstacles(loop, report);
    if (!plan::describe_loop(p_, index, why)) report.why_not_native = why;
    count(index, forms_of(loop), others, report);
    return report;
  }

  void find_wave(uint32_t index, LoopReport& report) const {
    for (const plan::Wave& wave : p_.waves) {
      const auto is_this = [&](const plan::WaveStage& stage) { return stage.loop == index; };
      if (std::none_of(wave.stages.begin(), wave.stages.end(), is_this)) continue;
      report.beside_trips = wave.block;
      for (const plan::WaveStage& stage : wave.stages) {
        if (stage.loop != index && stage.loop != plan::WaveStage::kNoLoop) {
          report.beside.emplace_back(p_.loops[stage.loop].node->name);
        }
      }
    }
  }

  bool is_always_true(uint32_t s) const {
    return s == kNoSlot || (p_.slots[s].storage == Storage::kConstant && *p_.slots[s].constant.data<bool>());
  }

  int64_t trips_of(const Loop& loop) const {
    if (loop.is_scan || loop.trip_count == kNoSlot) return loop.known_trips;
    const plan::Slot& count = p_.slots[loop.trip_count];
    const bool known =
        count.storage == Storage::kConstant && is_always_true(loop.go_on) && is_always_true(loop.condition);
    return known ? std::max<int64_t>(*count.constant.data<int64_t>(), 0) : -1;
  }

  // What native code could write out, by instruction.
  struct Forms {
    std::unordered_map<uint32_t, plan::ElementwiseCode> elementwise;
    std::set<uint32_t> others;
    bool has(uint32_t pc) const { return elementwise.contains(pc) || others.contains(pc); }
  };

  Forms forms_of(const Loop& loop) const {
    Forms forms;
    for (uint32_t pc = loop.first + 1; pc < loop.last; ++pc) {
      if (auto code = plan::describe_elementwise(p_, pc)) {
        forms.elementwise.emplace(pc, std::move(*code));
      } else if (plan::describe_instruction(p_, pc)) {
        forms.others.insert(pc);
      }
    }
    return forms;
  }

  int parent(uint32_t index) const {
    int best = -1;
    for (uint32_t i = 0; i < index; ++i) {
      if (p_.loops[i].first < p_.loops[index].first && p_.loops[index].last < p_.loops[i].last) {
        best = static_cast<int>(i);
      }
    }
    return best;
  }

  // One entry for each node: what was done to it first is why it is not there any more.
  void collect_rewrites(LoopReport& report) const {
    std::set<std::string> seen;
    for (const opt::Journal* journal : journals_) {
      for (const opt::JournalEntry& entry : journal->entries()) {
        if (entry.loop != report.node || !seen.insert(entry.node).second) continue;
        report.rewrites.push_back(entry);
      }
    }
  }

  // --- what stands in the way

  void find_obstacles(const Loop& loop, LoopReport& report) const {
    const ir::Region& body = *loop.node->region("body");
    const size_t first = loop.is_scan ? 0 : 2;
    const std::string own = loop.node->name, op = loop.node->op->name;
    auto name_of = [&](size_t input) {
      return input < body.inputs.size() ? std::string(body.inputs[input]->name) : std::string();
    };
    for (size_t i = 0; i < loop.states.size(); ++i) {
      if (loop.states[i].planned) continue;
      report.obstacles.push_back(
          {own, op, fmt::format("the size of state '{}' is known only at run time", name_of(first + i))});
    }
    for (size_t i = 0; i < loop.scan_inputs.size(); ++i) {
      if (loop.scan_inputs[i].planned) continue;
      const std::string name = name_of(loop.states.size() + i);
      report.obstacles.push_back({own, op, fmt::format("the size of scan input '{}' is known only at run time", name)});
    }
    for (const plan::ScanOutput& scan : loop.scan_outputs) {
      if (scan.row != kNoSlot) continue;
      report.obstacles.push_back({own, op, "the size of a scan output's rows is known only at run time"});
    }
    for (uint32_t pc = loop.first + 1; pc < loop.last; ++pc) {
      const Instruction& in = p_.code[pc];
      if (innermost(pc) != &loop || !p_.node_of[pc]) continue;
      if (in.code != OpCode::kGuarded && in.code != OpCode::kCompute) continue;
      report.obstacles.push_back({p_.node_of[pc]->name, p_.node_of[pc]->op->name, why_dynamic(*p_.node_of[pc])});
    }
  }

  static std::string why_dynamic(const ir::Node& node) {
    if (!node.op->prepare) return "works on whole values: sizes, strings or sequences that the run decides";
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ir::Value* v = node.inputs[i];
      if (!v) continue;
      if (i < 64 && (node.op->shape_inputs >> i & 1) && !v->is_constant()) {
        return fmt::format("the contents of '{}' decide its sizes", v->name.view());
      }
      if (!v->type.is_concrete()) return fmt::format("the size of '{}' is known only at run time", v->name.view());
      if (is_string(v->type.element)) return "works on strings";
    }
    return "the size of its result is known only at run time";
  }

  const Loop* innermost(uint32_t pc) const {
    const Loop* best = nullptr;
    for (const Loop& loop : p_.loops) {
      if (pc >= loop.first && pc <= loop.last && (!best || loop.first > best->first)) best = &loop;
    }
    return best;
  }

  // --- what a trip takes

  struct Work {
    double flops = 0, traffic = 0;
  };

  double bytes_of(uint32_t s) const {
    const plan::Slot& slot = p_.slots[s];
    if (slot.storage == Storage::kNull || slot.storage == Storage::kHandle) return 0;
    if (slot.storage == Storage::kConstant) {
      return static_cast<double>(slot.constant.byte_size()) / (half_weights_.contains(s) ? 2 : 1);
    }
    return slot.type.is_concrete() ? static_cast<double>(element_count_unchecked(known_dims(slot.type.shape))) *
                                         static_cast<double>(byte_width(slot.type.element))
                                   : static_cast<double>(slot.bytes);
  }

  Work work_of(uint32_t pc, const plan::ElementwiseCode* code) const {
    const Instruction& in = p_.code[pc];
    Work work;
    if (in.code == OpCode::kCopy) {
      work.traffic = 2 * static_cast<double>(p_.copies[in.index].bytes);
      return work;
    }
    if (code) {
      for (const auto& step : code->steps) {
        const double each = step.converts || !is_function(step.op) ? 1 : kFunctionOperations;
        work.flops += each * static_cast<double>(code->count);
      }
    } else if (const auto fused = p_.fused.find(pc); fused != p_.fused.end()) {
      for (const ir::Node* node : fused->second.nodes) work.flops += flops_of(*node);
    } else if (p_.node_of[pc]) {
      work.flops = flops_of(*p_.node_of[pc]);
    }
    for (const uint32_t s : operands_of(pc)) work.traffic += bytes_of(s);
    return work;
  }

  std::vector<uint32_t> operands_of(uint32_t pc) const {
    const Instruction& in = p_.code[pc];
    switch (in.code) {
      case OpCode::kKernel: {
        const auto fused = p_.fused.find(pc);
        const size_t named = fused != p_.fused.end() ? fused->second.inputs.size() + fused->second.outputs.size()
                                                     : p_.node_of[pc]->inputs.size() + p_.node_of[pc]->outputs.size();
        return {in.operands, in.operands + std::min<size_t>(named, in.index)};
      }
      case OpCode::kCopy:
        return {p_.copies[in.index].from, p_.copies[in.index].to};
      case OpCode::kGuarded:
      case OpCode::kCompute: {
        std::vector<uint32_t> all = p_.dynamic[in.index].inputs;
        all.insert(all.end(), p_.dynamic[in.index].outputs.begin(), p_.dynamic[in.index].outputs.end());
        return all;
      }
      default:
        return {};
    }
  }

  void count(uint32_t index, const Forms& forms, const std::vector<LoopReport>& others, LoopReport& report) {
    const Loop& loop = p_.loops[index];
    const uint32_t outer = native_ ? native_->outermost(index) : index;
    const bool is_native = native_ && native_->code(outer);
    const NativeLoops::State made = is_native ? native_->state(outer) : NativeLoops::State();
    const double around = is_native ? kNativeNs : p_.code[loop.first].state ? kChainNs : kProgramNs;
    std::set<uint32_t> touched;
    for (uint32_t pc = loop.first + 1; pc < loop.last; ++pc) {
      const Instruction& in = p_.code[pc];
      if (in.code == OpCode::kLoopBegin) {
        add_inner(others[in.index], report);
        pc = p_.loops[in.index].last;
        continue;
      }
      const auto code = forms.elementwise.find(pc);
      const bool dynamic = in.code == OpCode::kGuarded || in.code == OpCode::kCompute;
      report.is_complete &= !dynamic;
      const Work work = work_of(pc, code == forms.elementwise.end() ? nullptr : &code->second);
      report.flops += work.flops;
      report.traffic += work.traffic;
      for (const uint32_t s : operands_of(pc)) touched.insert(s);
      const bool called = in.code == OpCode::kKernel && is_called(pc, is_native, made, !forms.has(pc));
      if (called) {
        report.calls.push_back(call_of(pc, !forms.has(pc)));
      } else if (in.code == OpCode::kKernel) {
        report.operations += code == forms.elementwise.end() ? 1 : code->second.steps.size();
      }
      const double waits = called && is_native ? kCallNs : dynamic ? kDynamicNs : around;
      report.estimated_ns += waits + std::max(work.flops / roof_.flops_per_ns, cached_ns(work.traffic));
    }
    for (const uint32_t s : touched) report.bytes += bytes_of(s);
    report.roof_ns = roof_.trip_ns(report.flops, report.bytes);
    report.estimated_ns = std::max(report.estimated_ns, report.roof_ns);
  }

  double cached_ns(double bytes) const { return bytes / roof_.bytes_per_ns(bytes); }

  static bool is_called(uint32_t pc, bool is_native, const NativeLoops::State& made, bool has_no_form) {
    if (!is_native) return has_no_form;
    return std::find(made.calls.begin(), made.calls.end(), pc) != made.calls.end();
  }

  NodeRemark call_of(uint32_t pc, bool has_no_form) const {
    const auto fused = p_.fused.find(pc);
    const ir::Node& node = *p_.node_of[pc];
    NodeRemark call{node.name, node.op->name, {}};
    if (fused != p_.fused.end() && fused->second.nodes.size() > 1) call.op = op_names(fused->second.nodes);
    const ElementType type =
        node.outputs.empty() || !node.outputs[0] ? ElementType::kUndefined : node.outputs[0]->type.element;
    if (node.op->batch == BatchRule::kElementwise && has_no_form) {
      call.remark = fmt::format("elements of type {} are not stored as they are computed with", info(type).name);
    } else if (!has_no_form) {
      call.remark = "so long, or so spread, that its kernel is as fast";
    } else {
      call.remark = "native code calls its kernel";
    }
    return call;
  }

  static void add_inner(const LoopReport& of, LoopReport& report) {
    const double trips = of.trips < 0 ? 1 : static_cast<double>(of.trips);
    report.flops += trips * of.flops;
    report.traffic += trips * of.traffic;
    report.bytes += of.bytes;
    report.estimated_ns += trips * of.estimated_ns;
    report.is_complete &= of.is_complete && of.trips >= 0;
  }

  // --- where it runs

  void place(uint32_t index, std::vector<LoopReport>& loops) const {
    LoopReport& report = loops[index];
    const bool chain = p_.code[p_.loops[index].first].state != nullptr;
    report.tier = chain ? LoopReport::Tier::kChain : LoopReport::Tier::kProgram;
    if (!native_) {
      if (report.why_not_native.empty()) report.why_not_native = "jit is off";
      return;
    }
    const uint32_t outer = native_->outermost(index);
    if (native_->code(outer)) {
      report.tier = outer == index ? LoopReport::Tier::kNative : LoopReport::Tier::kInside;
      report.native = native_->state(outer);
      report.why_not_native.clear();
      return;
    }
    report.native = native_->state(index);
    if (native_->code(index)) {
      report.tier = LoopReport::Tier::kNative;
    } else if (report.why_not_native.empty()) {
      const NativeLoops::State of = native_->state(outer);
      report.why_not_native = of.tried && !of.why.empty() ? of.why
                              : native_->mode() == Jit::kAlways
                                  ? "it has not run yet"
                                  : "it has not run for long enough to be worth compiling (about 10 ms)";
    }
  }

  const Program& p_;
  const NativeLoops* native_;
  std::span<const opt::Journal* const> journals_;
  const MachineRoof& roof_;
  std::set<uint32_t> half_weights_;  // slots of constants that products have packed in float16
};

}  // namespace

Explanation explain(const Program& program, const NativeLoops* native, std::span<const opt::Journal* const> journals,
                    const MachineRoof& roof) {
  return Explainer(program, native, journals, roof).run();
}

}  // namespace treadle::exec
