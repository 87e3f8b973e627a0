// Loops whose states are all linear and elementwise, h' = a h + b. The values of a state in all iterations are computed
// by a scan over time in blocks (kernels/linear_recurrence.h), in which iterations do not wait for each other. All
// other nodes then run for all iterations at once, and the loop is gone.
//
//   Scan(h0, X; h, x: h' = k x + (1 - k) h; y = f(h'))   becomes   H = LinearRecurrence(h0, 1 - k, k X); Y = f(H)
//
// a and b are derived from the nodes of the update (h + k (x - h) is linear, too). They are ordinary nodes, which run
// for all iterations, or once if the loop does not change their operands. Integers wrap, so their results are the same.
// Floats round differently, and are left alone unless the user allows other rounding.
//
// Only for states of a few elements: with larger states, reading and writing rows in memory takes about as long as the
// loop.
#include <algorithm>
#include <unordered_set>

#include "kernels/linear_recurrence.h"
#include "op/loop_view.h"
#include "opt/builder.h"
#include "opt/loop_edits.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/stacked.h"
#include "type/make_tensor.h"

namespace treadle::opt {

namespace {

// Measured for h = a h + b in floats, beside a native loop: with up to 4 lanes the node takes 0.9 of its time at 256
// iterations and 0.6 to 0.7 at 512 and more; with 8 lanes it takes longer.
constexpr int64_t kMaxLanes = 4;
constexpr int64_t kLeastIterations = 256;
constexpr int64_t kMaxElements = 64;  // in any value of the body

// A factor: 0, 1, -1, or a value.
struct Factor {
  int sign = 0;
  ir::Value* value = nullptr;  // null: the factor is `sign`

  static Factor of(ir::Value* v) { return {1, v}; }
  bool is_zero() const { return sign == 0 && !value; }
};

// The update a h + b.
struct Update {
  Factor a, b;
};

class Solver {
 public:
  Solver(ir::Graph& graph, ir::Region& region, size_t at, Remarks* remarks)
      : graph_(graph), region_(region), at_(at), scan_(*region.nodes[at]), body_(scan_.body()), remarks_(remarks) {}

  // Whether the Scan was replaced by nodes.
  bool run() {
    if (!read() || !all_run_at_once() || !rows_keep_sizes()) return false;
    order_states();
    if (order_.empty()) return false;
    dissolve();
    return true;
  }

  size_t added() const { return added_; }

 private:
  bool read() {
    if (scan_.masked() || scan_.states() == 0) return false;
    reverse_ = scan_.scan_input(0).reverse;
    for (size_t i = 0; i < scan_.scan_inputs(); ++i) {
      const LoopView::ScanInput in = scan_.scan_input(i);
      const Type& whole = in.whole->type;
      if (!whole.has_shape || whole.shape.empty() || in.axis != 0 || in.reverse != reverse_) return false;
      if (i == 0) iterations_ = whole.shape[0];
      if (!same(iterations_, whole.shape[0])) return false;
    }
    for (const ScanAxis& row : scan_.signature().scan_outputs) {
      if (row.axis != 0 || row.reverse != reverse_) return false;
    }
    return !iterations_.is_unknown() && !(iterations_.is_known() && iterations_.value() < kLeastIterations);
  }

  // Whether all nodes can run for all iterations at once. The states must be known.
  bool all_run_at_once() const {
    const Varies varies = [this](const ir::Value* v) { return !is_invariant(v, body_); };
    return std::all_of(body_.nodes.begin(), body_.nodes.end(), [&](const auto& node) {
      const bool fits = node->op->elementwise || node->op->alias_input >= 0;
      return fits && node->outputs[0] && runs_stacked(*node, varies, iterations_) &&
             count_of(*node->outputs[0]) <= kMaxElements;
    });
  }

