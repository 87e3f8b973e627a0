// One walk over the graph, region by region, in order. A node is taken from a queue. The nodes that replace it (from a
// chosen branch, or a lowering) are put at the front of the queue, and are visited again. Inference first brings the
// types of a loop's body to a fixed point, without changing the body; then the body is walked in the same way.
#include "plan/specialize.h"

#include <algorithm>
#include <deque>

#include "base/stop.h"
#include "ir/nesting.h"
#include "kernels/dispatch.h"
#include "op/loop_view.h"
#include "op/lower.h"
#include "op/node.h"
#include "op/operands.h"
#include "op/place.h"
#include "op/registry.h"
#include "op/size_check.h"
#include "opt/builder.h"
#include "opt/passes.h"
#include "opt/uses.h"
#include "plan/unknown_sizes.h"

namespace treadle::plan {

namespace {

// The purpose of a walk.
enum class Aim : uint8_t {
  kDecide,  // operators stay as in the model
  kLower,   // operators are lowered to the ones that run
  kCheck,   // likewise, to find the first node that cannot work
};

class Specializer {
 public:
  // `asks`: lowered nodes get checks in the run of sizes that this walk does not know.
  Specializer(ir::Graph& graph, opt::Remarks& remarks, Aim aim, const reference::FoldLimits& limits, bool asks = false)
      : graph_(graph),
        remarks_(remarks),
        aim_(aim),
        asks_(asks),
        lowers_(aim != Aim::kDecide),
        inference_({.fold = true,
                    .fold_limits = limits,
                    .trust_containers = false,
                    .keep_declared = false,
                    .check_types = true,
                    .fails_late = aim != Aim::kDecide}) {}

  Status run(std::span<const InputSpec> inputs) {
    ir::Region& top = graph_.top();
    for (size_t i = 0; i < top.inputs.size(); ++i) {
      top.inputs[i]->type = inputs[i].type;
      is_open_ |= std::ranges::any_of(inputs[i].type.shape, [](const Dim& size) { return size.is_symbolic(); });
      if (inputs[i].contents.defined()) inference_.set_constant(top.inputs[i], inputs[i].contents);
    }
    return walk(top);
  }

  // Whether a node was lowered although some of its sizes are known neither as numbers nor as symbols.
  bool met_unknown_sizes() const { return met_unknown_sizes_; }

  // Values that replace values of the model get their origins; `same` gets origins that a value has already.
  void hand_on_origins(SameOrigins& same) const {
    std::vector<std::pair<uint32_t, ir::Value*>> replaced;
    for (const auto& [from, to] : replaced_) {
      if (ir::Value* const value = from->origin != 0 ? resolve(to) : nullptr)
        replaced.emplace_back(from->origin, value);
    }
    std::sort(replaced.begin(), replaced.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [origin, value] : replaced) {
      if (value->origin == 0) value->origin = origin;
      if (value->origin != origin) same.emplace_back(origin, value->origin);
    }
  }

 private:
  Status walk(ir::Region& region) {
    std::deque<std::unique_ptr<ir::Node>> queue;
    refill(queue, std::move(region.nodes));
    region.nodes.clear();
    while (!queue.empty()) {
      if (stop_requested()) return stopped();
      std::unique_ptr<ir::Node> node = std::move(queue.front());
      queue.pop_front();
      ir::replace_uses(*node, replaced_);
      TREADLE_TRY(visit(region, queue, std::move(node)));
    }
    for (ir::Value*& v : region.outputs) v = resolve(v);
    for (ir::Value* v : region.outputs) keep_constant(v);
    return {};
  }

  Status visit(ir::Region& region, std::deque<std::unique_ptr<ir::Node>>& queue, std::unique_ptr<ir::Node> node) {
    if (node->op->control == Control::kIf) {
      if (const Tensor* condition = inference_.constant(IfView(*node).condition());
          condition && condition->element_count() == 1 && condition->type() == ElementType::kBool) {
        return choose_branch(region, queue, *node, *condition->data<bool>());
      }
    }
    if (is_size_check(*node->op)) return keep_check(region, std::move(node));
    if (Status status = inference_.infer(*node); !status.ok()) return fail_late(region, node, std::move(status));
    if (Status status = check_stated(*node); !status.ok()) return fail_late(region, node, std::move(status));
    if (all_known(*node)) return fold_away(region, *node);
    if (is_identity(*node)) {
      hold(region, *node, 0, node->inputs[0]);
      replaced_[node->outputs[0]] = node->inputs[0];
      opt::note(&remarks_, opt::Change::kElided, region, *node);
      return {};
    }
    if (lowers_ && node->op->lowers(*node->version)) return lower(region, queue, node);
    if (lowers_ && node->op->control == Control::kScan && move_axes(region, queue, node)) return {};
    ir::Node* kept = node.get();
    for (ir::Value* v : kept->inputs) keep_constant(v);
    region.nodes.push_back(std::move(node));
    for (size_t i = 0; i < kept->outputs.size(); ++i) hold(region, *kept, i, kept->outputs[i]);
    for (auto& body : kept->regions) {
      TREADLE_TRY(walk(*body));
    }
    return {};
  }

