#pragma once
// Evaluates nodes that depend on constants alone, within limits, since a file of a few bytes can ask for any amount of
// work (tensors that double from node to node, a large product). A node that would exceed the limits is not evaluated.
// The run evaluates it, if it gets there, under the run's limits.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/memory_account.h"
#include "ir/graph.h"
#include "type/any_value.h"

namespace treadle::reference {

// Limits of folding.
struct FoldLimits {
  size_t bytes = size_t{32} << 20;  // bytes of all results at a time; 0: no limit
  double work_ns = 500e6;           // of all evaluations together, by the kernels' estimates; 0: no limit

  static FoldLimits none() { return {0, 0}; }
  // Limits in proportion to the model's constants.
  static FoldLimits of_model(size_t constant_bytes);
};

class Folding {
 public:
  explicit Folding(const FoldLimits& limits = {});

  // The outputs of a node without bodies for these inputs. None if it fails or exceeds a limit.
  std::optional<std::vector<AnyValue>> evaluate(const ir::NodeInfo& node, std::span<const AnyValue> inputs);

 private:
  class Steps;
  bool spend(double ns);

  const FoldLimits limits_;
  const std::shared_ptr<MemoryAccount> account_;
  std::atomic<int64_t> spent_ns_{0};
};

}  // namespace treadle::reference