  // Whether the sizes of rows stay right: without iterations, they are the sizes that the model states. Rows must also
  // differ from iteration to iteration.
  bool rows_keep_sizes() const {
    for (size_t i = 0; i < scan_.scan_outputs(); ++i) {
      const LoopView::ScanOutput out = scan_.scan_output(i);
      if (!out.wanted()) continue;
      const bool fits = iterations_.is_known() || scan_.row_is_as_in_model(i);
      if (!fits || is_invariant(out.row, body_) || !out.row->type.is_concrete()) return false;
    }
    return true;
  }

  // --- whether all states are linear, and an order in which each state needs only earlier ones

  void order_states() {
    for (size_t i = 0; i < scan_.states(); ++i) open_.insert(scan_.state(i).before);
    while (order_.size() < scan_.states()) {
      find_dependent();
      const size_t before = order_.size();
      for (size_t i = 0; i < scan_.states(); ++i) {
        const ir::Value* state = scan_.state(i).before;
        if (!open_.contains(state) || !can_solve(i)) continue;
        order_.push_back(i);
        open_.erase(state);
        break;
      }
      if (order_.size() == before) return order_.clear();
    }
  }

  // Finds values that depend on unsolved states.
  void find_dependent() {
    dependent_ = open_;
    for (const auto& node : body_.nodes) {
      const bool depends =
          std::any_of(node->inputs.begin(), node->inputs.end(), [&](auto* v) { return dependent_.contains(v); });
      if (depends) dependent_.insert(node->outputs.begin(), node->outputs.end());
    }
    dependent_.erase(nullptr);
  }

  bool can_solve(size_t state) const {
    const auto [initial, in, out, final] = scan_.state(state);
    const auto same_type = [&](const ir::Value* v) {
      return v->type.is_concrete() && v->type.element == in->type.element && same(v->type.shape, in->type.shape);
    };
    if (!same_type(in) || !same_type(out) || !same_type(initial)) return false;
    if (!dependent_.contains(out) || !out->producer) return false;
    const int64_t lanes = count_of(*in);
    if (!kernels::LinearRecurrence::supports(in->type.element) || lanes < 1 || lanes > kMaxLanes) return false;
    return is_linear(out, in);
  }

  bool is_linear(const ir::Value* v, const ir::Value* state) const {
    if (v == state || !dependent_.contains(v)) return true;
    const ir::Node* node = v->producer;
    if (!node) return false;  // another state
    if (is(*node, "Identity") || is(*node, "Neg")) return is_linear(node->inputs[0], state);
    if (is(*node, "Add") || is(*node, "Sub")) {
      return is_linear(node->inputs[0], state) && is_linear(node->inputs[1], state);
    }
    if (!is(*node, "Mul")) return false;
    const bool left = dependent_.contains(node->inputs[0]), right = dependent_.contains(node->inputs[1]);
    return left != right && is_linear(node->inputs[left ? 0 : 1], state);
  }

  // --- one state

  void dissolve() {
    note_of_loop(remarks_, Change::kReassociated, scan_.node(), scan_.node());
    for (size_t i = 0; i < scan_.scan_inputs(); ++i) {
      stacked_[scan_.scan_input(i).element] = scan_.scan_input(i).whole;
    }
    for (const size_t state : order_) open_.insert(scan_.state(state).before);
    take_ready();
    for (const size_t state : order_) {
      solve(state);
      take_ready();
    }
    std::unordered_map<ir::Value*, ir::Value*> replaced;
    const auto replace = [&](ir::Value* result, ir::Value* made) {
      result->producer = nullptr;
      replaced[result] = made;
    };
    for (size_t i = 0; i < scan_.states(); ++i) {
      if (scan_.state(i).final) replace(scan_.state(i).final, last_.at(i));
    }
    for (size_t i = 0; i < scan_.scan_outputs(); ++i) {
      if (scan_.scan_output(i).whole) replace(scan_.scan_output(i).whole, stacked_.at(scan_.scan_output(i).row));
    }
    region_.nodes.erase(region_.nodes.begin() + static_cast<std::ptrdiff_t>(at_ + added_));
    ir::replace_uses(graph_, replaced);
  }

