// Regroups chains of an operation that gives the same bits in any grouping (kernels::is_associative), so that operands
// that are ready first are combined first:
//
//   left' = Min(Min(left, up), corner) + cost   becomes   left' = Min(left, Min(up, corner)) + cost
//   hash' = Xor(Xor(hash, key), word)           becomes   hash' = Xor(hash, Xor(key, word)), Xor(key, word) hoisted
//
// The next iteration then waits for one operation on a state, not for all of them. Operands that depend on nothing
// inside of the loop are combined before it. Operands keep their order if the operation needs it.
//
// A chain is regrouped if its result is then ready earlier in native code, or if fewer of its operations stay in the
// loop and these work on no more elements than before. Its nodes stay the same, with other operands.
#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "op/elementwise.h"
#include "op/loop_view.h"
#include "op/work.h"
#include "opt/builder.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/uses.h"

namespace treadle::opt {

namespace {

using Time = double;
constexpr Time kBeforeLoop = -2, kFromStart = -1;

// When the values of a body are ready: before the loop; from the start of an iteration on, because they do not wait for
// the iteration before; or a number of additions (latency_of) after the states.
class Times {
 public:
  explicit Times(const LoopView& loop) : body_(loop.body()) {
    std::vector<size_t> waiting;
    for (size_t i = 0; i < loop.states(); ++i) {
      if (!loop.is_kept(i)) waiting.push_back(i);
    }
    // A state that is made of values that wait for no state is not waited for either: it is a row of the iteration
    // before.
    for (size_t before = SIZE_MAX; before != waiting.size();) {
      before = waiting.size();
      for (const ir::Value* v : body_.inputs) of_[v] = kFromStart;
      for (const size_t i : waiting) of_[loop.state(i).before] = 0;
      for (const auto& node : body_.nodes) add(*node);
      std::erase_if(waiting, [&](size_t i) { return of(loop.state(i).after) < 0; });
    }
  }

  Time of(const ir::Value* v) const {
    const auto found = of_.find(v);
    return found == of_.end() ? kBeforeLoop : found->second;
  }
  // Computes a node's times again after its inputs changed.
  void add(const ir::Node& node) {
    Time time = kFromStart;
    for (const ir::Value* v : node.inputs) time = std::max(time, of(v));
    for (const auto& region : node.regions) {
      for (const ir::Value* v : ir::captures(*region)) time = std::max(time, of(v));
    }
    const auto [latency, is_new] = latency_.try_emplace(&node, 0);
    if (is_new) latency->second = latency_of(node);
    for (const ir::Value* v : node.outputs) of_[v] = behind(time, latency->second);
  }
  static Time behind(Time operands, double latency) { return operands < 0 ? operands : operands + latency; }

 private:
  const ir::Region& body_;
  std::unordered_map<const ir::Value*, Time> of_;
  std::unordered_map<const ir::Node*, double> latency_;
};

// The operation of a node with two operands, if it may be grouped in any way.
std::optional<kernels::ElementwiseOp> operation_of(const ir::Node& node) {
  if (node.inputs.size() != 2 || !node.inputs[0] || !node.inputs[1] || !price_of(node)) return std::nullopt;
  if (node.version->attribute("broadcast")) return std::nullopt;  // old versions broadcast the second operand only
  const ElementwiseForm form = elementwise_form(node);
  const bool is_plain = form.kind == ElementwiseForm::Kind::kOperation && form.axis < 0 && form.arguments[0] == 0 &&
                        form.arguments[1] == 1;
  if (!is_plain || !kernels::is_associative(form.op, node.outputs[0]->type.element)) return std::nullopt;
  return form.op;
}

// An operand of a chain, or the combination of two.
struct Term {
  ir::Value* value = nullptr;  // null: not made yet
  Time time = kBeforeLoop;
  Shape shape;

  double elements() const { return static_cast<double>(known_element_count(shape)); }
  bool is_sooner_than(const Term& other) const {
    return time != other.time ? time < other.time : elements() < other.elements();
  }
};

// When the result of a chain is ready, how many of its operations stay in the loop, and on how many elements they work.
struct Cost {
  Time ready = kBeforeLoop;
  size_t operations = 0;
  double elements = 0;