  // Checks that a lowered node's result has the sizes that the node's own inference stated: bodies of loops and readers
  // of the result were planned with these.
  Status check_stated(const ir::Node& node) const {
    for (const ir::Value* v : node.outputs) {
      const auto stated = stated_.find(v);
      if (!v || stated == stated_.end() || !v->type.has_shape || v->type.kind != stated->second.kind) continue;
      TREADLE_TRY(check_result(v->type.shape, stated->second.shape));
    }
    return {};
  }

  // Adds a check in the run if only the run knows whether `made`, which replaces output `i` of `node`, has the stated
  // sizes.
  void hold(ir::Region& region, const ir::Node& node, size_t i, ir::Value* made) {
    const auto stated = asks_ ? stated_.find(node.outputs[i]) : stated_.end();
    if (made && stated != stated_.end()) hold_in_run(graph_, region, node, made, stated->second);
  }

  // A check of sizes from an earlier round. With more sizes known, it may be certain to pass; then it goes. If it is
  // certain to fail, it fails in the run, if the run reaches it.
  Status keep_check(ir::Region& region, std::unique_ptr<ir::Node> node) {
    const Status status = inference_.infer(*node);
    const auto is_concrete = [](const ir::Value* v) { return v->type.is_concrete(); };
    if (status.ok() && std::all_of(node->inputs.begin(), node->inputs.end(), is_concrete)) return {};
    for (ir::Value* v : node->inputs) keep_constant(v);
    region.nodes.push_back(std::move(node));
    return {};
  }

  // Makes a constant that only inference knows a constant of the graph.
  void keep_constant(ir::Value* v) {
    if (!v || v->is_constant()) return;
    const Tensor* t = inference_.constant(v);
    if (!t) return;
    v->constant = *t;
    v->type = Type::tensor(t->type(), to_shape(t->dims()));
  }

  bool all_known(const ir::Node& node) const {
    if (node.op->effects == Effects::kRandom) return false;
    for (const ir::Value* v : node.outputs) {
      if (v && !inference_.constant(v)) return false;
    }
    return !node.outputs.empty();
  }

  Status fold_away(const ir::Region& region, ir::Node& node) {
    opt::note(&remarks_, opt::Change::kFolded, region, node);
    for (ir::Value* v : node.outputs) {
      keep_constant(v);
      if (v) v->producer = nullptr;
    }
    return {};
  }

  static bool is_identity(const ir::Node& node) {
    return node.op->name == "Identity" && node.op->domain.empty() && node.outputs[0] && node.inputs[0];
  }

