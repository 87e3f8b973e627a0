#pragma once
// What onnx.checker checks, and more, on the messages of a file: a model that treadle cannot run is checked all the
// same. Every problem is reported, in the order of the model; time and memory are linear in the file.
//
// Checked are IR versions 1 to 14: names and their order, operators and attributes by the imported versions, types,
// tensors with their external data, sparse tensors, functions, training information, device configurations. A full
// check infers all types besides, of a model that is wrong as far as that goes.

#include <memory>
#include <string>

#include "check/diagnostic.h"
#include "wire/mapped_file.h"
#include "wire/onnx.h"

namespace treadle {

struct CheckOptions {
  bool full = false;                      // infer types as well; contradictions with declared ones are errors
  bool custom_domains = false;            // an operator that nobody has told us of is an error, not a warning
  bool skip_opset_compatibility = false;  // functions may import other versions of operators than the model
  std::string folder = {};                // where external data lies; empty: the file's own folder
  size_t max_diagnostics = 10000;         // those beyond are counted only
};

Report check_model(const std::shared_ptr<wire::MappedFile>& file, const CheckOptions& options = {});
// The same for a message whose texts are views into `file`, however it was read.
Report check_model(const wire::ModelProto& model, const std::shared_ptr<wire::MappedFile>& file,
                   const CheckOptions& options = {});

// Values that stand alone (.pb files).
Report check_value(const wire::TensorProto& value, const CheckOptions& options = {});
Report check_value(const wire::SparseTensorProto& value, const CheckOptions& options = {});
Report check_value(const wire::SequenceProto& value, const CheckOptions& options = {});
Report check_value(const wire::OptionalProto& value, const CheckOptions& options = {});
Report check_value(const wire::MapProto& value, const CheckOptions& options = {});

}  // namespace treadle
