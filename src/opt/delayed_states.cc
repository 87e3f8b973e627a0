// A state that is made of the scan inputs of its trip alone is what the trip before would have read: the samples before
// a window, the frame before a frame. It becomes a scan input, one trip late:
//
//   Scan(c0, X; c, x: c' = tail(x); y = f(c, x))   becomes   C = concat(c0, tail(X)); Scan(C[:-1], X; c, x: y = f(c,
//   x))
//
// and what f makes of both no longer waits for the trip before. States of states (a line of delays) follow in turn.
//
// It pays where products or convolutions read such a state, which then run for all trips at once (opt/batching.cc), and
// where nothing else is carried, so that the loop is a map (opt/maps.cc). A few moves of registers are cheaper than
// what memory does for all trips.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/stop.h"
#include "op/op_def.h"
#include "op/scan_attributes.h"
#include "opt/all_trips.h"
#include "opt/passes.h"

namespace treadle::opt {

namespace {

class Delayer {
 public:
  Delayer(ir::Graph& graph, ir::Region& region, size_t at, Journal* journal,
          std::unordered_map<ir::Value*, ir::Value*>& replaced)
      : graph_(graph),
        region_(region),
        at_(at),
        scan_(*region.nodes[at]),
        body_(*scan_.region("body")),
        journal_(journal),
        replaced_(replaced) {}

  // Returns how many nodes were put before the Scan.
  size_t run() {
    if (!read()) return 0;
    find_delayed();
    if (delayed_.empty()) return 0;
    if (!becomes_map()) keep_those_of_products();
    if (delayed_.empty()) return 0;
    AllTrips outside(graph_, region_, at_, trips_);
    for (const ir::Value* v : scanned_) outside.set(v, whole_of(v));
    for (const size_t state : delayed_) make_input(outside, state);
    keep_read(outside);
    drop_states();
    return outside.added();
  }

 private:
  bool read() {
    const auto scan = read_scan(scan_, scan_.inputs.size(), body_.outputs.size());
    if (!scan.ok() || scan->masked) return false;
    states_ = scan->states;
    for (size_t i = 0; i < scan->inputs.size(); ++i) {
      const ir::Value* whole = scan_.inputs[states_ + i];
      if (scan->inputs[i].axis != 0 || !whole->type.has_shape || whole->type.shape.empty()) return false;
      const ir::Value* element = body_.inputs[states_ + i];
      scanned_.push_back(element);
      reverse_[element] = scan->inputs[i].reverse;
      trips_ = whole->type.shape[0];
    }
    return !scan->inputs.empty() && !trips_.is_unknown();
  }

  ir::Value* whole_of(const ir::Value* element) const {
    const auto at = std::find(body_.inputs.begin(), body_.inputs.end(), element) - body_.inputs.begin();
    return scan_.inputs[static_cast<size_t>(at)];
  }

  bool is_free(const ir::Value* v) const { return v && reverse_.contains(v); }
  Varies varies() const {
    return [this](const ir::Value* v) { return is_free(v); };
  }

  // --- what depends on scan inputs alone, perhaps of trips before

  void find_delayed() {
    for (bool any = true; any;) {
      any = false;
      for (const auto& node : body_.nodes) {
        if (!free_.contains(node.get()) && becomes_free(*node)) any = true;
      }
      for (size_t i = 0; i < states_; ++i) {
        const ir::Value* next = body_.outputs[i];
        if (is_free(body_.inputs[i]) || !is_free(next) || !fits(i)) continue;
        const bool reverse = reverse_.at(next);
        reverse_[body_.inputs[i]] = reverse;
        delayed_.push_back(i);
        any = true;
      }
    }
  }

  bool becomes_free(const ir::Node& node) {
    bool any = false, reverse = false;
    for (const ir::Value* v : node.inputs) {
      if (is_invariant(v, body_)) continue;
      const auto it = reverse_.find(v);
      if (it == reverse_.end() || (any && it->second != reverse)) return false;
      any = true;
      reverse = it->second;
    }
    if (!any || !runs_for_all_trips(node, varies(), trips_)) return false;
    free_.insert(&node);
    for (const ir::Value* v : node.outputs) {
      if (v) reverse_[v] = reverse;
    }
    return true;
  }

  // The first trip reads what was given, of the type that all others read.
  bool fits(size_t state) const {
    const Type &given = scan_.inputs[state]->type, &next = body_.outputs[state]->type;
    return given.is_concrete() && next.is_concrete() && given.element == next.element && same(given.shape, next.shape);
  }

  // --- whether it pays

  bool becomes_map() const {
    for (size_t i = 0; i < states_; ++i) {
      if (body_.outputs[i] != body_.inputs[i] && !is_free(body_.inputs[i])) return false;
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
        if (free_.contains(&node) && (is_read || is_product_with_weights(node, varies()))) want_inputs(node);
      }
      for (const size_t state : delayed_) {
        if (wanted.contains(body_.inputs[state])) wanted.insert(body_.outputs[state]);
      }
    }
    std::erase_if(delayed_, [&](size_t state) { return !wanted.contains(body_.inputs[state]); });
  }

