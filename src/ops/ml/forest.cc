// Every comparison becomes "at most a threshold", with a side for NaN. "Less than v" is "at most the number before v",
// "greater" has its branches swapped, and membership in a set is a search tree over the intervals between its members.
#include "ops/ml/forest.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/stop.h"
#include "ops/costs.h"

namespace treadle::ml {

namespace {

using kernels::Tree;
using kernels::TreeNode;
using Node = TreeNode<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNever = std::numeric_limits<double>::quiet_NaN();  // no number is at most this

// x < v exactly where x <= before(v).
double before(double v) {
  return v == -kInfinity ? kNever : std::nextafter(v, -kInfinity);
}

float round_down(double v) {
  const auto f = static_cast<float>(v);
  return static_cast<double>(f) > v ? std::nextafterf(f, -std::numeric_limits<float>::infinity()) : f;
}

// A part that is still to be written to a place: a branch, or the intervals [first, last] of a set's search tree.
struct Task {
  uint32_t place = 0;
  uint32_t depth = 0;
  uint32_t parent = 0;  // the split that leads here, or kRoot; for intervals the split with the set
  Branch branch;
  bool intervals = false;
  uint32_t first = 0, last = 0;
  uint32_t bottom = 0;  // for intervals: depth below which all of the set's branches count
};
constexpr uint32_t kRoot = UINT32_MAX;

// Writes trees into one array of nodes.
class NodeWriter {
 public:
  NodeWriter(std::span<const Split> splits, std::vector<Node>& nodes)
      : splits_(splits), nodes_(nodes), bounds_(splits.size()), written_(splits.size()) {}

  Result<Tree> write(Branch root) {
    Tree tree{reserve(1), 0};
    tasks_.push_back({tree.root, 0, kRoot, root});
    while (!tasks_.empty()) {
      const Task task = tasks_.back();
      tasks_.pop_back();
      tree.depth = std::max(tree.depth, task.depth);
      if (task.intervals) {
        write_intervals(task);
      } else if (task.branch.leaf) {
        nodes_[task.place] = {kNever, 0, task.place - 1, task.branch.index};
      } else {
        TREADLE_TRY(write_branch(task));
      }
      if (nodes_.size() > INT32_MAX) return error(Code::kLimit, "the trees have more than {} nodes", INT32_MAX);
    }
    return tree;
  }
  bool nan_left() const { return nan_left_; }

 private:
  // Where a split has been written.
  struct Written {
    uint32_t place = 0;
    uint32_t parent = 0;
    bool done = false;
  };

  uint32_t reserve(size_t count) {
    nodes_.resize(nodes_.size() + count);
    return static_cast<uint32_t>(nodes_.size() - count);
  }

  void write_node(const Task& task, uint32_t feature, double threshold, bool nan_left, Task left, Task right) {
    left.place = reserve(2);
    right.place = left.place + 1;
    left.depth = right.depth = task.depth + 1;
    nan_left_ |= nan_left;
    nodes_[task.place] = {threshold, feature | (nan_left ? Node::kNanLeft : 0), left.place, 0};
    tasks_.push_back(right);
    tasks_.push_back(left);
  }

  // If several branches of one parent lead to a split, the split is written once, and copies of its node share its
  // subtrees.
  Status write_branch(const Task& task) {
    Written& at = written_[task.branch.index];
    if (!at.done) {
      at = {task.place, task.parent, true};
      write_split(task);
      return {};
    }
    if (at.parent != task.parent || task.parent == kRoot) {
      return error(Code::kInvalidModel, "node {} of the trees has two parents, expected one at most",
                   task.branch.index);
    }
    nodes_[task.place] = nodes_[at.place];
    return {};
  }

