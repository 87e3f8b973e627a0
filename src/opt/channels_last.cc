// Convolutions compute with channels in the lanes of vectors. They transpose their operands and results unless tensors
// have their channels last. Where several such nodes follow each other, the tensors between them keep their channels
// last:
//
//   Conv, MaxPool, Conv   becomes   FusedConv (y_nhwc), PoolNhwc, FusedConv (x_nhwc)
//
// Each node, or each side of a convolution, has its channels second or last, and each choice has a price. A Transpose
// stands between two nodes that differ. The cheapest combination of choices is a minimum cut of a graph of these
// prices: nodes on the source's side have their channels second.
#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "kernels/conv.h"
#include "op/costs.h"
#include "op/gemm.h"
#include "op/node.h"
#include "op/registry.h"
#include "ops/nn/window.h"
#include "opt/builder.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/uses.h"

namespace treadle::opt {

namespace {

constexpr double kNever = 1e18;

// Minimum cuts by shortest augmenting paths.
class Cut {
 public:
  static constexpr int kSource = 0, kSink = 1;

  int node() {
    edges_of_.emplace_back();
    return static_cast<int>(edges_of_.size()) - 1;
  }
  // Adds `cost` to the cut if `from` is on the source's side and `to` is not.
  void price(int from, int to, double cost) {
    edges_of_[static_cast<size_t>(from)].push_back(edges_.size());
    edges_.push_back({to, cost});
    edges_of_[static_cast<size_t>(to)].push_back(edges_.size());
    edges_.push_back({from, 0});
  }
  void solve() {
    while (find_path()) push();
  }
  bool on_sink_side(int node) const { return from_[static_cast<size_t>(node)] == kUnreached; }

 private:
  static constexpr size_t kUnreached = SIZE_MAX;
  static constexpr double kLeast = 1e-6;
  struct Edge {
    int to;
    double left;
  };

  bool find_path() {
    from_.assign(edges_of_.size(), kUnreached);
    from_[kSource] = 0;
    std::queue<int> pending;
    pending.push(kSource);
    while (!pending.empty()) {
      const int at = pending.front();
      pending.pop();
      for (const size_t e : edges_of_[static_cast<size_t>(at)]) {
        size_t& from = from_[static_cast<size_t>(edges_[e].to)];
        if (edges_[e].left <= kLeast || from != kUnreached) continue;
        from = e;
        pending.push(edges_[e].to);
      }
    }
    return from_[kSink] != kUnreached;
  }

  size_t edge_to(int at) const { return from_[static_cast<size_t>(at)]; }

  void push() {
    double least = std::numeric_limits<double>::infinity();
    for (int at = kSink; at != kSource; at = edges_[edge_to(at) ^ 1].to) {
      least = std::min(least, edges_[edge_to(at)].left);
    }
    for (int at = kSink; at != kSource; at = edges_[edge_to(at) ^ 1].to) {
      edges_[edge_to(at)].left -= least;
      edges_[edge_to(at) ^ 1].left += least;
    }
  }

