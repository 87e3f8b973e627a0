#include "report/loop_cost.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/caches.h"
#include "op/costs.h"
#include "op/gemm.h"
#include "op/op_def.h"
#include "plan/body_cost.h"
#include "plan/roles.h"
#include "report/iteration_cost.h"
#include "report/node_times.h"

namespace treadle::report {

using run::NativeLoops;

namespace {

using plan::BodyPart;
using plan::Instruction;
using plan::Loop;
using plan::OpCode;
using plan::Program;
using plan::Storage;

// Whether neighbours stay neighbours.
bool moves_lines(const plan::MoveCode& move) {
  const auto is_line = [](const plan::MoveCode::Region& region) {
    return region.from == plan::kNoSlot || region.dims.empty() || region.dims.back() == 1 ||
           (region.in_strides.back() == 1 && region.out_strides.back() == 1);
  };
  return !move.regions.empty() && std::ranges::all_of(move.regions, is_line);
}

// How often each instruction runs per iteration: each of two branches counts as half.
std::vector<double> shares_of(const Program& p, const Loop& loop) {
  std::vector<double> shares(loop.last - loop.first + 1, 1);
  auto halve = [&](uint32_t from, uint32_t to) {
    for (uint32_t pc = from; pc < std::min(to, loop.last); ++pc) shares[pc - loop.first] /= 2;
  };
  for (uint32_t pc = loop.first + 1; pc < loop.last; ++pc) {
    const Instruction& in = p.code[pc];
    if (in.code != OpCode::kBranchUnless || in.target <= pc) continue;
    halve(pc + 1, in.target);
    // The jump at the end of one branch skips the other.
    const Instruction& end = p.code[in.target - 1];
    if (end.code == OpCode::kJump && end.target > in.target) halve(in.target, end.target);
  }
  return shares;
}

// The type of a result or operand in which native code does not compute; kUndefined if there is none.
ElementType foreign_type_of(const ir::Node& node) {
  ElementType foreign = ElementType::kUndefined;
  const auto look = [&](const ir::Value* v) {
    if (v && !plan::is_native(v->type.element)) foreign = v->type.element;
  };
  for (const ir::Value* v : node.inputs) look(v);
  for (const ir::Value* v : node.outputs) look(v);
  return foreign;
}

// Whether native code keeps parts of the states in registers over many iterations: the body is elementwise arithmetic
// only (jit/element_strips.cc).
bool stays_in_registers(const Program& p, const Loop& loop) {
  if (loop.continues != plan::kNoSlot || !loop.scan_inputs.empty() || !loop.scan_outputs.empty()) return false;
  int64_t count = 0;
  for (uint32_t pc = loop.first + 1; pc < loop.last; ++pc) {
    const OpCode code = p.code[pc].code;
    if (code == OpCode::kCopy || code == OpCode::kLoopNext || code == OpCode::kLoopNextSimple) continue;
    const plan::ElementwiseCode* group = plan::elementwise_code(p, pc);
    if (!group || !group->reductions.empty() || (count != 0 && group->count != count)) return false;
    count = group->count;
    const auto moves = [](const auto& in) { return in.broadcast == plan::ElementwiseCode::Broadcast::kOther; };
    if (std::ranges::any_of(group->inputs, moves)) return false;
  }
  return true;
}

// Walks the body of one loop.
class Body {
 public:
  Body(const LoopCost& cost, uint32_t index, const std::vector<LoopReport>& others, LoopReport& report)
      : p_(cost.program),
        loop_(p_.loops[index]),
        index_(index),
        roof_(cost.roof),
        measured_(cost.measured),
        others_(others),
        report_(report),
        shares_(shares_of(p_, loop_)),
        is_chain_(loop_.schedule.chain != nullptr),
        in_registers_(stays_in_registers(p_, loop_)) {
    const uint32_t outer = cost.native ? cost.native->outermost(index) : index;
    is_native_ = cost.native && cost.native->code(outer);
    if (is_native_) made_ = cost.native->state(outer);
    waits_ = is_native_ ? costs::kNativeIterationNs : is_chain_ ? costs::kChainIterationNs : costs::kIterationNs;
    for (uint32_t pc = 0; pc < p_.code.size(); ++pc) {
      const ir::Node* node = p_.code[pc].code == OpCode::kKernel ? p_.node_of[pc] : nullptr;
      if (node && node->attributes.has(kHalfWeights)) half_weights_.insert(p_.code[pc].operands[1]);
    }
  }