  void write_split(const Task& task) {
    const uint32_t index = task.branch.index;
    const Split& s = splits_[index];
    const Task yes{0, 0, index, s.yes}, no{0, 0, index, s.no};
    const bool missing = s.missing_is_yes;
    switch (s.mode) {
      case Mode::kLessEqual:
        return write_node(task, s.feature, s.threshold, missing, yes, no);
      case Mode::kLess:
        return write_node(task, s.feature, before(s.threshold), missing, yes, no);
      case Mode::kGreater:
        return write_node(task, s.feature, std::isnan(s.threshold) ? kInfinity : s.threshold, !missing, no, yes);
      case Mode::kGreaterEqual:
        return write_node(task, s.feature, std::isnan(s.threshold) ? kInfinity : before(s.threshold), !missing, no,
                          yes);
      case Mode::kEqual:
      case Mode::kNotEqual:
        return write_set(task, {s.threshold});
      case Mode::kMember:
        return write_set(task, s.members);
    }
  }

  // The members divide the numbers into intervals that are alternately outside and inside of the set: (-inf,
  // before(a)], (before(a), a], (a, before(b)], ...
  void write_set(const Task& task, std::vector<double> members) {
    const uint32_t index = task.branch.index;
    std::erase_if(members, [](double m) { return std::isnan(m); });
    std::sort(members.begin(), members.end());
    members.erase(std::unique(members.begin(), members.end()), members.end());
    std::vector<double>& bounds = bounds_[index];
    if (members.empty()) bounds = {kNever, kNever};
    for (const double m : members) {
      bounds.push_back(before(m));
      bounds.push_back(m);
    }
    const auto last = static_cast<uint32_t>(bounds.size());
    const uint32_t bottom = task.depth + static_cast<uint32_t>(std::bit_width(last));
    write_intervals({task.place, task.depth, index, {}, true, 0, last, bottom});
  }

  void write_intervals(const Task& task) {
    const Split& s = splits_[task.parent];
    const bool swapped = s.mode == Mode::kNotEqual;
    if (task.first == task.last) {
      const bool inside = task.first % 2 == 1;
      tasks_.push_back({task.place, task.bottom, task.parent, inside != swapped ? s.yes : s.no});
      return;
    }
    const uint32_t middle = task.first + (task.last - task.first) / 2;
    Task left = task, right = task;
    left.last = middle;
    right.first = middle + 1;
    const bool nan_inside = s.missing_is_yes != swapped;  // NaN goes where the model says, although it equals no member
    const bool nan_left = left.first < left.last || (left.first % 2 == 1) == nan_inside;
    write_node(task, s.feature, bounds_[task.parent][middle], nan_left, left, right);
  }

  std::span<const Split> splits_;
  std::vector<Node>& nodes_;
  std::vector<std::vector<double>> bounds_;  // by split
  std::vector<Written> written_;             // by split
  std::vector<Task> tasks_;
  bool nan_left_ = false;
};

}  // namespace

Status Forest::build(std::span<const Split> splits, std::span<const Branch> roots, std::vector<uint32_t> first_weight,
                     std::vector<Weight> weights, size_t targets) {
  targets_ = targets;
  for (const Split& s : splits) features_ = std::max(features_, static_cast<int64_t>(s.feature) + 1);
  NodeWriter writer(splits, nodes_);
  nodes_.reserve(2 * splits.size() + roots.size());
  for (const Branch& root : roots) {
    TREADLE_ASSIGN(const Tree tree, writer.write(root));
    trees_.push_back(tree);
    steps_ += tree.depth + 1;
  }
  nan_left_ = writer.nan_left();
  store_weights(std::move(first_weight), std::move(weights));
  return {};
}

void Forest::store_weights(std::vector<uint32_t> first_weight, std::vector<Weight> weights) {
  first_weight_ = std::move(first_weight);
  weights_ = std::move(weights);
  if (weights_.size() != (first_weight_.size() - 1) * targets_) return;
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (weights_[i].target != i % targets_) return;
  }
  for (size_t leaf = 0; leaf < first_weight_.size(); ++leaf) {
    if (first_weight_[leaf] != leaf * targets_) return;
  }
  for (const Weight& w : weights_) table_.push_back(w.value);
}

template <>
const std::vector<TreeNode<double>>& Forest::nodes() const {
  return nodes_;
}

