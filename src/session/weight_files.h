#pragma once
// The files that weights are read from while a model runs.

#include <memory>
#include <vector>

#include "ir/graph.h"
#include "wire/mapped_file.h"

namespace treadle::session {

class WeightFiles {
 public:
  WeightFiles() = default;
  // The mapped files that constants of `graph` lie in.
  explicit WeightFiles(const ir::Graph& graph);

  // `status`, or, where one of the files has been written to or has become shorter, an error that says so: what was
  // made of it is worth nothing, be it a result or an error.
  Status checked(Status status) const;

 private:
  void add(const Tensor& tensor);

  std::vector<std::shared_ptr<const wire::MappedFile>> files_;
};

}  // namespace treadle::session
