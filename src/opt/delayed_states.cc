// A state that is made of the scan inputs of its trip alone is what the trip before would have read: the samples before
// a window, the frame before a frame. It becomes a scan input, one trip late:
//
//   Scan(c0, X; c, x: c' = tail(x); y = f(c, x))
//   becomes  C = concat(c0, tail(X));  Scan(C[:-1], X; c, x: y = f(c, x))
//
// and what f makes of both no longer waits for the trip before. States of states (a line of delays) follow in turn.
//
// It pays where products or convolutions read such a state, which then run for all trips at once (opt/batching.cc), and
// where nothing else is carried, so that the loop is a map (opt/maps.cc). A few moves of registers are cheaper than
// what memory does for all trips.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "op/loop_view.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/stacked.h"
#include "opt/uses.h"

namespace treadle::opt {

namespace {

class Delayer {
 public:
  Delayer(ir::Graph& graph, ir::Region& region, size_t at, Remarks* remarks,
          std::unordered_map<ir::Value*, ir::Value*>& replaced)
      : graph_(graph),
        region_(region),
        at_(at),
        scan_(*region.nodes[at]),
        body_(scan_.body()),
        remarks_(remarks),
        replaced_(replaced) {}

  // Returns how many nodes were put before the Scan.
  size_t run() {
    if (!read()) return 0;
    find_delayed();
    if (delayed_.empty()) return 0;
    if (!becomes_map()) keep_those_of_products();
    if (delayed_.empty()) return 0;
    StackedNodes outside(graph_, region_, at_, values_.trips());
    for (size_t i = 0; i < scan_.scan_inputs(); ++i) {
      outside.set(scan_.scan_input(i).element, scan_.scan_input(i).whole);
    }
    for (const size_t state : delayed_) make_input(outside, state);
    drop_states();
    keep_read(outside);
    return outside.added();
  }

 private:
  bool read() {
    if (scan_.masked()) return false;
    return values_.begin(scan_) && !values_.trips().is_unknown();
  }

  bool is_free(const ir::Value* v) const { return values_.has(v); }

  // --- what depends on scan inputs alone, perhaps of trips before

  void find_delayed() {
    for (bool any = true; any;) {
      any = false;
      for (const auto& node : body_.nodes) {
        if (free_.contains(node.get()) || !values_.add_results(*node, body_)) continue;
        free_.insert(node.get());
        any = true;
      }
      for (size_t i = 0; i < scan_.states(); ++i) {
        const auto [initial, before, after, final] = scan_.state(i);
        if (is_free(before) || !is_free(after) || !fits(*initial, *after)) continue;
        values_.add(before, values_.reverse(after));
        delayed_.push_back(i);
        any = true;
      }
    }
  }

  // The first trip reads what was given, of the type that all others read.
  static bool fits(const ir::Value& initial, const ir::Value& after) {
    const Type &given = initial.type, &next = after.type;
    return given.is_concrete() && next.is_concrete() && given.element == next.element && same(given.shape, next.shape);
  }

  // --- whether it pays

  bool becomes_map() const {
    for (size_t i = 0; i < scan_.states(); ++i) {
      if (!scan_.is_kept(i) && !is_free(scan_.state(i).before)) return false;
    }
    return std::all_of(body_.nodes.begin(), body_.nodes.end(),
                       [&](const auto& node) { return free_.contains(node.get()); });
  }

  // States that products read, and the states that those are made of.
  void keep_those_of_products() {
    std::unordered_set<const ir::Value*> wanted;
    const auto want_inputs = [&](const ir::Node& node) { wanted.insert(node.inputs.begin(), node.inputs.end()); };
    for (size_t before = SIZE_MAX; before != wanted.size();) {
      before = wanted.size();
      for (size_t i = body_.nodes.size(); i-- > 0;) {
        const ir::Node& node = *body_.nodes[i];
        const bool is_read = std::any_of(node.outputs.begin(), node.outputs.end(),
                                         [&](const ir::Value* v) { return v && wanted.contains(v); });
        if (free_.contains(&node) && (is_read || is_product_with_weights(node, values_.varies()))) want_inputs(node);
      }
      for (const size_t state : delayed_) {
        if (wanted.contains(scan_.state(state).before)) wanted.insert(scan_.state(state).after);
      }
    }
    std::erase_if(delayed_, [&](size_t state) { return !wanted.contains(scan_.state(state).before); });
  }

  // --- the change

  void make_input(StackedNodes& outside, size_t state) {
    const auto [initial, element, next, final] = scan_.state(state);
    note_of_loop(remarks_, Change::kDelayed, scan_.node(), scan_.node(), element->name);
    take_out(outside, next);
    const auto [before, last] = outside.delayed(initial, next, values_.reverse(element), std::string(element->name));
    outside.set(element, before);
    if (final) replaced_[final] = last;
    inputs_.push_back(element);
  }

  // The node that makes `v`, behind those that make what it reads. States of states come in the order in which they
  // were found, so that what is left of their lines is there already.
  void take_out(StackedNodes& outside, const ir::Value* v) {
    if (!is_free(v) || outside.has(v)) return;
    const ir::Node* maker = v->producer;
    for (const ir::Value* input : maker->inputs) take_out(outside, input);
    const auto at =
        std::find_if(body_.nodes.begin(), body_.nodes.end(), [&](const auto& node) { return node.get() == maker; });
    std::unique_ptr<ir::Node> node = std::move(*at);
    body_.nodes.erase(at);
    for (ir::Value* made : node->outputs) {
      if (made) moved_.push_back(made);
    }
    outside.add(std::move(node));
  }

  // Of what was taken out, the body reads on what it read before.
  void keep_read(const StackedNodes& outside) {
    const ValueSet read = values_read(body_);
    for (ir::Value* v : moved_) {
      if (read.contains(v)) inputs_.push_back(v);
    }
    for (ir::Value* v : inputs_) scan_.add_scan_input(outside.whole(v), v, values_.reverse(v));
  }

  void drop_states() {
    std::sort(delayed_.begin(), delayed_.end());
    for (size_t i = delayed_.size(); i-- > 0;) scan_.remove_state(delayed_[i]);
  }

  ir::Graph& graph_;
  ir::Region& region_;
  const size_t at_;
  LoopEditor scan_;
  ir::Region& body_;
  Remarks* remarks_;
  std::unordered_map<ir::Value*, ir::Value*>& replaced_;  // results of the Scan that others take the place of
  FromScanInputs values_;
  std::unordered_set<const ir::Node*> free_;  // nodes that make such values
  std::vector<size_t> delayed_;               // states, each behind those that it is made of
  std::vector<ir::Value*> moved_;             // what nodes make that left the body
  std::vector<ir::Value*> inputs_;            // new inputs of the body
};

}  // namespace

void delay_states(ir::Graph& graph, Remarks* remarks) {
  std::unordered_map<ir::Value*, ir::Value*> replaced;
  visit_nodes(graph.top(), [&](ir::Region& region, size_t at) {
    return is_scan(*region.nodes[at]) ? at + Delayer(graph, region, at, remarks, replaced).run() : at;
  });
  if (!replaced.empty()) ir::replace_uses(graph, replaced);
}

}  // namespace treadle::opt
