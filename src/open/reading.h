#pragma once
// A model's graph with inferred types, for the sizes that it had or for others.

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "infer/inference.h"
#include "type/dim_values.h"
#include "wire/mapped_file.h"
#include "wire/onnx.h"

namespace treadle::open {

class Reading final : InferenceMonitor {
 public:
  // `sizes`: numbers for symbols of inputs. Errors: the model cannot be read. Nodes that break a rule are no error.
  static Result<std::unique_ptr<Reading>> of(const wire::ModelProto& model,
                                             const std::shared_ptr<wire::MappedFile>& file, const std::string& folder,
                                             const SymbolSizes& sizes);

  const ir::Region& top() const { return graph_->top(); }
  const Tensor* constant(const ir::Value* value) const { return inference_.constant(value); }
  // The contents of a constant list of integers.
  std::optional<std::vector<int64_t>> integers(const ir::Value* value) const;
  // Why the node breaks a rule; null if it does not.
  const Status* failure(const ir::Node& node) const;

 private:
  Reading();
  bool allows(const ir::Node& node) override;
  void failed(const ir::Node& node, Status status, bool waits) override;

  std::unique_ptr<ir::Graph> graph_;
  Inference inference_;
  std::unordered_map<const ir::Node*, Status> failures_;
};

}  // namespace treadle::open