  void run() {
    for (const BodyPart& part : plan::parts_of_body(p_, loop_)) {
      if (part.kind == BodyPart::Kind::kLoop) {
        add_inner(others_[part.loop], inner_iterations(part.loop));
      } else {
        add(part);
      }
    }
    finish();
  }

 private:
  // An instruction's work in an iteration, and the share of iterations in which it runs.
  struct Part : BodyPart {
    double share;
    bool called;
    Work work;
    double traffic;

    bool is_kernel() const { return kind == Kind::kGroup || kind == Kind::kKernel; }
    bool is_written() const { return group || code; }
    double steps() const { return group ? static_cast<double>(group->steps.size()) : 1; }
  };

  void add(const BodyPart& body_part) {
    const uint32_t pc = body_part.pc;
    const double share = shares_[pc - loop_.first];
    Part part{body_part, share, false, share * work_at(pc, body_part.group), share * traffic_at(pc)};
    part.called = part.is_kernel() && is_called(part);
    report_.traffic += part.traffic;
    if (part.kind == BodyPart::Kind::kDynamic) leave_out(pc);
    if (part.called) {
      report_.calls.push_back(call_of(part));
    } else if (part.is_kernel()) {
      report_.operations += static_cast<size_t>(part.steps());
    }
    const double weights = new_weights(part);
    all_ += part.work;
    memory_ += weights;
    if (const std::optional<double> took = measured_ns(part)) {
      measured_ns_ += *took;
      measured_nodes_.insert(p_.node_of[pc]);
      add_node(pc, *took);
      return;
    }
    known_ += part.work;
    known_memory_ += weights;
    add_node(pc, estimate(part));
  }

  void add_node(uint32_t pc, double ns) {
    if (!p_.node_of[pc] || !is_timed_alone(p_.code[pc].code)) return;
    report_.nodes.push_back({.node = std::string(p_.node_of[pc]->name),
                             .op = plan::op_names(p_, pc),
                             .method = std::string(plan::method_of(p_, pc)),
                             .loop = static_cast<int>(index_),
                             .ns = ns});
  }

  // Bytes of weights that no earlier instruction has read.
  double new_weights(const Part& part) {
    double weights = 0;
    for (const uint32_t s : operands_of(part.pc)) {
      if (touched_.insert(s).second && is_weight(part, s)) weights += part.share * bytes_of(s);
    }
    return weights;
  }

  // Adds to the estimate of the iteration, and returns what it added.
  double estimate(const Part& part) {
    const double before = waits_ + computes_;
    double takes = work_ns(roof_, part.work) / costs::kReachedShare;
    if (part.kind == BodyPart::Kind::kDynamic) {
      const Instruction& in = p_.code[part.pc];
      const bool has_kernel = in.code != OpCode::kMove && p_.dynamic[in.index].kernel.run != nullptr;
      waits_ += part.share * (has_kernel ? costs::kDynamicKernelNs : costs::kDynamicNs);
    } else if (is_native_) {
      waits_ += part.share * native_waits(part);
      if (part.group && !in_registers_) takes = std::max(takes, part.share * cached_ns(streamed_by(*part.group)));
    } else if (part.is_kernel()) {
      const double each = is_chain_ ? costs::kChainOperationNs : costs::kOperationNs;
      const double around = is_chain_ ? 0 : part.group ? costs::kInstructionNs : costs::kKernelNs;
      waits_ += part.share * (around + each * part.steps());
    }
    computes_ += is_native_ && !part.called ? takes : std::max(takes, cached_ns(part.traffic));
    return waits_ + computes_ - before;
  }

