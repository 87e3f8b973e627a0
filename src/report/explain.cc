// Estimates of what a trip takes. The roof is the longest of three times: what the trip computes, at the machine's
// speed; the memory that registers cannot hold, at the speed of the cache that holds it; and the loop-carried
// dependency. The estimate adds what the interpreter or the native code costs around the computation.
#include "report/explain.h"

#include <algorithm>
#include <set>

#include "base/caches.h"
#include "op/costs.h"
#include "op/gemm.h"
#include "op/loop_view.h"
#include "op/op_def.h"
#include "plan/dynamic_code.h"
#include "plan/roles.h"
#include "report/iteration_cost.h"
#include "session/plan_cache.h"

namespace treadle::report {

using run::NativeLoops;

namespace {

using plan::Instruction;
using plan::kNoSlot;
using plan::Loop;
using plan::OpCode;
using plan::Program;
using plan::Storage;

class Explainer {
 public:
  Explainer(const Program& program, const NativeLoops* native, std::span<const opt::Remarks* const> all_remarks,
            const Roofline& roof)
      : p_(program), native_(native), all_remarks_(all_remarks), roof_(roof) {
    for (uint32_t pc = 0; pc < p_.code.size(); ++pc) {
      const ir::Node* node = p_.code[pc].code == OpCode::kKernel ? p_.node_of[pc] : nullptr;
      if (node && node->attributes.has(kHalfWeights)) half_weights_.insert(p_.code[pc].operands[1]);
    }
  }

