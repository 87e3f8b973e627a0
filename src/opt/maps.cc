// A Scan that carries nothing from one iteration to the next is a map: its body runs for all iterations at once, as
// nodes outside of the loop. Kernels then see long rows instead of short ones, groups of elementwise nodes run tile by
// tile over all iterations, and kernels that use threads split the iterations among them. Counted loops are Scans
// already (opt/counted_loops.cc). A state that every iteration passes on unchanged carries nothing.
//
// All nodes of the body must be able to run for all iterations (opt/stacked.h). If some are not elementwise, the values
// between nodes are written to memory for all iterations; the limits below keep that memory small.
#include <algorithm>
#include <unordered_set>

#include "op/loop_view.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/stacked.h"

namespace treadle::opt {

namespace {

// A map of two or three iterations saves 0.2 to 0.3 microseconds a run (measured: a product and a Softmax, rows of 16
// to 256 floats).
constexpr int64_t kLeastIterations = 4;
// Elements of a value over all iterations, if not all nodes are elementwise: 4 MB of floats. It bounds memory. In a map
// of 8 times as many, a Softmax takes as long as in the loop (measured, rows of 64 and of 1024 floats).
constexpr int64_t kMaxBetween = int64_t{1} << 20;
// The same for one iteration, if the iterations are not counted: kMaxBetween at 512 iterations.
constexpr int64_t kMaxOfUnknown = int64_t{1} << 11;

class Mapper {
 public:
  // `replaced`: gets the results of the Scan and their replacements.
  Mapper(ir::Graph& graph, ir::Region& region, size_t at, Remarks* remarks,
         std::unordered_map<ir::Value*, ir::Value*>& replaced)
      : graph_(graph),
        region_(region),
        at_(at),
        scan_(*region.nodes[at]),
        body_(scan_.body()),
        remarks_(remarks),
        replaced_(replaced) {}

  // Whether nodes replaced the Scan.
  bool run() {
    if (!reads_along_iterations() || !is_map()) return false;
    std::unordered_map<ir::Value*, ir::Value*> states;  // all of them are constant
    for (size_t i = 0; i < scan_.states(); ++i) states[scan_.state(i).before] = scan_.state(i).initial;
    ir::replace_uses(body_, states);
    dissolve();
    return true;
  }

  size_t added() const { return added_; }

 private:
  bool reads_along_iterations() {
    if (scan_.masked()) return false;
    std::vector<ScanAxis> axes = scan_.signature().scan_inputs;
    for (size_t i = 0; i < scan_.scan_outputs(); ++i) {
      if (scan_.scan_output(i).wanted()) axes.push_back(scan_.signature().scan_outputs[i]);
    }
    for (size_t i = 0; i < scan_.scan_inputs(); ++i) {
      const Type& whole = scan_.scan_input(i).whole->type;
      if (!whole.has_shape || whole.shape.empty()) return false;
      if (i == 0) iterations_ = whole.shape[0];
      if (!same(iterations_, whole.shape[0])) return false;
    }
    return std::all_of(axes.begin(), axes.end(),
                       [&](const ScanAxis& a) { return a.axis == 0 && a.reverse == axes[0].reverse; });
  }

  bool is_map() {
    if (iterations_.is_unknown() || (iterations_.is_known() && iterations_.value() < kLeastIterations)) return false;
    for (size_t i = 0; i < scan_.states(); ++i) {
      if (!scan_.is_kept(i)) return false;
    }
    for (size_t i = 0; i < scan_.scan_inputs(); ++i) varying_.insert(scan_.scan_input(i).element);
    const Varies varies = [this](const ir::Value* v) { return varying_.contains(v); };
    for (const auto& node : body_.nodes) {
      if (!runs_stacked(*node, varies, iterations_)) return false;
      varying_.insert(node->outputs.begin(), node->outputs.end());
    }
    varying_.erase(nullptr);
    for (size_t i = 0; i < scan_.scan_outputs(); ++i) {
      if (!can_be_whole(i)) return false;
    }
    return stays_in_proportion();
  }

  bool stays_in_proportion() const {
    const bool is_elementwise = std::all_of(body_.nodes.begin(), body_.nodes.end(), [](const auto& node) {
      return node->op->elementwise || node->op->alias_input >= 0;
    });
    const int64_t most =
        iterations_.is_known() ? kMaxBetween / std::max<int64_t>(iterations_.value(), 1) : kMaxOfUnknown;
    return is_elementwise || std::all_of(varying_.begin(), varying_.end(), [&](const ir::Value* v) {
             return v->type.is_concrete() && count_of(*v) <= most;
           });
  }

  // Whether the rows can be one tensor. Rows that are the same in all iterations are repeated, which needs the
  // iteration count. A loop without iterations gives rows of the sizes that the model states.
  bool can_be_whole(size_t scan_output) const {
    const ir::Value* row = scan_.scan_output(scan_output).row;
    if (!row) return true;
    if (iterations_.is_known()) return varying_.contains(row) || row->type.is_concrete();
    return varying_.contains(row) && scan_.row_is_as_in_model(scan_output);
  }

  void dissolve() {
    note_of_loop(remarks_, Change::kMapped, scan_.node(), scan_.node());
    StackedNodes outside(graph_, region_, at_, iterations_);
    for (size_t i = 0; i < scan_.scan_inputs(); ++i) {
      outside.set(scan_.scan_input(i).element, scan_.scan_input(i).whole);
    }
    for (auto& node : body_.nodes) outside.add(std::move(node));
    body_.nodes.clear();
    for (size_t i = 0; i < scan_.states(); ++i) replace(scan_.state(i).final, scan_.state(i).initial);
    for (size_t i = 0; i < scan_.scan_outputs(); ++i) {
      const LoopView::ScanOutput out = scan_.scan_output(i);
      if (!out.whole) continue;
      replace(out.whole,
              outside.has(out.row) ? outside.whole(out.row) : outside.repeated(out.row, std::string(out.whole->name)));
    }
    added_ = outside.added();
    region_.nodes.erase(region_.nodes.begin() + static_cast<std::ptrdiff_t>(at_ + added_));
  }

  void replace(ir::Value* result, ir::Value* made) {
    if (!result) return;
    result->producer = nullptr;
    replaced_[result] = made;
  }

  ir::Graph& graph_;
  ir::Region& region_;
  const size_t at_;
  LoopEditor scan_;
  ir::Region& body_;
  Remarks* remarks_;
  size_t added_ = 0;
  Dim iterations_;
  std::unordered_set<const ir::Value*> varying_;
  std::unordered_map<ir::Value*, ir::Value*>& replaced_;
};

}  // namespace

void run_maps_at_once(ir::Graph& graph, Remarks* remarks) {
  std::unordered_map<ir::Value*, ir::Value*> replaced;
  rewrite_nodes(graph.top(), replaced, [&](ir::Region& region, size_t at) {
    if (!is_scan(*region.nodes[at])) return at;
    Mapper mapper(graph, region, at, remarks, replaced);
    return mapper.run() ? at + mapper.added() - 1 : at;
  });
  ir::replace_uses(graph, replaced);
}

}  // namespace treadle::opt
