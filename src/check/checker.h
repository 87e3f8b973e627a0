#pragma once
// The checks of onnx.checker, and more, on the messages of a file. A model that treadle cannot run is checked
// completely, too. Every problem is reported, in the order of the model. Time and memory are linear in the file.
//
// The check covers IR versions 1 to 14: names and their order, operators and attributes by the imported versions,
// types, tensors with their external data, sparse tensors, functions, training information, device configurations. A
// full check also infers all types; if the model has errors, as far as that is possible.

#include <memory>
#include <string>

#include "check/diagnostic.h"
#include "wire/mapped_file.h"
#include "wire/onnx.h"

namespace treadle {

struct CheckOptions {
  bool full = false;                      // also infer types; contradictions with declared ones are errors
  bool custom_domains = false;            // an operator of an unknown domain is an error, not a warning
  bool skip_opset_compatibility = false;  // functions may import other versions of operators than the model
  std::string folder = {};                // folder of external data; empty: the file's own folder
  size_t max_diagnostics = 10000;         // further ones are only counted
};

Report check_model(const std::shared_ptr<wire::MappedFile>& file, const CheckOptions& options = {});
// The same for a message that has been read; its texts are views into `file`.
Report check_model(const wire::ModelProto& model, const std::shared_ptr<wire::MappedFile>& file,
                   const CheckOptions& options = {});

// Single values (.pb files).
Report check_value(const wire::TensorProto& value, const CheckOptions& options = {});
Report check_value(const wire::SparseTensorProto& value, const CheckOptions& options = {});
Report check_value(const wire::SequenceProto& value, const CheckOptions& options = {});
Report check_value(const wire::OptionalProto& value, const CheckOptions& options = {});
Report check_value(const wire::MapProto& value, const CheckOptions& options = {});

}  // namespace treadle