  void add(const Term& result) {
    ready = result.time;
    if (result.time == kBeforeLoop) return;
    ++operations;
    elements += result.elements();
  }
  bool is_better_than(const Cost& other, bool counts_time) const {
    const bool is_sooner = counts_time && ready != other.ready;
    return (is_sooner ? ready < other.ready : operations < other.operations) && elements <= other.elements;
  }
};

// The order in which the operands of a chain are combined in pairs, until one value is left.
class Grouping {
 public:
  Grouping(std::vector<Term> operands, double latency, bool commutes) : terms_(std::move(operands)) {
    std::vector<size_t> left(terms_.size());
    std::iota(left.begin(), left.end(), 0);
    while (left.size() > 1) {
      if (commutes) {
        std::sort(left.begin(), left.end(), [&](size_t a, size_t b) { return is_sooner(a, b); });
      }
      size_t best = 0;
      Term next = together(left[0], left[1], latency);
      for (size_t i = 1; i + 1 < left.size() && !commutes; ++i) {
        Term candidate = together(left[i], left[i + 1], latency);
        if (!candidate.is_sooner_than(next)) continue;
        best = i;
        next = std::move(candidate);
      }
      steps_.emplace_back(left[best], left[best + 1]);
      left[best] = terms_.size();
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(best) + 1);
      cost_.add(next);
      terms_.push_back(std::move(next));
    }
  }

  const Cost& cost() const { return cost_; }

  // Turns `links` and `root`, the nodes of the chain, into these steps; the root is the last one. Steps that are the
  // same in every iteration go before the loop. Returns the other steps in order.
  std::vector<std::unique_ptr<ir::Node>> apply(std::vector<std::unique_ptr<ir::Node>> links, ir::Node& root,
                                               Builder& before_loop) {
    std::vector<std::unique_ptr<ir::Node>> staying;
    const size_t operands = terms_.size() - steps_.size();
    for (size_t k = 0; k < steps_.size(); ++k) {
      Term& result = terms_[operands + k];
      ir::Node& node = k < links.size() ? *links[k] : root;
      node.inputs[0] = terms_[steps_[k].first].value;
      node.inputs[1] = terms_[steps_[k].second].value;
      result.value = node.outputs[0];
      result.value->type.shape = result.shape;
      if (k == links.size()) break;
      if (result.time == kBeforeLoop) {
        before_loop.adopt(std::move(links[k]));
      } else {
        staying.push_back(std::move(links[k]));
      }
    }
    return staying;
  }

 private:
  bool is_sooner(size_t a, size_t b) const {
    return terms_[a].is_sooner_than(terms_[b]) || (!terms_[b].is_sooner_than(terms_[a]) && a < b);
  }

  Term together(size_t a, size_t b, double latency) const {
    Term result{nullptr, Times::behind(std::max(terms_[a].time, terms_[b].time), latency), terms_[a].shape};
    [[maybe_unused]] const Status fits = broadcast_into(result.shape, terms_[b].shape);
    TREADLE_ASSERT(fits.ok());  // the shapes did fit in the node's own order
    return result;
  }

  std::vector<Term> terms_;  // the operands, then the results of the steps
  std::vector<std::pair<size_t, size_t>> steps_;
  Cost cost_;
};

class Reassociator {
 public:
  Reassociator(ir::Graph& graph, ir::Region& region, size_t at, const Uses& uses, Remarks* remarks, bool counts_time)
      : loop_(*region.nodes[at]),
        body_(loop_.body()),
        before_(graph, region, at),
        uses_(uses),
        remarks_(remarks),
        counts_time_(counts_time) {}

  // Returns the number of nodes put before the loop.
  size_t run() {
    if (std::none_of(body_.nodes.begin(), body_.nodes.end(), [&](const auto& node) { return is_root(*node); }))
      return 0;
    times_.emplace(loop_);
    for (size_t at = 0; at < body_.nodes.size(); ++at) {
      if (is_root(*body_.nodes[at])) at = regroup(at);
      times_->add(*body_.nodes[at]);
    }
    return before_.added();
  }

 private:
  using Operation = kernels::ElementwiseOp;