  Status choose_branch(ir::Region& region, std::deque<std::unique_ptr<ir::Node>>& queue, ir::Node& node,
                       bool condition) {
    ir::Region& branch = IfView(node).branch(condition);
    opt::note(&remarks_, opt::Change::kDecided, region, node, branch.attribute);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] && branch.outputs[i]) replaced_[node.outputs[i]] = branch.outputs[i];
    }
    for (auto& inner : branch.nodes) {
      inner->parent = &region;
      for (ir::Value* v : inner->outputs) {
        if (v) v->owner = &region;
      }
    }
    refill(queue, std::move(branch.nodes));
    return {};
  }

  // Whether a plan for any sizes checks such a node itself, when the run reaches the node.
  static bool is_left_to_run(const ir::Node& node, const ir::Region& region) {
    if (node.op->lowers(*node.version)) return false;
    const ir::Region* around = &region;
    while (around->parent_node && around->parent_node->op->control != Control::kIf) around = around->parent_region();
    return around->parent_node != nullptr;
  }

  void forget_types(ir::Node& node) {
    for (ir::Value* v : node.outputs) {
      if (!v) continue;
      inference_.forget(v);
      v->type = {};
    }
  }

  // Whether an operand of unknown type comes from a node that failed.
  static bool is_behind_failure(const ir::Node& node) {
    return std::any_of(node.inputs.begin(), node.inputs.end(),
                       [](const ir::Value* v) { return v && !v->is_constant() && !v->type.is_known(); });
  }

  // A node that fails with these sizes becomes a Trap, which raises the error if the run reaches it. Errors that hold
  // for any sizes are returned now.
  Status fail_late(ir::Region& region, std::unique_ptr<ir::Node>& node, Status status) {
    const bool is_of_model = status.code() == Code::kNotImplemented || status.code() == Code::kInternal;
    const bool said = is_of_model && !is_behind_failure(*node);
    if (!lowers_ || said || status.code() == Code::kCancelled) {
      return status.place().empty() ? std::move(status).in(node_place(*node)) : std::move(status);
    }
    if (aim_ == Aim::kCheck && !is_left_to_run(*node, region)) return status;
    const OpDef& op = require_op("Trap", "treadle");
    // The model is valid for other sizes.
    const bool of_sizes = node->op->control != Control::kNone && status.code() == Code::kInvalidModel;
    const Code code = of_sizes ? Code::kRuntime : status.code();
    ir::Attributes attributes;
    attributes.set(ir::Attribute::of("code", static_cast<int64_t>(code)));
    attributes.set(ir::Attribute::of("message", status.message()));
    attributes.set(named_as(*node));
    become(*node, op, attributes);
    node->inputs.clear();
    node->input_count = 0;
    node->regions.clear();
    region.nodes.push_back(std::move(node));
    forget_types(*region.nodes.back());
    return {};
  }

  Status lower(ir::Region& region, std::deque<std::unique_ptr<ir::Node>>& queue, std::unique_ptr<ir::Node>& owned) {
    ir::Node& node = *owned;
    const bool asks = depends_on_unknown_sizes(node, region);
    met_unknown_sizes_ |= asks;
    for (ir::Value* v : node.inputs) keep_constant(v);
    std::vector<const Type*> types;
    std::vector<const Tensor*> values;
    for (const ir::Value* v : node.inputs) {
      types.push_back(v ? &v->type : nullptr);
      values.push_back(v ? inference_.constant(v) : nullptr);
    }
    std::vector<ir::Value*> captured;
    auto lowered = lower_node(node, types, values, node.regions, &captured);
    if (!lowered.ok()) {
      Status refused = std::move(lowered).status();
      if (refused.code() != Code::kNotImplemented || !waits_for_sizes(node, region)) {
        return fail_late(region, owned, std::move(refused));
      }
      region.nodes.push_back(std::move(owned));
      return {};
    }
    if (asks && asks_) ask_in_run(graph_, region, node);
    ir::Graph& inner = **lowered;
    if (Status made = check_outputs_made(node, inner); !made.ok()) return std::move(made).in(node_place(node));
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (inner.top().inputs[i]) {
        inner.top().inputs[i]->constant = {};
        replaced_[inner.top().inputs[i]] = node.inputs[i];
      }
    }
    for (size_t i = 0; i < captured.size(); ++i) {
      replaced_[inner.top().inputs[node.inputs.size() + i]] = captured[i];
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (!node.outputs[i] || !inner.top().outputs[i]) continue;
      replaced_[node.outputs[i]] = inner.top().outputs[i];
      state(node.outputs[i], inner.top().outputs[i]);
    }
    leave_out_unused(inner, node);
    std::vector<std::unique_ptr<ir::Node>> made = graph_.splice(inner, &region);
    for (const auto& loop : made) {
      if (is_loop(*loop)) opt::note_of_loop(&remarks_, opt::Change::kLowered, *loop, node);
    }
    refill(queue, std::move(made));
    return {};
  }

  // Whether a lowering that needs sizes has to wait for the run. In a plan for any sizes it fails, so that these sizes
  // get a plan of their own, unless no plan can know them.
  bool waits_for_sizes(const ir::Node& node, const ir::Region& region) const {
    return node.regions.empty() && has_unknown_sizes(node, !is_open_ && opt::loop_around(region));
  }

  // Records the sizes that inference stated for `whole` as those of `made`, its replacement by a lowering. If a node of
  // a lowering is lowered in turn, the first statement stays.
  void state(const ir::Value* whole, const ir::Value* made) {
    const auto before = stated_.find(whole);
    if (before != stated_.end()) {
      stated_[made] = Type(before->second);
    } else if (whole->type.has_shape) {
      stated_[made] = whole->type;
    }
  }

  // Leaves out optional results that neither the users of the lowered node nor another node of the lowering reads.
  static void leave_out_unused(ir::Graph& lowered, const ir::Node& node) {
    opt::ValueSet used;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (const ir::Value* v = node.outputs[i] ? lowered.top().outputs[i] : nullptr) used.insert(v);
    }
    opt::for_each_use_inside(lowered.top(), [&](const ir::Value* v, const ir::Node*) {
      if (v) used.insert(v);
    });
    for (const auto& made : lowered.top().nodes) {
      for (size_t i = 0; i < made->outputs.size(); ++i) {
        const Formal* formal = made->version->output(i);
        if (made->outputs[i] && !used.contains(made->outputs[i]) && formal && formal->arity == Arity::kOptional)
          made->outputs[i] = nullptr;
      }
    }
  }

  static void refill(std::deque<std::unique_ptr<ir::Node>>& queue, std::vector<std::unique_ptr<ir::Node>> nodes) {
    for (size_t i = nodes.size(); i-- > 0;) queue.push_front(std::move(nodes[i]));
  }

  ir::Value* resolve(ir::Value* v) const {
    for (auto it = replaced_.find(v); v && it != replaced_.end(); it = replaced_.find(v)) v = it->second;
    return v;
  }

  // Programs slice and stack along axis 0 only; other axes are moved there before the loop and back behind it.
  bool move_axes(ir::Region& region, std::deque<std::unique_ptr<ir::Node>>& queue, std::unique_ptr<ir::Node>& node) {
    LoopEditor scan(*node);
    std::vector<std::unique_ptr<ir::Node>> before, after;
    for (size_t i = 0; i < scan.scan_inputs(); ++i) {
      const LoopView::ScanInput in = scan.scan_input(i);
      if (in.axis == 0) continue;
      before.push_back(move_axis(region, *node, ":scan_input", in.axis, 0));
      graph_.add_input(before.back().get(), in.whole);
      scan.set_scan_input(i, graph_.add_output(before.back().get(), node->name + ":scan_input"));
    }
    for (size_t i = 0; i < scan.scan_outputs(); ++i) {
      const LoopView::ScanOutput out = scan.scan_output(i);
      if (out.axis == 0 || !out.whole) continue;
      after.push_back(move_axis(region, *node, ":scan_output", 0, out.axis));
      scan.set_scan_output(i, graph_.new_value(out.whole->name + ":stacked", {}, &region));
      graph_.add_input(after.back().get(), scan.scan_output(i).whole);
      ir::Value* result = graph_.add_output(after.back().get(), out.whole->name);
      replaced_[out.whole] = result;
    }
    if (before.empty() && after.empty()) return false;
    scan.move_axes_first();
    refill(queue, std::move(after));
    queue.push_front(std::move(node));
    refill(queue, std::move(before));
    return true;
  }

  std::unique_ptr<ir::Node> move_axis(ir::Region& region, const ir::Node& scan, const char* what, int64_t from,
                                      int64_t to) {
    const size_t at = region.nodes.size();
    opt::Builder(graph_, region, at, &scan)
        .node("MoveAxis", scan.name + what, {ir::Attribute::of("from", from), ir::Attribute::of("to", to)});
    return opt::take_out(region, at);
  }

  ir::Graph& graph_;
  opt::Remarks& remarks_;
  const Aim aim_;
  const bool asks_;
  bool met_unknown_sizes_ = false;
  bool is_open_ = false;  // for any sizes: sizes of inputs are symbols
  const bool lowers_;
  Inference inference_;
  std::unordered_map<ir::Value*, ir::Value*> replaced_;
  std::unordered_map<const ir::Value*, Type> stated_;  // stated types of the results of lowered nodes
};

}  // namespace

