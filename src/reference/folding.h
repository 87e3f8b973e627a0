#pragma once
// Evaluating beforehand what depends on constants alone, within bounds: a file of a few bytes can ask for any amount
// of it (tensors that double from node to node, a large product). What would go beyond them is not evaluated; the run
// does it, if it gets there, under the run's limits.

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

// What folding may take.
struct FoldLimits {
  size_t bytes = size_t{32} << 20;  // of what its results hold at a time; 0: as much as there is
  double work_ns = 500e6;           // of all evaluations together, as kernels estimate what they do; 0: any

  static FoldLimits none() { return {0, 0}; }
  // In proportion to what the model has brought along.
  static FoldLimits of_model(size_t constant_bytes);
};

class Folding {
 public:
  explicit Folding(const FoldLimits& limits = {});

  // The outputs of a node without bodies, for these inputs. None where it fails or takes too much.
  std::optional<std::vector<AnyValue>> evaluate(const ir::NodeInfo& node, std::span<const AnyValue> inputs);

 private:
  class Steps;
  bool spend(double ns);

  const FoldLimits limits_;
  const std::shared_ptr<MemoryAccount> account_;
  std::atomic<int64_t> spent_ns_{0};
};

}  // namespace treadle::reference