  // --- the change

  void make_input(AllTrips& outside, size_t state) {
    ir::Value *element = body_.inputs[state], *next = body_.outputs[state];
    note_of_loop(journal_, Change::kDelayed, scan_, scan_, element->name);
    take_out(outside, next);
    const auto [before, last] =
        outside.delayed(scan_.inputs[state], next, reverse_.at(element), std::string(element->name));
    outside.set(element, before);
    if (ir::Value* result = scan_.outputs[state]) replaced_[result] = last;
    inputs_.push_back(element);
  }

  // The node that makes `v`, behind those that make what it reads. States of states come in the order in which they
  // were found, so that what is left of their lines is there already.
  void take_out(AllTrips& outside, const ir::Value* v) {
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
  void keep_read(const AllTrips& outside) {
    std::unordered_set<const ir::Value*> read;
    for (size_t i = 0; i < body_.outputs.size(); ++i) {
      const bool goes = i < states_ && std::find(delayed_.begin(), delayed_.end(), i) != delayed_.end();
      if (!goes) read.insert(body_.outputs[i]);
    }
    ir::for_each_node(body_, [&](const ir::Node& node) {
      read.insert(node.inputs.begin(), node.inputs.end());
      for (const auto& inner : node.regions) read.insert(inner->outputs.begin(), inner->outputs.end());
    });
    for (ir::Value* v : moved_) {
      if (read.contains(v)) inputs_.push_back(v);
    }
    std::vector<int64_t> directions;
    for (const ir::Value* v : scanned_) directions.push_back(reverse_.at(v) ? 1 : 0);
    for (ir::Value* v : inputs_) {
      v->output_index = 0;
      graph_.add_input(&scan_, outside.whole(v));
      body_.inputs.push_back(v);
      directions.push_back(reverse_.at(v) ? 1 : 0);
    }
    scan_.attributes.set(ir::Attribute::of("num_scan_inputs", static_cast<int64_t>(directions.size())));
    scan_.attributes.set(ir::Attribute::of("scan_input_directions", std::move(directions)));
    scan_.attributes.erase("scan_input_axes");
  }

  void drop_states() {
    std::sort(delayed_.begin(), delayed_.end());
    for (size_t i = delayed_.size(); i-- > 0;) {
      const auto state = static_cast<std::ptrdiff_t>(delayed_[i]);
      body_.inputs.erase(body_.inputs.begin() + state);
      body_.outputs.erase(body_.outputs.begin() + state);
      if (!body_.output_types.empty()) body_.output_types.erase(body_.output_types.begin() + state);
      scan_.inputs.erase(delayed_[i]);
      if (ir::Value* result = scan_.outputs[delayed_[i]]) result->producer = nullptr;
      scan_.outputs.erase(delayed_[i]);
    }
    scan_.input_count = static_cast<uint32_t>(scan_.inputs.size());
    scan_.output_count = static_cast<uint32_t>(scan_.outputs.size());
    for (size_t i = 0; i < scan_.outputs.size(); ++i) {
      if (scan_.outputs[i]) scan_.outputs[i]->output_index = static_cast<uint32_t>(i);
    }
  }

  ir::Graph& graph_;
  ir::Region& region_;
  const size_t at_;
  ir::Node& scan_;
  ir::Region& body_;
  Journal* journal_;
  std::unordered_map<ir::Value*, ir::Value*>& replaced_;  // results of the Scan that others take the place of
  size_t states_ = 0;
  Dim trips_ = Dim::unknown();
  std::vector<const ir::Value*> scanned_;
  std::unordered_map<const ir::Value*, bool> reverse_;  // of what depends on scan inputs alone: their direction
  std::unordered_set<const ir::Node*> free_;            // nodes that make such values
  std::vector<size_t> delayed_;                         // states, each behind those that it is made of
  std::vector<ir::Value*> moved_;                       // what nodes make that left the body
  std::vector<ir::Value*> inputs_;                      // new inputs of the body
};

void walk(ir::Graph& graph, ir::Region& region, Journal* journal,
          std::unordered_map<ir::Value*, ir::Value*>& replaced) {
  for (size_t at = 0; at < region.nodes.size(); ++at) {
    if (stop_requested()) return;
    for (auto& body : region.nodes[at]->regions) walk(graph, *body, journal, replaced);
    if (region.nodes[at]->op->control == Control::kScan) {
      at += Delayer(graph, region, at, journal, replaced).run();
    }
  }
}

}  // namespace

void delay_states(ir::Graph& graph, Journal* journal) {
  std::unordered_map<ir::Value*, ir::Value*> replaced;
  walk(graph, graph.top(), journal, replaced);
  if (!replaced.empty()) ir::replace_uses(graph, replaced);
}

}  // namespace treadle::opt
