#include "report/explain.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "op/loop_view.h"
#include "op/op_def.h"
#include "plan/dynamic_code.h"
#include "report/explain_words.h"
#include "report/loop_cost.h"
#include "session/plan_cache.h"

namespace treadle::report {

using run::NativeLoops;

namespace {

using plan::Instruction;
using plan::kNoSlot;
using plan::Loop;
using plan::Program;

class Explainer {
 public:
  Explainer(const Program& program, const NativeLoops* native, std::span<const opt::Remarks* const> all_remarks,
            const Roofline& roof, const Measured* measured)
      : p_(program),
        native_(native),
        all_remarks_(all_remarks),
        measured_(measured),
        cost_{program, native, roof, measured} {}

  Explanation run() {
    Explanation e;
    e.instructions = p_.code.size();
    e.arena_bytes = p_.arena_bytes;
    for (const Instruction& in : p_.code) e.guarded += plan::is_dynamic(in.code);
    e.methods = methods();
    e.loops.resize(p_.loops.size());
    // Inner loops have larger numbers; what they take is part of what is around them.
    for (size_t i = p_.loops.size(); i-- > 0;) e.loops[i] = describe(static_cast<uint32_t>(i), e.loops);
    count_runs(e);
    for (size_t i = 0; i < p_.loops.size(); ++i) place(static_cast<uint32_t>(i), e.loops);
    cost_.add_run(e);
    for (const opt::Remarks* remarks : all_remarks_) {
      std::copy_if(remarks->entries().begin(), remarks->entries().end(), std::back_inserter(e.maps),
                   [](const opt::Remark& entry) {
                     return entry.change == opt::Change::kMapped || entry.change == opt::Change::kReassociated;
                   });
    }
    return e;
  }

 private:
  std::vector<MethodCount> methods() const {
    std::map<std::pair<std::string, std::string_view>, size_t> counts;
    for (uint32_t pc = 0; pc < p_.code.size(); ++pc) {
      const std::string_view method = plan::method_of(p_, pc);
      if (!method.empty()) ++counts[{plan::op_names(p_, pc), method}];
    }
    std::vector<MethodCount> found;
    for (const auto& [names, count] : counts) found.push_back({names.first, std::string(names.second), count});
    return found;
  }

  LoopReport describe(uint32_t index, const std::vector<LoopReport>& others) {
    const Loop& loop = p_.loops[index];
    LoopReport report;
    report.node = loop.node->name;
    report.op = loop.node->op->name;
    report.parent = parent(index);
    report.iterations = plan::planned_iterations(p_, loop);
    if (report.iterations < 0 && measured_) {
      report.iterations = static_cast<int64_t>(std::lround(measured_->iterations_each_time(index)));
    }
    report.states = loop.states.size();
    report.scan_inputs = loop.scan_inputs.size();
    report.scan_outputs = loop.scan_outputs.size();
    for (const plan::LoopState& state : loop.states) {
      report.state_bytes += state.bytes;
      report.unsized_states += !state.planned;
    }
    collect_rewrites(report);
    find_pipeline(index, report);
    report.strip_iterations = loop.schedule.strips.iterations;
    for (const plan::RowKernel& kernel : loop.schedule.strips.kernels) {
      const ir::Node& node = *p_.node_of[kernel.at];
      report.in_strips.push_back({std::string(node.name), node.op->name, {}});
    }
    find_obstacles(loop, report);
    cost_.add(index, others, report);
    return report;
  }