  // Moves out nodes that need no unsolved state; they run for all iterations.
  void take_ready() {
    std::vector<std::unique_ptr<ir::Node>> staying;
    for (auto& node : body_.nodes) {
      const bool is_ready = std::all_of(node->inputs.begin(), node->inputs.end(),
                                        [&](auto* v) { return is_invariant(v, body_) || stacked_.contains(v); });
      if (is_ready) {
        run_for_all(std::move(node));
      } else {
        staying.push_back(std::move(node));
      }
    }
    body_.nodes = std::move(staying);
  }

  void run_for_all(std::unique_ptr<ir::Node> node) {
    StackedNodes outside(graph_, region_, at_ + added_, iterations_);
    for (const ir::Value* v : node->inputs) {
      if (const auto it = stacked_.find(v); it != stacked_.end()) outside.set(v, it->second);
    }
    const ir::Value* result = node->outputs[0];
    outside.add(std::move(node));
    stacked_[result] = outside.whole(result);
    added_ += outside.added();
  }

  void solve(size_t state) {
    const auto [initial, in, out, final] = scan_.state(state);
    find_dependent();
    type_ = in->type.element;
    const Update update = update_of(out, in);
    const bool keeps = !update.a.value && update.a.sign == 1;  // a is 1
    ir::Value* a = keeps ? nullptr : along_iterations(spread(update.a, *in));
    ir::Value* b = update.b.is_zero() && a ? nullptr : along_iterations(spread(update.b, *in));

    ir::Node* node = Builder(graph_, region_, at_ + added_++)
                         .node("LinearRecurrence", scan_.node().name, {ir::Attribute::of("reverse", reverse_ ? 1 : 0)});
    for (ir::Value* v : {initial, a, b}) graph_.add_input(node, v);
    Shape shape{iterations_};
    for (const Dim& d : in->type.shape) shape.push_back(d);
    const Type type = Type::tensor(type_, std::move(shape));
    stacked_[out] = graph_.add_output(node, std::string(out->name) + ":steps", type);
    open_.erase(in);
    scan_.set_after(state, nullptr);
    drop(*out->producer);
    // Adds outputs for the last state and, if the body reads it, for the state at the beginning of each iteration.
    last_[state] = graph_.add_output(node, std::string(out->name) + ":last", in->type);
    if (count_uses(body_, in) > 0) {
      stacked_[in] = graph_.add_output(node, std::string(in->name) + ":before", type);
    } else {
      graph_.add_absent_output(node);
    }
  }