template <>
const std::vector<TreeNode<float>>& Forest::nodes() const {
  std::call_once(float_nodes_->once, [this] {
    float_nodes_->nodes.reserve(nodes_.size());
    for (const Node& n : nodes_) float_nodes_->nodes.push_back({round_down(n.threshold), n.feature, n.left, n.leaf});
  });
  return float_nodes_->nodes;
}

void Forest::add_extremes(const uint32_t* leaves, size_t count, double* scores, size_t stride) const {
  for (size_t i = 0; i < count; ++i, scores += stride) {
    for (uint32_t w = first_weight_[leaves[i]]; w < first_weight_[leaves[i] + 1]; ++w) {
      double& score = scores[weights_[w].target];
      const double value = weights_[w].value;
      if (std::isnan(score) || (aggregate == Aggregate::kMin ? value < score : value > score)) score = value;
    }
  }
}

// Adds leaf i's weights to row i of the scores (stride 0: all leaves to one row).
void Forest::add(const uint32_t* leaves, size_t count, double* scores, size_t stride) const {
  if (aggregate == Aggregate::kMin || aggregate == Aggregate::kMax) return add_extremes(leaves, count, scores, stride);
  if (!table_.empty() && targets_ == 1) {
    for (size_t i = 0; i < count; ++i) scores[i * stride] += table_[leaves[i]];
    return;
  }
  for (size_t i = 0; i < count; ++i, scores += stride) {
    if (!table_.empty()) {
      const double* values = table_.data() + leaves[i] * targets_;
      for (size_t t = 0; t < targets_; ++t) scores[t] += values[t];
      continue;
    }
    for (uint32_t w = first_weight_[leaves[i]]; w < first_weight_[leaves[i] + 1]; ++w) {
      scores[weights_[w].target] += weights_[w].value;
    }
  }
}

Status Forest::check_base() const {
  if (base.empty() || base.size() == targets_) return {};
  return error(Code::kInvalidModel, "attribute base_values has {} entries, expected {}", base.size(), targets_);
}

double Forest::row_ns() const {
  return costs::kTreeStepNs * static_cast<double>(steps_);
}

template <class T>
void Forest::evaluate(const T* x, size_t rows, size_t features, double* scores, size_t stride) const {
  const TreeNode<T>* table = nodes<T>().data();
  const bool extremes = aggregate == Aggregate::kMin || aggregate == Aggregate::kMax;
  for (size_t i = 0; i < rows; ++i) {
    std::fill_n(scores + i * stride, targets_, extremes ? std::numeric_limits<double>::quiet_NaN() : 0.0);
  }
  StopPoll stop;
  uint32_t leaves[kBlock];
  if (rows > kernels::kWalkLanes / 2) {
    for (const Tree& tree : trees_) {
      if (stop.after(costs::kTreeStepNs * static_cast<double>((tree.depth + 1) * rows))) return;
      kernels::walk_rows(table, tree, nan_left_, x, rows, features, leaves);
      add(leaves, rows, scores, stride);
    }
  } else {
    for (size_t i = 0; i < rows; ++i) {
      for (size_t first = 0; first < trees_.size(); first += kBlock) {
        if (stop.after(row_ns() / static_cast<double>(trees_.size()) * kBlock)) return;
        const size_t count = std::min(kBlock, trees_.size() - first);
        kernels::walk_trees(table, trees_.data() + first, count, nan_left_, x + i * features, leaves);
        add(leaves, count, scores + i * stride, 0);
      }
    }
  }
  const double share = aggregate == Aggregate::kAverage ? static_cast<double>(std::max<size_t>(1, trees_.size())) : 1;
  for (size_t i = 0; i < rows; ++i, scores += stride) {
    for (size_t t = 0; t < targets_; ++t) {
      if (extremes && std::isnan(scores[t])) scores[t] = 0;
      scores[t] /= share;
      if (!base.empty()) scores[t] += base[t];
    }
  }
}

template void Forest::evaluate(const float*, size_t, size_t, double*, size_t) const;
template void Forest::evaluate(const double*, size_t, size_t, double*, size_t) const;

}  // namespace treadle::ml