  void finish() {
    for (const uint32_t s : touched_) report_.bytes += bytes_of(s);
    double rows = 0;
    for (const plan::ScanInput& scan : loop_.scan_inputs) rows += static_cast<double>(scan.element_bytes);
    for (const plan::ScanOutput& scan : loop_.scan_outputs) rows += static_cast<double>(scan.element_bytes);
    const double speed = roof_.bytes_per_ns(report_.bytes);
    const auto node_ns = [&](const ir::Node& node) { return work_ns(roof_, work_of(node)); };
    const auto known_ns = [&](const ir::Node& node) { return measured_nodes_.contains(&node) ? 0 : node_ns(node); };
    const double least[] = {work_ns(roof_, all_), (memory_ + rows) / speed, carried_ns(loop_, roof_, node_ns)};
    report_.flops += operations_of(all_);
    const auto* bound = std::max_element(std::begin(least), std::end(least));
    report_.bound = static_cast<LoopReport::Bound>(bound - least);
    report_.roof_ns += *bound;
    // If weights are near, other costs dominate a product.
    const double far = report_.bytes > static_cast<double>(caches().second) ? 1 : costs::kReachedShare;
    const double rest = std::max(
        {computes_, work_ns(roof_, known_), (known_memory_ + rows) / speed / far, carried_ns(loop_, roof_, known_ns)});
    report_.measured_ns += measured_ns_;
    report_.estimated_ns += std::max(waits_ + rest + measured_ns_, *bound);
    if (!loop_.in_loop) add_outside();
  }

  // Nodes that rewriting has moved out of the loop keep their names. Their time is divided by the number of iterations.
  void add_outside() {
    const auto iterations = static_cast<double>(measured_ ? measured_->iterations(index_) : report_.iterations);
    if (iterations <= 0) return;
    const std::string prefix = std::string(loop_.node->name) + ":";
    const std::vector<int> loops = run::innermost_loops(p_);
    for (uint32_t pc = 0; pc < p_.code.size(); ++pc) {
      const ir::Node* node = p_.node_of[pc];
      if (loops[pc] >= 0 || !is_timed_alone(p_.code[pc].code) || !node) continue;
      if (std::string_view(node->name).starts_with(prefix)) add_outside(pc, iterations);
    }
  }

  void add_outside(uint32_t pc, double iterations) {
    const Work work = work_at(pc, plan::elementwise_code(p_, pc));
    const double estimate = costs::kKernelNs + work_ns(roof_, work) / costs::kReachedShare;
    const double takes = (measured_ ? measured_->total_ns(pc) : estimate) / iterations;
    if (plan::is_dynamic(p_.code[pc].code)) leave_out(pc);
    if (measured_) report_.measured_ns += takes;
    report_.estimated_ns += takes;
    report_.outside_ns += takes;
    // The speed of memory bounds only nodes whose operands are not in cache: the measured time is an upper bound.
    report_.roof_ns += std::min(work_ns(roof_, work) / iterations, takes);
    ++report_.outside;
  }

  double bytes_of(uint32_t s) const {
    const plan::Slot& slot = p_.slots[s];
    if (slot.storage == Storage::kNull || slot.storage == Storage::kHandle) return 0;
    if (slot.storage == Storage::kConstant) {
      return static_cast<double>(slot.constant.byte_size()) / (half_weights_.contains(s) ? 2 : 1);
    }
    return slot.type.is_concrete() ? static_cast<double>(known_element_count(slot.type.shape)) *
                                         static_cast<double>(byte_width(slot.type.element))
                                   : static_cast<double>(slot.bytes);
  }