  Explanation run() {
    Explanation e;
    e.instructions = p_.code.size();
    e.arena_bytes = p_.arena_bytes;
    for (const Instruction& in : p_.code) e.guarded += plan::is_dynamic(in.code);
    e.loops.resize(p_.loops.size());
    // Inner loops have larger numbers; what they take is part of what is around them.
    for (size_t i = p_.loops.size(); i-- > 0;) e.loops[i] = describe(static_cast<uint32_t>(i), e.loops);
    for (size_t i = 0; i < p_.loops.size(); ++i) place(static_cast<uint32_t>(i), e.loops);
    for (const opt::Remarks* remarks : all_remarks_) {
      std::copy_if(remarks->entries().begin(), remarks->entries().end(), std::back_inserter(e.maps),
                   [](const opt::Remark& entry) {
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
    find_pipeline(index, report);
    report.block_trips = loop.schedule.blocks.trips;
    for (const plan::RowKernel& kernel : loop.schedule.blocks.kernels) {
      const ir::Node& node = *p_.node_of[kernel.at];
      report.blocked.push_back({std::string(node.name), node.op->name, {}});
    }
    find_obstacles(loop, report);
    count(index, others, report);
    return report;
  }

  void find_pipeline(uint32_t index, LoopReport& report) const {
    for (const plan::Pipeline& pipeline : p_.pipelines) {
      const auto is_this = [&](const plan::PipelineStage& stage) { return stage.loop == index; };
      if (std::none_of(pipeline.stages.begin(), pipeline.stages.end(), is_this)) continue;
      report.beside_trips = pipeline.block;
      for (const plan::PipelineStage& stage : pipeline.stages) {
        if (stage.loop != index && stage.loop != plan::PipelineStage::kNoLoop) {
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
        count.storage == Storage::kConstant && is_always_true(loop.continues) && is_always_true(loop.condition);
    return known ? std::max<int64_t>(*count.constant.data<int64_t>(), 0) : -1;
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
    for (const opt::Remarks* remarks : all_remarks_) {
      for (const opt::Remark& entry : remarks->entries()) {
        if (entry.loop != report.node || !seen.insert(entry.node).second) continue;
        report.rewrites.push_back(entry);
      }
    }
  }

  // --- what stands in the way

  void find_obstacles(const Loop& loop, LoopReport& report) const {
    const LoopView view(*loop.node);
    const std::string own = loop.node->name, op = loop.node->op->name;
    for (size_t i = 0; i < loop.states.size(); ++i) {
      if (loop.states[i].planned) continue;
      report.obstacles.push_back(
          {own, op,
           fmt::format("the size of state '{}' is known only at run time", view.state(i).before->name.view())});
    }
    for (size_t i = 0; i < loop.scan_inputs.size(); ++i) {
      if (loop.scan_inputs[i].planned) continue;
      report.obstacles.push_back({own, op,
                                  fmt::format("the size of scan input '{}' is known only at run time",
                                              view.scan_input(i).element->name.view())});
    }
    for (const plan::ScanOutput& scan : loop.scan_outputs) {
      if (scan.row != kNoSlot) continue;
      report.obstacles.push_back({own, op, "the size of a scan output's rows is known only at run time"});
    }
    for (uint32_t pc = loop.first + 1; pc < loop.last; ++pc) {
      const Instruction& in = p_.code[pc];
      if (innermost(pc) != &loop || !p_.node_of[pc]) continue;
      if (!plan::is_dynamic(in.code) || plan::dynamic_code(p_, pc)) continue;
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

  Work work_at(uint32_t pc, const plan::ElementwiseCode* code) const {
    if (code) return work_of(*code);
    Work work;
    if (p_.code[pc].code == OpCode::kRow) return work;  // a pointer to it
    for (const ir::Node* node : plan::nodes_of(p_, pc)) work += work_of(*node);
    return work;
  }

  double traffic_at(uint32_t pc) const {
    const Instruction& in = p_.code[pc];
    if (in.code == OpCode::kCopy) return 2 * static_cast<double>(p_.copies[in.index].bytes);
    double traffic = 0;
    for (const uint32_t s : operands_of(pc)) traffic += bytes_of(s);
    return traffic;
  }

  // What no way of running keeps in registers from trip to trip: weights of products, and what is another one in each
  // trip.
  bool is_weight(uint32_t pc, uint32_t s, const Work& work) const {
    return work.flops > 0 && p_.slots[s].storage == Storage::kConstant && p_.code[pc].code == OpCode::kKernel;
  }

  // How often an instruction runs in a trip: one branch of two, as if each were taken as often.
  std::vector<double> shares_of(const Loop& loop) const {
    std::vector<double> shares(loop.last - loop.first + 1, 1);
    auto halve = [&](uint32_t from, uint32_t to) {
      for (uint32_t pc = from; pc < std::min(to, loop.last); ++pc) shares[pc - loop.first] /= 2;
    };
    for (uint32_t pc = loop.first + 1; pc < loop.last; ++pc) {
      const Instruction& in = p_.code[pc];
      if (in.code != OpCode::kBranchUnless || in.target <= pc) continue;
      halve(pc + 1, in.target);
      // The other branch lies behind the jump that ends the first.
      const Instruction& end = p_.code[in.target - 1];
      if (end.code == OpCode::kJump && end.target > in.target) halve(in.target, end.target);
    }
    return shares;
  }

  // The slots whose elements an instruction reads and writes; none of those that only look at one.
  std::vector<uint32_t> operands_of(uint32_t pc) const {
    std::vector<uint32_t> slots;
    const OpCode code = p_.code[pc].code;
    if (code != OpCode::kKernel && code != OpCode::kCopy && !plan::is_dynamic(code)) return slots;
    plan::for_each_slot(p_, pc, [&](const plan::SlotUse& use) {
      const bool is_own = use.role == plan::Role::kScratch || use.role == plan::Role::kKeeps;
      if (!is_own) slots.push_back(use.slot);
    });
    return slots;
  }

  void count(uint32_t index, const std::vector<LoopReport>& others, LoopReport& report) {
    const Loop& loop = p_.loops[index];
    const uint32_t outer = native_ ? native_->outermost(index) : index;
    const bool is_native = native_ && native_->code(outer);
    const NativeLoops::State made = is_native ? native_->state(outer) : NativeLoops::State();
    const bool is_chain = loop.schedule.chain != nullptr;
    const bool in_registers = stays_in_registers(loop);
    const std::vector<double> shares = shares_of(loop);
    Work all;
    double memory = 0, computes = 0,
           waits = is_native  ? costs::kNativeIterationNs
                   : is_chain ? costs::kChainIterationNs
                              : costs::kIterationNs;
    std::set<uint32_t> touched;
    for (uint32_t pc = loop.first + 1; pc < loop.last; ++pc) {
      const Instruction& in = p_.code[pc];
      if (in.code == OpCode::kLoopBegin) {
        add_inner(others[in.index], report);
        pc = p_.loops[in.index].last;
        continue;
      }
      const plan::ElementwiseCode* code = plan::elementwise_code(p_, pc);
      const bool has_form = code || plan::other_code(p_, pc);
      const bool dynamic = plan::is_dynamic(in.code);
      report.is_complete &= !dynamic;
      const double share = shares[pc - loop.first];
      const Work work = share * work_at(pc, code);
      const double traffic = share * traffic_at(pc);
      all += work;
      report.traffic += traffic;
      for (const uint32_t s : operands_of(pc)) {
        if (touched.insert(s).second && is_weight(pc, s, work)) memory += share * bytes_of(s);
      }
      const bool called = in.code == OpCode::kKernel && is_called(pc, is_native, made, !has_form);
      const size_t steps = code ? code->steps.size() : 1;
      if (called) {
        report.calls.push_back(call_of(pc, !has_form));
      } else if (in.code == OpCode::kKernel) {
        report.operations += steps;
      }
      double takes = work_ns(roof_, work) / costs::kReachedShare;
      if (dynamic) {
        const bool has_kernel = in.code != OpCode::kMove && p_.dynamic[in.index].kernel.run != nullptr;
        waits += share * (has_kernel ? costs::kDynamicKernelNs : costs::kDynamicNs);
      } else if (is_native) {
        waits += share * native_waits(pc, called);
        if (code && !in_registers) takes = std::max(takes, share * cached_ns(streamed_by(*code)));
      } else if (in.code == OpCode::kKernel) {
        const double each = is_chain ? costs::kChainOperationNs : costs::kOperationNs;
        const double around = is_chain ? 0 : code ? costs::kInstructionNs : costs::kKernelNs;
        waits += share * (around + each * static_cast<double>(steps));
      }
      computes += is_native && !called ? takes : std::max(takes, cached_ns(traffic));
    }
    for (const uint32_t s : touched) report.bytes += bytes_of(s);
    for (const plan::ScanInput& scan : loop.scan_inputs) memory += static_cast<double>(scan.element_bytes);
    for (const plan::ScanOutput& scan : loop.scan_outputs) memory += static_cast<double>(scan.element_bytes);
    auto node_ns = [&](const ir::Node& node) { return work_ns(roof_, work_of(node)); };
    const double least[] = {work_ns(roof_, all), memory / roof_.bytes_per_ns(report.bytes),
                            carried_ns(loop, roof_, node_ns)};
    report.flops += operations_of(all);
    const auto* bound = std::max_element(std::begin(least), std::end(least));
    report.bound = static_cast<LoopReport::Bound>(bound - least);
    report.roof_ns += *bound;
    // Weights that are near are not what a product waits for most.
    const double far = report.bytes > static_cast<double>(caches().second) ? 1 : costs::kReachedShare;
    report.estimated_ns += waits + std::max({computes, *bound, least[1] / far});
  }

  // What native code takes beside arithmetic: to move elements within registers, or many of them through memory.
  double native_waits(uint32_t pc, bool called) const {
    constexpr double kRegisterBytes = 2048;
    if (called) return costs::kNativeCallNs;
    const auto* other = plan::other_code(p_, pc);
    if (!other) return 0;
    const double traffic = traffic_at(pc);
    const bool is_product = std::holds_alternative<plan::ProductCode>(*other);
    if (std::holds_alternative<plan::GatherCode>(*other) || (is_product && traffic > kRegisterBytes)) {
      return costs::kNativeMoveNs;
    }
    if (const auto* move = std::get_if<plan::MoveCode>(other); move && moves_lines(*move)) {
      return costs::kNativeMoveNs + cached_ns(traffic);
    }
    return costs::kNativeMoveNs +
           (traffic > kRegisterBytes ? cached_ns(traffic) : costs::kNativeMovedLineNs / 64 * traffic);
  }

  // Neighbours stay neighbours.
  static bool moves_lines(const plan::MoveCode& move) {
    const auto is_line = [](const plan::MoveCode::Region& region) {
      return region.from == plan::kNoSlot || region.dims.empty() || region.dims.back() == 1 ||
             (region.in_strides.back() == 1 && region.out_strides.back() == 1);
    };
    return !move.regions.empty() && std::ranges::all_of(move.regions, is_line);
  }

  // The bytes that a group reads and writes, where they are too many for the nearest cache.
  double streamed_by(const plan::ElementwiseCode& code) const {
    constexpr double kNearestCacheBytes = 16384;
    std::set<uint32_t> slots;
    for (const auto& input : code.inputs) slots.insert(input.slot);
    for (const auto& output : code.outputs) slots.insert(output.slot);
    double bytes = 0;
    for (const uint32_t s : slots) bytes += bytes_of(s);
    return bytes > kNearestCacheBytes ? bytes : 0;
  }

  // Whether native code keeps a part of the states in registers for many trips: nothing but arithmetic, element by
  // element (jit/blocks.cc).
  bool stays_in_registers(const Loop& loop) const {
    if (loop.continues != plan::kNoSlot || !loop.scan_inputs.empty() || !loop.scan_outputs.empty()) return false;
    int64_t count = 0;
    for (uint32_t pc = loop.first + 1; pc < loop.last; ++pc) {
      const OpCode code = p_.code[pc].code;
      if (code == OpCode::kCopy || code == OpCode::kLoopNext || code == OpCode::kLoopNextSimple) continue;
      const plan::ElementwiseCode* group = plan::elementwise_code(p_, pc);
      if (!group || !group->reductions.empty() || (count != 0 && group->count != count)) return false;
      count = group->count;
      const auto moves = [](const auto& in) { return in.broadcast == plan::ElementwiseCode::Broadcast::kOther; };
      if (std::ranges::any_of(group->inputs, moves)) return false;
    }
    return true;
  }

  double cached_ns(double bytes) const { return bytes / roof_.bytes_per_ns(bytes); }

  static bool is_called(uint32_t pc, bool is_native, const NativeLoops::State& made, bool has_no_form) {
    if (!is_native) return has_no_form;
    return std::find(made.calls.begin(), made.calls.end(), pc) != made.calls.end();
  }

  // The type of a result or an operand that native code does not compute with; kUndefined where there is none.
  static ElementType foreign_type_of(const ir::Node& node) {
    ElementType foreign = ElementType::kUndefined;
    const auto look = [&](const ir::Value* v) {
      if (v && !plan::is_native(v->type.element)) foreign = v->type.element;
    };
    for (const ir::Value* v : node.inputs) look(v);
    for (const ir::Value* v : node.outputs) look(v);
    return foreign;
  }

  NodeRemark call_of(uint32_t pc, bool has_no_form) const {
    const ir::Node& node = *p_.node_of[pc];
    NodeRemark call{node.name, plan::op_names(p_, pc), {}};
    const ElementType foreign = foreign_type_of(node);
    if (node.op->elementwise && has_no_form && foreign != ElementType::kUndefined) {
      call.remark = fmt::format("native code does not compute with elements of type {}", info(foreign).name);
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
    report.roof_ns += trips * of.roof_ns;
    report.is_complete &= of.is_complete && of.trips >= 0;
  }

  // --- where it runs

  void place(uint32_t index, std::vector<LoopReport>& loops) const {
    LoopReport& report = loops[index];
    const bool chain = p_.loops[index].schedule.chain != nullptr;
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
                              : native_->mode() >= Jit::kAlways
                                  ? "it has not run yet"
                                  : "it has not run for long enough to be worth compiling (about 10 ms)";
    }
  }

  const Program& p_;
  const NativeLoops* native_;
  std::span<const opt::Remarks* const> all_remarks_;
  const Roofline& roof_;
  std::set<uint32_t> half_weights_;  // slots of constants that products have packed in float16
};

}  // namespace

Explanation explain(const Program& program, const NativeLoops* native, std::span<const opt::Remarks* const> all_remarks,
                    const Roofline& roof) {
  return Explainer(program, native, all_remarks, roof).run();
}

namespace {

Explanation explain_planned(const Session& session, const session::Planned& planned) {
  Explanation made = explain(*planned.program, planned.native.get(),
                             std::array{&session.load_remarks(), &planned.remarks}, measured_roofline());
  made.mode = session.options().jit;
  made.cache = session.native_cache().folder();
  return made;
}

}  // namespace

Result<Explanation> explain(const Session& session, std::span<const Feed> feeds) {
  if (session.options().tier == Tier::kReference) {
    return error(Code::kInvalidArgument,
                 "the reference interpreter runs the graph as it is: there is no plan to explain");
  }
  TREADLE_ASSIGN(const session::Planned* const planned, session.planned(feeds));
  if (planned) return explain_planned(session, *planned);
  TREADLE_ASSIGN(const session::Planned of_model, session.plan_model());
  Explanation made = explain_planned(session, of_model);
  made.is_specific = false;
  return made;
}

}  // namespace treadle::report