  void find_pipeline(uint32_t index, LoopReport& report) const {
    for (const plan::Pipeline& pipeline : p_.pipelines) {
      const auto is_this = [&](const plan::PipelineStage& stage) { return stage.loop == index; };
      if (std::none_of(pipeline.stages.begin(), pipeline.stages.end(), is_this)) continue;
      report.beside_iterations = pipeline.strip;
      for (const plan::PipelineStage& stage : pipeline.stages) {
        if (stage.loop != index && stage.loop != plan::PipelineStage::kNoLoop) {
          report.beside.emplace_back(p_.loops[stage.loop].node->name);
        }
      }
    }
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

  // Fills in how many iterations a run makes of each loop.
  void count_runs(Explanation& e) const {
    for (size_t i = 0; i < e.loops.size(); ++i) {  // outer loops come first
      LoopReport& loop = e.loops[i];
      if (measured_) {
        loop.iterations_in_run = static_cast<double>(measured_->iterations(static_cast<uint32_t>(i)));
        continue;
      }
      const double times = loop.parent < 0 ? 1 : e.loops[static_cast<size_t>(loop.parent)].iterations_in_run;
      loop.iterations_in_run =
          times * (loop.iterations < 0 ? kAssumedIterations : static_cast<double>(loop.iterations));
      e.assumes_iterations |= loop.iterations < 0;
    }
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
      report.why_not_native = of.tried && !of.why.empty()       ? of.why
                              : native_->mode() >= Jit::kAlways ? "it has not run yet"
                                                                : until_native(outer, loops, report);
    }
  }

  // Says when a loop that may become native code will be.
  std::string until_native(uint32_t outer, const std::vector<LoopReport>& loops, LoopReport& report) const {
    double lost_in_run = 0;
    for (uint32_t i = 0; i < loops.size(); ++i) {
      if (native_->outermost(i) == outer) lost_in_run += loops[i].iterations_in_run * native_->iteration_saves_ns(i);
    }
    const double left = std::max(native_->left_to_lose_ns(outer), 0.0);
    const bool is_known =
        measured_ || std::ranges::none_of(loops, [](const LoopReport& l) { return l.iterations < 0; });
    if (!is_known || lost_in_run <= 0) {
      return fmt::format("it will be once interpreting it has cost what compiling it does, about {}",
                         duration_text(left));
    }
    report.runs_until_native = std::max(std::ceil(left / lost_in_run), 1.0);
    return fmt::format("it will be after about {} of this size", runs_text(report.runs_until_native));
  }

  const Program& p_;
  const NativeLoops* native_;
  std::span<const opt::Remarks* const> all_remarks_;
  const Measured* measured_;
  LoopCost cost_;
};

}  // namespace

Explanation explain(const Program& program, const NativeLoops* native, std::span<const opt::Remarks* const> all_remarks,
                    const Roofline& roof, const Measured* measured) {
  return Explainer(program, native, all_remarks, roof, measured).run();
}

namespace {

Explanation explain_planned(const Session& session, const session::Planned& planned, const Measured* measured) {
  Explanation made = explain(*planned.program, planned.native.get(),
                             std::array{&session.load_remarks(), &planned.remarks}, measured_roofline(), measured);
  made.mode = session.options().jit;
  made.cache = session.native_cache().folder();
  return made;
}

// Names that inputs give to sizes, in order.
std::vector<std::string> open_sizes(const Session& session) {
  std::vector<std::string> names;
  for (const IoInfo& input : session.inputs()) {
    for (const Dim& dim : input.type.is_tensor() && input.type.has_shape ? input.type.shape : Shape{}) {
      const std::string name(dim.symbol_name());
      if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

}  // namespace

Result<Explanation> explain(const Session& session, std::span<const Feed> feeds) {
  if (session.options().tier == Tier::kReference) {
    return error(Code::kInvalidArgument,
                 "the reference interpreter runs the graph as it is: there is no plan to explain");
  }
  TREADLE_ASSIGN(const session::Planned* const planned, session.planned(feeds));
  if (planned) {
    std::optional<Measured> measured;
    if (!feeds.empty()) {
      measured = Measured::run(session, feeds, *planned->program);
    }
    return explain_planned(session, *planned, measured ? &*measured : nullptr);
  }
  TREADLE_ASSIGN(const session::Planned of_model, session.plan_model());
  Explanation made = explain_planned(session, of_model, nullptr);
  made.is_specific = false;
  made.open_sizes = open_sizes(session);
  return made;
}

}  // namespace treadle::report