  Work work_at(uint32_t pc, const plan::ElementwiseCode* code) const {
    if (code) return work_of(*code);
    Work work;
    if (p_.code[pc].code == OpCode::kRow) return work;  // sets a pointer only
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

  // Whether a slot cannot stay in registers between iterations: weights of products, and parts of constants that differ
  // from iteration to iteration.
  bool is_weight(const Part& part, uint32_t s) const {
    return part.work.flops > 0 && p_.slots[s].storage == Storage::kConstant && part.is_kernel();
  }

  // The slots whose elements an instruction reads and writes; empty for an instruction that only looks at one.
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

  // The measured time of an instruction per iteration, if that says more than an estimate: sizes are known only at run
  // time, or the instruction is so long that reading the clock does not matter. Short operations differ in native code,
  // so their measured time is not used.
  std::optional<double> measured_ns(const Part& part) const {
    constexpr double kLeastMeasuredNs = 100;
    if (!measured_ || !p_.node_of[part.pc]) return std::nullopt;
    const double took = measured_->ns(part.pc, index_);
    if (part.kind == BodyPart::Kind::kDynamic) return took;
    const bool is_long = part.is_kernel() && took >= kLeastMeasuredNs;
    return is_long && !(is_native_ && part.is_written()) ? std::optional(took) : std::nullopt;
  }

  // Notes a node of unknown sizes.
  void leave_out(uint32_t pc) {
    const ir::Node* node = p_.node_of[pc];
    if (!node) return;
    const NodeRemark left_out{node->name, node->op->name, {}};
    report_.unroofed.push_back(left_out);
    if (!measured_) report_.unsized.push_back(left_out);
    report_.is_complete &= measured_ != nullptr;
  }

  // Time of native code beside arithmetic: moving elements within registers, or many of them through memory.
  double native_waits(const Part& part) const {
    constexpr double kRegisterBytes = 2048;
    if (part.called) return costs::kNativeCallNs;
    if (!part.code) return 0;
    const double traffic = traffic_at(part.pc);
    const bool is_product = std::holds_alternative<plan::ProductCode>(*part.code);
    if (std::holds_alternative<plan::GatherCode>(*part.code) || (is_product && traffic > kRegisterBytes)) {
      return costs::kNativeMoveNs;
    }
    if (const auto* move = std::get_if<plan::MoveCode>(part.code); move && moves_lines(*move)) {
      return costs::kNativeMoveNs + cached_ns(traffic);
    }
    return costs::kNativeMoveNs +
           (traffic > kRegisterBytes ? cached_ns(traffic) : costs::kNativeMovedLineNs / 64 * traffic);
  }

  // Bytes that a group reads and writes, if they do not fit the first-level cache.
  double streamed_by(const plan::ElementwiseCode& code) const {
    constexpr double kNearestCacheBytes = 16384;
    std::set<uint32_t> slots;
    for (const auto& input : code.inputs) slots.insert(input.slot);
    for (const auto& output : code.outputs) slots.insert(output.slot);
    double bytes = 0;
    for (const uint32_t s : slots) bytes += bytes_of(s);
    return bytes > kNearestCacheBytes ? bytes : 0;
  }

  double cached_ns(double bytes) const { return bytes / roof_.bytes_per_ns(bytes); }

  bool is_called(const Part& part) const {
    if (!is_native_) return !part.is_written();
    return std::find(made_.calls.begin(), made_.calls.end(), part.pc) != made_.calls.end();
  }

  NodeRemark call_of(const Part& part) const {
    const ir::Node& node = *p_.node_of[part.pc];
    NodeRemark call{node.name, plan::op_names(p_, part.pc), {}};
    const ElementType foreign = foreign_type_of(node);
    if (node.op->elementwise && !part.is_written() && foreign != ElementType::kUndefined) {
      call.remark = fmt::format("native code does not compute with elements of type {}", info(foreign).name);
    } else if (part.is_written()) {
      call.remark = "so long, or so spread, that its kernel is as fast";
    } else {
      call.remark = "native code calls its kernel";
    }
    return call;
  }

  // Iterations of an inner loop per iteration of the loop around it; -1 if unknown.
  double inner_iterations(uint32_t inner) const {
    if (!measured_ || measured_->iterations(index_) == 0) return static_cast<double>(others_[inner].iterations);
    return static_cast<double>(measured_->iterations(inner)) / static_cast<double>(measured_->iterations(index_));
  }

  void add_inner(const LoopReport& of, double known_iterations) {
    const double iterations = known_iterations < 0 ? 1 : known_iterations;
    report_.flops += iterations * of.flops;
    report_.traffic += iterations * of.traffic;
    report_.bytes += of.bytes;
    report_.estimated_ns += iterations * of.estimated_ns;
    report_.measured_ns += iterations * of.measured_ns;
    report_.roof_ns += iterations * of.roof_ns;
    report_.is_complete &= of.is_complete && known_iterations >= 0;
    report_.unsized.insert(report_.unsized.end(), of.unsized.begin(), of.unsized.end());
    report_.unroofed.insert(report_.unroofed.end(), of.unroofed.begin(), of.unroofed.end());
    if (known_iterations < 0) report_.unsized.push_back({of.node, of.op, {}});
  }

  const Program& p_;
  const Loop& loop_;
  const uint32_t index_;
  const Roofline& roof_;
  const Measured* measured_;
  const std::vector<LoopReport>& others_;
  LoopReport& report_;
  const std::vector<double> shares_;
  const bool is_chain_, in_registers_;
  bool is_native_ = false;
  NativeLoops::State made_;
  std::set<uint32_t> half_weights_;  // slots of constants that products have packed in float16
  std::set<uint32_t> touched_;
  std::set<const ir::Node*> measured_nodes_;
  Work all_, known_;  // of all nodes; of nodes that were not measured
  double memory_ = 0, known_memory_ = 0, computes_ = 0, measured_ns_ = 0, waits_ = 0;
};

}  // namespace

void LoopCost::add(uint32_t loop, const std::vector<LoopReport>& others, LoopReport& report) const {
  Body(*this, loop, others, report).run();
}

double LoopCost::outside_ns(uint32_t pc) const {
  if (measured) return measured->total_ns(pc);
  Work work;
  if (const plan::ElementwiseCode* group = plan::elementwise_code(program, pc)) {
    work = work_of(*group);
  } else {
    for (const ir::Node* node : plan::nodes_of(program, pc)) work += work_of(*node);
  }
  return costs::kKernelNs + work_ns(roof, work) / costs::kReachedShare;
}

void LoopCost::add_run(Explanation& e) const {
  if (measured) e.measured_run_ns = measured->run_ns();
  const std::vector<int> loops = run::innermost_loops(program);
  for (uint32_t pc = 0; pc < program.code.size(); ++pc) {
    const ir::Node* node = program.node_of[pc];
    if (loops[pc] >= 0 || !node || !is_timed_alone(program.code[pc].code)) continue;
    e.nodes.push_back({.node = std::string(node->name),
                       .op = plan::op_names(program, pc),
                       .method = std::string(plan::method_of(program, pc)),
                       .ns = outside_ns(pc)});
    e.outside_ns += e.nodes.back().ns;
  }
  for (LoopReport& loop : e.loops) {
    loop.run_ns = loop.estimated_ns * loop.iterations_in_run;
    for (NodeCost cost : loop.nodes) {
      cost.ns *= loop.iterations_in_run;
      e.nodes.push_back(std::move(cost));
    }
    if (loop.parent >= 0) continue;
    e.estimated_run_ns += loop.run_ns;
    e.outside_ns -= loop.outside_ns * loop.iterations_in_run;  // counted with the loop
  }
  e.outside_ns = std::max(e.outside_ns, 0.0);
  e.estimated_run_ns += e.outside_ns;
  std::ranges::sort(e.nodes, [](const NodeCost& a, const NodeCost& b) {
    return std::tie(b.ns, a.loop, a.node) < std::tie(a.ns, b.loop, b.node);
  });
}

}  // namespace treadle::report
