#pragma once
// Watches the files from which weights are read while a model runs.

#include <memory>
#include <vector>

#include "ir/graph.h"
#include "wire/mapped_file.h"

namespace treadle::session {

class WeightFiles {
 public:
  WeightFiles() = default;
  // The mapped files with constants of `graph`.
  explicit WeightFiles(const ir::Graph& graph);

  bool is_empty() const { return files_.empty(); }
  // `status`. But if one of the files has been written to or has become shorter, an error that says so: then neither
  // results nor other errors can be trusted.
  Status checked(Status status) const;
  // The same without asking the system: only whether memory of a file was found missing.
  Status checked_memory(Status status) const;

 private:
  void add(const Tensor& tensor);

  std::vector<std::shared_ptr<const wire::MappedFile>> files_;
};

}  // namespace treadle::session