Result<std::unique_ptr<ir::Graph>> decide(const ir::Graph& graph, std::span<const InputSpec> inputs) {
  TREADLE_TRY(ir::check_stack(graph));
  std::unique_ptr<ir::Graph> out = graph.clone();
  opt::Remarks unread;
  TREADLE_TRY(Specializer(*out, unread, Aim::kDecide, {}).run(inputs));
  opt::remove_dead_nodes(*out, &unread);
  return out;
}

Result<SizesTaken> check_sizes(const ir::Graph& graph, std::span<const InputSpec> inputs,
                               const reference::FoldLimits& limits) {
  TREADLE_TRY(ir::check_stack(graph));
  const std::unique_ptr<ir::Graph> looked_at = graph.clone();
  opt::Remarks unread;
  Specializer specializer(*looked_at, unread, Aim::kCheck, limits);
  TREADLE_TRY(specializer.run(inputs));
  return SizesTaken{specializer.met_unknown_sizes()};
}

Result<Specialized> specialize(const ir::Graph& graph, std::span<const InputSpec> inputs,
                               const opt::PipelineOptions& options) {
  TREADLE_TRY(ir::check_stack(graph));
  Specialized out{graph.clone()};
  const auto lower = [&]() -> Status {
    Specializer specializer(*out.graph, out.remarks, Aim::kLower, options.fold_limits, options.asks_in_run);
    TREADLE_TRY(specializer.run(inputs));
    specializer.hand_on_origins(out.same);
    return {};
  };
  opt::PipelineOptions passes = options;
  for (const InputSpec& input : inputs) passes.list_lengths.push_back(input.length);
  TREADLE_TRY(opt::run_passes(*out.graph, opt::Stage::kLowering, passes, &out.remarks));
  TREADLE_TRY(lower());
  TREADLE_TRY(opt::run_passes(*out.graph, opt::Stage::kSpecializing, passes, &out.remarks, lower));
  TREADLE_TRY(ir::check_stack(*out.graph));
  return out;
}

}  // namespace treadle::plan