  // Removes the node that made a state, and nodes that only it needed.
  void drop(const ir::Node& made) {
    for (size_t i = body_.nodes.size(); i-- > 0;) {
      const ir::Node& node = *body_.nodes[i];
      if (&node != &made && count_uses(body_, node.outputs[0]) > 0) continue;
      body_.nodes.erase(body_.nodes.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  ir::Value* along_iterations(ir::Value* v) { return is_invariant(v, body_) ? v : stacked_.at(v); }

  // --- a and b

  Update update_of(ir::Value* v, const ir::Value* state) {
    if (v == state) return {{1}, {}};
    if (!dependent_.contains(v)) return {{}, Factor::of(v)};
    const ir::Node& node = *v->producer;
    const Update x = update_of(node.inputs[0], state);
    if (is(node, "Identity")) return x;
    if (is(node, "Neg")) return {negated(x.a), negated(x.b)};
    const Update y = update_of(node.inputs[1], state);
    if (is(node, "Add")) return {sum(x.a, y.a), sum(x.b, y.b)};
    if (is(node, "Sub")) return {sum(x.a, negated(y.a)), sum(x.b, negated(y.b))};
    const bool left = dependent_.contains(node.inputs[0]);
    const Update &inner = left ? x : y, &factor = left ? y : x;
    return {product(inner.a, factor.b), product(inner.b, factor.b)};
  }

  Factor negated(const Factor& f) {
    if (!f.value) return {-f.sign};
    return Factor::of(make("Neg", {f.value}));
  }

  Factor sum(const Factor& x, const Factor& y) {
    if (x.is_zero()) return y;
    if (y.is_zero()) return x;
    if (!x.value && !y.value && x.sign + y.sign == 0) return {};
    return Factor::of(make("Add", {valued(x, y), valued(y, x)}));
  }

  Factor product(const Factor& x, const Factor& y) {
    if (x.is_zero() || y.is_zero()) return {};
    if (!x.value) return x.sign > 0 ? y : negated(y);
    if (!y.value) return y.sign > 0 ? x : negated(x);
    return Factor::of(make("Mul", {x.value, y.value}));
  }

  // The factor as a value; a number takes the type of `other`.
  ir::Value* valued(const Factor& f, const Factor& other) {
    return f.value ? f.value : number(f.sign, other.value ? other.value->type.element : type_, {});
  }

  // The factor with all sizes of the state.
  ir::Value* spread(const Factor& f, const ir::Value& state) {
    const Dims dims = known_dims(state.type.shape);
    if (!f.value) return number(f.sign, state.type.element, dims);
    if (same(f.value->type.shape, state.type.shape)) return f.value;
    return make("Mul", {f.value, number(1, state.type.element, dims)});
  }

  ir::Value* number(int n, ElementType type, const Dims& dims) {
    Tensor t = make_tensor(type, dims);
    const auto fill = [&]<class T>(T value) { std::fill_n(t.mutable_data<T>(), t.element_count(), value); };
    switch (type) {
      case ElementType::kFloat:
        fill(static_cast<float>(n));
        break;
      case ElementType::kDouble:
        fill(static_cast<double>(n));
        break;
      case ElementType::kInt32:
      case ElementType::kUint32:
        fill(static_cast<int32_t>(n));
        break;
      default:
        fill(static_cast<int64_t>(n));
    }
    return graph_.new_constant(scan_.node().name, std::move(t));
  }

  // Makes a node for all iterations; for one if the loop does not change the operands.
  ir::Value* make(std::string_view op_name, std::initializer_list<ir::Value*> inputs) {
    const bool once = std::all_of(inputs.begin(), inputs.end(), [&](auto* v) { return is_invariant(v, body_); });
    Shape shape;
    for (const ir::Value* v : inputs) shape = shape.empty() ? v->type.shape : joined(shape, v->type.shape);
    Type type = Type::tensor((*inputs.begin())->type.element, std::move(shape));
    Builder build(graph_, once ? region_ : body_, once ? at_ + added_++ : body_.nodes.size());
    ir::Value* result = build.call(op_name, inputs, std::move(type), scan_.node().name);
    if (!once) run_for_all(take_out(body_, body_.nodes.size() - 1));
    return result;
  }

  static Shape joined(const Shape& a, const Shape& b) {
    Shape out = a.size() >= b.size() ? a : b;
    const Shape& other = a.size() >= b.size() ? b : a;
    for (size_t i = 0; i < other.size(); ++i) {
      Dim& d = out[out.size() - other.size() + i];
      if (d.is_known(1)) d = other[i];
    }
    return out;
  }

  ir::Graph& graph_;
  ir::Region& region_;
  const size_t at_;
  LoopEditor scan_;
  ir::Region& body_;
  Remarks* remarks_;
  bool reverse_ = false;
  Dim iterations_;
  std::vector<size_t> order_;                                 // states in the order in which they are solved
  std::unordered_set<const ir::Value*> open_;                 // unsolved states
  std::unordered_set<const ir::Value*> dependent_;            // values that depend on unsolved states
  std::unordered_map<const ir::Value*, ir::Value*> stacked_;  // values of the body, stacked for all iterations
  ElementType type_ = ElementType::kUndefined;                // of the current state
  std::unordered_map<size_t, ir::Value*> last_;               // by state: its value after the last iteration
  size_t added_ = 0;
};

}  // namespace

void solve_recurrences(ir::Graph& graph, Remarks* remarks) {
  visit_nodes(graph.top(), [&](ir::Region& region, size_t at) {
    if (!is_scan(*region.nodes[at])) return at;
    Solver solver(graph, region, at, remarks);
    return solver.run() ? at + solver.added() - 1 : at;
  });
}

}  // namespace treadle::opt