  // Whether `v` is made in the body and has one reader.
  bool is_passed_on(const ir::Value* v) const {
    return v && v->producer && v->producer->parent == &body_ && uses_.reader(v);
  }
  bool is_link(const ir::Value* v, const ir::Node& root, Operation operation) const {
    return is_passed_on(v) && v->producer->version == root.version && operation_of(*v->producer) == operation;
  }
  // Whether the node is the last one of a chain.
  bool is_root(const ir::Node& node) const {
    if (node.inputs.size() != 2 || (!is_passed_on(node.inputs[0]) && !is_passed_on(node.inputs[1]))) return false;
    const auto operation = operation_of(node);
    if (!operation || (!is_link(node.inputs[0], node, *operation) && !is_link(node.inputs[1], node, *operation)))
      return false;
    const ir::Node* reader = uses_.reader(node.outputs[0]);
    return !reader || reader->parent != &body_ || reader->version != node.version || operation_of(*reader) != operation;
  }

  // Regroups the chain that ends at position `at`; returns the new position of its last node.
  size_t regroup(size_t at) {
    ir::Node& root = *body_.nodes[at];
    const Operation operation = *operation_of(root);
    std::vector<Term> operands;
    std::unordered_set<const ir::Node*> links;
    Cost cost;
    std::vector<ir::Value*> pending{root.inputs[1], root.inputs[0]};
    while (!pending.empty()) {
      ir::Value* v = pending.back();
      pending.pop_back();
      const Term term{v, times_->of(v), v->type.shape};
      if (!is_link(v, root, operation)) {
        operands.push_back(term);
        continue;
      }
      cost.add(term);
      links.insert(v->producer);
      pending.insert(pending.end(), {v->producer->inputs[1], v->producer->inputs[0]});
    }
    times_->add(root);
    cost.add({root.outputs[0], times_->of(root.outputs[0]), root.outputs[0]->type.shape});
    const bool commutes = kernels::is_commutative(operation, root.outputs[0]->type.element);
    Grouping grouping(std::move(operands), latency_of(root), commutes);
    if (!grouping.cost().is_better_than(cost, counts_time_)) return at;
    note(remarks_, Change::kRegrouped, body_, root);
    return rebuild(grouping, links, root);
  }

  // Puts each node of the chain right behind its inputs: the interpreter passes a result in registers to the next step.
  size_t rebuild(Grouping& grouping, const std::unordered_set<const ir::Node*>& links, const ir::Node& root) {
    std::vector<std::unique_ptr<ir::Node>> taken, nodes;
    for (auto& node : body_.nodes) {
      (links.contains(node.get()) ? taken : nodes).push_back(std::move(node));
    }
    std::unordered_map<const ir::Node*, size_t> place;  // the number of `nodes` in front of the node
    for (const auto& node : nodes) place.emplace(node.get(), place.size() + 1);
    std::vector<std::vector<std::unique_ptr<ir::Node>>> behind(nodes.size() + 1);
    for (auto& link : grouping.apply(std::move(taken), *nodes[place.at(&root) - 1], before_)) {
      times_->add(*link);
      size_t at = 0;
      for (const ir::Value* v : link->inputs) {
        if (const auto found = place.find(v->producer); found != place.end()) at = std::max(at, found->second);
      }
      place.emplace(link.get(), at);
      behind[at].push_back(std::move(link));
    }
    body_.nodes.clear();
    size_t at_root = 0;
    for (size_t i = 0; i <= nodes.size(); ++i) {
      if (i > 0 && nodes[i - 1].get() == &root) at_root = body_.nodes.size();
      if (i > 0) body_.nodes.push_back(std::move(nodes[i - 1]));
      std::move(behind[i].begin(), behind[i].end(), std::back_inserter(body_.nodes));
    }
    return at_root;
  }

  LoopEditor loop_;
  ir::Region& body_;
  std::optional<Times> times_;
  Builder before_;
  const Uses& uses_;
  Remarks* remarks_;
  const bool counts_time_;
};

}  // namespace

void reassociate(ir::Graph& graph, Remarks* remarks, bool compiles) {
  if (!has_node(graph.top(), [](const ir::Node& node) { return is_loop(node); })) return;
  const Uses uses(graph.top());
  visit_nodes(graph.top(), [&](ir::Region& region, size_t at) {
    return is_loop(*region.nodes[at]) ? at + Reassociator(graph, region, at, uses, remarks, compiles).run() : at;
  });
}

}  // namespace treadle::opt