  std::vector<Edge> edges_;  // each edge is followed by its reverse
  std::vector<std::vector<size_t>> edges_of_{2};
  std::vector<size_t> from_;  // the edge by which the search reached a node
};

// The sizes of an image of floats, all known; none for any other value.
std::optional<Dims> image(const ir::Value* v) {
  if (!v || v->type.element != ElementType::kFloat || !v->type.is_concrete()) return std::nullopt;
  if (v->type.shape.size() < 3 || v->type.shape.size() > 4) return std::nullopt;
  Dims dims;
  for (const Dim& d : v->type.shape) dims.push_back(d.value());
  return std::find(dims.begin(), dims.end(), 0) == dims.end() ? std::optional(dims) : std::nullopt;
}

double elements(const ir::Value* v) {
  double count = 1;
  for (const Dim& d : v->type.shape) count *= static_cast<double>(d.value());
  return count;
}

bool is_convolution(const ir::Node& node) {
  return is(node, "Conv") || is(node, "FusedConv", "treadle") || is(node, "ConvTranspose");
}

bool is_pool(const ir::Node& node) {
  return is(node, "MaxPool") || is(node, "AveragePool");
}

// Whether the value is a constant with one number for each channel: [C, 1, 1], [1, C, 1, 1], [1], ...
bool is_per_channel(const ir::Value* v, const Dims& result) {
  if (!v->is_constant() || v->constant.dims().size() > result.size()) return false;
  const Dims& dims = v->constant.dims();
  for (size_t d = 0; d < dims.size(); ++d) {
    const bool is_channel = d + result.size() - dims.size() == 1;
    if (dims[d] != 1 && !(is_channel && dims[d] == result[1])) return false;
  }
  return true;
}

bool joins_channels(const ir::Node& concat, const Dims& y) {
  const int64_t axis = concat.attributes.get_int("axis", 1), rank = static_cast<int64_t>(y.size());
  return (axis == 1 || axis == 1 - rank) &&
         std::all_of(concat.inputs.begin(), concat.inputs.end(),
                     [&](const ir::Value* v) { return image(v) && !v->is_constant(); });
}

bool is_plain_elementwise(const ir::Node& node, const Dims& y) {
  if (!node.op->elementwise || !node.regions.empty()) return false;
  if (node.attributes.has("axis") || node.attributes.get_int("broadcast", 0) != 0) return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](const ir::Value* v) {
    if (!v || is_per_channel(v, y)) return true;
    const auto dims = image(v);
    return dims && !v->is_constant() && *dims == y;
  });
}

bool passes_channels_last(const ir::Node& node, const Dims& y) {
  if (is(node, "GlobalAveragePool")) return true;
  if (is(node, "Concat")) return joins_channels(node, y);
  if (!is_pool(node)) return is_plain_elementwise(node, y);
  const auto shape = nn::pool_shape(node.attributes, *image(node.inputs[0]), y);
  return shape.ok() && kernels::pools_nhwc(shape.value());
}

std::vector<int64_t> permutation(size_t rank, bool to_nhwc) {
  std::vector<int64_t> axes(rank);
  for (size_t d = 0; d < rank; ++d) axes[d] = static_cast<int64_t>(d);
  if (to_nhwc) {
    std::rotate(axes.begin() + 1, axes.begin() + 2, axes.end());
  } else {
    std::rotate(axes.begin() + 1, axes.end() - 1, axes.end());
  }
  return axes;
}

Type nhwc_type(const ir::Value* v) {
  Type type = v->type;
  std::rotate(type.shape.begin() + 1, type.shape.begin() + 2, type.shape.end());
  return type;
}

Result<kernels::ConvShape> of_convolution(const ir::Attributes& attributes, const Dims& x, const Dims& w,
                                          const Dims& y) {
  return nn::conv_shape(attributes, x, w, y);
}

// The layout of the nodes of one region.
class Layout {
 public:
  Layout(ir::Graph& graph, ir::Region& region, Remarks* remarks) : graph_(graph), region_(region), remarks_(remarks) {}

  void run() {
    const auto is_one = [](const auto& node) { return is_convolution(*node); };
    if (std::count_if(region_.nodes.begin(), region_.nodes.end(), is_one) < 2) return;
    for (const auto& node : region_.nodes) add(*node);
    for (ir::Value* v : region_.outputs) {
      if (image(v)) readers_.emplace_back(v, Cut::kSource);
    }
    for (const auto& [value, side] : readers_) price_transposes(value, side);
    cut_.solve();
    rewrite();
  }

 private:
  struct Sides {
    int x = Cut::kSource, y = Cut::kSource;  // one node of the cut if both sides have the same layout
  };

