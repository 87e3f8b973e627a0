#pragma once
// Tree ensembles for the operators of all versions. Comparisons are converted to the one kind that the walk knows, and
// weights of the leaves are summed up (averaged, ...) by target.

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/status.h"
#include "kernels/forest.h"

namespace treadle::ml {

enum class Mode : uint8_t { kLessEqual, kLess, kGreaterEqual, kGreater, kEqual, kNotEqual, kMember };
enum class Aggregate : uint8_t { kAverage, kSum, kMin, kMax };

// The target of a comparison: a leaf, or another comparison.
struct Branch {
  bool leaf = false;
  uint32_t index = 0;
};

struct Split {
  Mode mode = Mode::kLessEqual;
  bool missing_is_yes = false;  // NaN counts as yes
  uint32_t feature = 0;
  double threshold = 0;
  std::vector<double> members;  // kMember: yes for these numbers
  Branch yes, no;
};

struct Weight {
  uint32_t target;
  double value;
};

class Forest {
 public:
  // Most rows per call of evaluate().
  static constexpr size_t kBlock = 64;

  // Splits [0, splits.size()) have at most one parent each; roots have none. Leaf i has weights [first_weight[i],
  // first_weight[i + 1]), whose targets are below `targets`.
  Status build(std::span<const Split> splits, std::span<const Branch> roots, std::vector<uint32_t> first_weight,
               std::vector<Weight> weights, size_t targets);

  Aggregate aggregate = Aggregate::kSum;
  std::vector<double> base;  // added to the scores: empty, or one for each target
  Status check_base() const;

  size_t targets() const { return targets_; }
  std::span<const Weight> weights() const { return weights_; }
  // Leaf i has weights [first_weight()[i], first_weight()[i + 1]).
  std::span<const uint32_t> first_weight() const { return first_weight_; }
  std::span<const kernels::Tree> trees() const { return trees_; }
  // The nodes of all trees, for features of type T.
  template <class T>
  const std::vector<kernels::TreeNode<T>>& nodes() const;
  // The least number of features per row.
  int64_t features() const { return features_; }

  // Estimated time of a row.
  double row_ns() const;
  // Scores [rows][stride] of rows [rows][features]; sets the first targets() scores of each row.
  template <class T>
  void evaluate(const T* x, size_t rows, size_t features, double* scores, size_t stride) const;

 private:
  void add(const uint32_t* leaves, size_t count, double* scores, size_t stride) const;
  void add_extremes(const uint32_t* leaves, size_t count, double* scores, size_t stride) const;
  void store_weights(std::vector<uint32_t> first_weight, std::vector<Weight> weights);

  // Thresholds rounded down, so that a float compares with them as with the doubles. Made on first use.
  struct FloatNodes {
    std::once_flag once;
    std::vector<kernels::TreeNode<float>> nodes;
  };

  size_t targets_ = 0;
  int64_t features_ = 0;
  int64_t steps_ = 0;  // down to the deepest leaves of all trees together
  std::vector<kernels::TreeNode<double>> nodes_;
  std::unique_ptr<FloatNodes> float_nodes_ = std::make_unique<FloatNodes>();
  std::vector<kernels::Tree> trees_;
  bool nan_left_ = false;
  std::vector<uint32_t> first_weight_;
  std::vector<Weight> weights_;
  std::vector<double> table_;  // [leaf][target], if every leaf has each target once
};

template <>
const std::vector<kernels::TreeNode<double>>& Forest::nodes() const;
template <>
const std::vector<kernels::TreeNode<float>>& Forest::nodes() const;

}  // namespace treadle::ml