  void add(ir::Node& node) {
    const Sides sides = sides_of(node);
    sides_[&node] = sides;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      ir::Value* v = node.inputs[i];
      if (!image(v) || v->is_constant()) continue;
      readers_.emplace_back(v, is_convolution(node) && i > 0 ? sides.y : sides.x);
    }
    for (ir::Value* v : node.outputs) {
      if (v) makers_[v] = sides.y;
    }
    for (const auto& body : node.regions) {
      for (ir::Value* v : ir::captures(*body)) {
        if (image(v)) readers_.emplace_back(v, Cut::kSource);
      }
    }
  }

  Sides sides_of(const ir::Node& node) {
    if (node.outputs.size() != 1 || node.inputs.empty() || !image(node.inputs[0])) return {};
    const auto y = image(node.outputs[0]);
    if (!y) return {};
    if (is_convolution(node)) return sides_of_convolution(node, *y);
    if (!passes_channels_last(node, *y)) return {};
    const int side = cut_.node();
    return {side, side};
  }

  Sides sides_of_convolution(const ir::Node& node, const Dims& y) {
    const ir::Value* w = node.inputs[1];
    if (!w->is_constant() || node.inputs[0]->is_constant()) return {};
    if (node.inputs.size() > 3 && node.inputs[3] && node.inputs[3]->is_constant()) return {};
    const auto sizes = is(node, "ConvTranspose") ? nn::transposed_shape : of_convolution;
    const auto shape = sizes(node.attributes, *image(node.inputs[0]), w->constant.dims(), y);
    if (!shape.ok()) return {};
    const kernels::ConvLayouts layouts = kernels::conv_layouts(ComputeType::kF32, shape.value());
    if (layouts.x && !layouts.apart) {
      const int side = side_of(layouts.nchw_ns, layouts.both_ns);
      return {side, side};
    }
    Sides sides;
    if (layouts.x) sides.x = side_of(layouts.nchw_ns, layouts.x_ns);
    if (layouts.y) sides.y = side_of(layouts.nchw_ns, layouts.y_ns);
    return sides;
  }

  // A node of the cut that costs `nchw_ns` with channels second and `nhwc_ns` with channels last.
  int side_of(double nchw_ns, double nhwc_ns) {
    const int side = cut_.node();
    cut_.price(side, Cut::kSink, std::max(nchw_ns - nhwc_ns, 0.0));
    cut_.price(Cut::kSource, side, std::max(nhwc_ns - nchw_ns, 0.0));
    return side;
  }

  // Prices one Transpose for all readers that are on the other side of the cut than the maker of the value.
  void price_transposes(const ir::Value* v, int reader) {
    const auto found = makers_.find(v);
    const int maker = found == makers_.end() ? Cut::kSource : found->second;
    if (maker == reader) return;
    const auto [at, is_new] = transposes_.try_emplace(v);
    auto& [last, second] = at->second;
    if (is_new) {
      last = cut_.node();
      second = cut_.node();
      const double cost = costs::kKernelNs + costs::kTransposedElementNs * elements(v);
      cut_.price(maker, last, cost);
      cut_.price(second, maker, cost);
    }
    cut_.price(last, reader, kNever);
    cut_.price(reader, second, kNever);
  }

  // -------------------------------------------------------------------------------------------------------------------

  bool is_last(int side) const { return cut_.on_sink_side(side); }

  void rewrite() {
    for (const auto& [v, side] : readers_) {
      if (!is_last(side)) wanted_second_[v] = true;
    }
    rewrite_nodes(region_, [&](ir::Region& region, size_t at) {
      ir::Node& node = *region.nodes[at];
      const auto found = sides_.find(&node);
      if (&region != &region_ || found == sides_.end()) return at;
      const bool x = is_last(found->second.x), y = is_last(found->second.y);
      if (!x && !y) return at;
      note(remarks_, Change::kRestated, region, node, "channels last");
      at = read_nhwc(at, x, y);
      change(node, x, y);
      return y ? make_nhwc(node, at) : at;
    });
  }

  // Returns the node's new position, behind the Transposes of its operands.
  size_t read_nhwc(size_t at, bool x, bool y) {
    ir::Node& node = *region_.nodes[at];
    Builder builder(graph_, region_, at, &node);
    const Dims result = *image(node.outputs[0]);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const bool is_read_nhwc = !is_convolution(node) || i == 0 ? x : y && i == 3;
      if (is_read_nhwc && node.inputs[i]) node.inputs[i] = last_of(builder, node.inputs[i], result);
    }
    return builder.at();
  }

  ir::Value* last_of(Builder& builder, ir::Value* v, const Dims& result) {
    if (v->is_constant()) {
      if (v->constant.element_count() == 1) return v;
      return graph_.new_constant(v->name, v->constant.reshaped({result[1]}));
    }
    ir::Value*& last = last_[v];
    if (!last) {
      last = builder.call("Transpose", {v}, nhwc_type(v), std::string(v->name) + ":last",
                          {ir::Attribute::of("perm", permutation(result.size(), true))});
    }
    return last;
  }

  static void change(ir::Node& node, bool x, bool y) {
    if (is_convolution(node)) {
      const ir::Attributes given = node.attributes;
      const char* op = is(node, "ConvTranspose") ? "TransposedConvLast" : "FusedConv";
      become(node, require_op(op, "treadle"), given);
      if (x) node.attributes.set(ir::Attribute::of("x_nhwc", 1));
      if (y) node.attributes.set(ir::Attribute::of("y_nhwc", 1));
    } else if (is_pool(node)) {
      const bool average = is(node, "AveragePool");
      const ir::Attributes given = node.attributes;
      become(node, require_op("PoolNhwc", "treadle"), given);
      node.attributes.set(ir::Attribute::of("average", average ? 1 : 0));
    } else if (is(node, "GlobalAveragePool")) {
      become(node, require_op("GlobalAverageNhwc", "treadle"));
    } else if (is(node, "Concat")) {
      node.attributes.set(ir::Attribute::of("axis", -1));
    }
  }

  // Returns the position of the last node that was added for the node.
  size_t make_nhwc(ir::Node& node, size_t at) {
    ir::Value* second = node.outputs[0];
    node.outputs.clear();
    ir::Value* last = graph_.add_output(&node, std::string(second->name) + ":last", nhwc_type(second));
    last_[second] = last;
    if (!wanted_second_.contains(second)) return at;
    Builder builder(graph_, region_, at + 1, &node);
    ir::Node* back = builder.node("Transpose", std::string(second->name) + ":second",
                                  {ir::Attribute::of("perm", permutation(second->type.shape.size(), false))});
    graph_.add_input(back, last);
    back->outputs.push_back(second);
    back->output_count = 1;
    second->producer = back;
    second->output_index = 0;
    return at + 1;
  }

  ir::Graph& graph_;
  ir::Region& region_;
  Remarks* remarks_;
  Cut cut_;
  std::map<const ir::Node*, Sides> sides_;
  std::map<const ir::Value*, int> makers_;
  std::vector<std::pair<ir::Value*, int>> readers_;
  std::map<const ir::Value*, std::pair<int, int>> transposes_;
  std::map<const ir::Value*, ir::Value*> last_;
  std::map<const ir::Value*, bool> wanted_second_;
};

}  // namespace

void lay_channels_last(ir::Graph& graph, Remarks* remarks) {
  if (!has_node(graph.top(), is_convolution)) return;
  remove_dead_nodes(graph);  // dead nodes of other rewrites would be priced as well
  std::vector<ir::Region*> regions{&graph.top()};
  ir::for_each_node(graph.top(), [&](ir::Node& node) {
    for (const auto& body : node.regions) regions.push_back(body.get());
  });
  for (ir::Region* region : regions) Layout(graph, *region, remarks).run();
}

}  // namespace treadle::opt
