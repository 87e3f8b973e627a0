#pragma once
// ModelProto -> ir::Graph: names become pointers, operators and functions are resolved, functions are inlined, defaults
// of attributes filled in, weights left in the mapped file.
//
// What holds of the result, so that nobody after has to look: every node's operator is one that treadle has, in the
// version that was in force where the node was written; its counts of inputs and outputs, its attributes' names and
// kinds are those of that version; every name is defined once per graph and before its uses. `Constant` nodes have
// become constants. Declared types are taken over as they are: they are the exporter's word, not checked here.
//
// Two rules of the specification may be broken, as exporters and graph editors do break them and onnxruntime lets them:
// nodes that are not sorted are sorted, and operators of domains that the model does not import (ai.onnx.ml,
// com.microsoft) are those of the newest version.
//
// A name in a body may hide one of an outer graph; a use means the innermost definition that stands before it.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "wire/mapped_file.h"
#include "wire/onnx.h"

namespace treadle::model {

struct NameUses;  // model/name_uses.h

inline constexpr int64_t kOldestIrVersion = 1;
inline constexpr int64_t kNewestIrVersion = 14;

struct ImportOptions {
  std::string folder;                    // where external data lies; empty: the file's own folder
  bool copy_weights = false;             // into memory; else they stay where they are in mapped files
  size_t max_inlined_nodes = 1'000'000;  // what calls of functions may grow into
  std::vector<std::string>* warnings =
      nullptr;  // gets a sentence for each rule that the model breaks and runs all the same
  // Nodes of operators that treadle does not know become opaque_op() and nothing is known of what they make; a node
  // that breaks the rules of its operator does too, and its error, with its place, is added to `broken`. For looking at
  // models, not for running them: operators that are known, but not run, stay. Errors of the file itself are still
  // errors.
  std::vector<Status>* broken = nullptr;
  // Read as the onnx package's inference does: a call has to take every output of its function, STFT's attribute
  // onesided has no default, and attributes of ai.onnx need not make sense together.
  bool as_onnx = false;
  // For a graph whose types are inferred and that goes before the file does: names stay in the file, paths of nodes
  // need not be unique, and large weights become values without contents.
  bool for_types = false;
  bool unique_paths = false;  // also for types
  // The body of a Loop without cond ends the Loop. The specification says that such a body's condition is ignored.
  bool obey_loop_conditions = false;
  // Where it is complete, names are not looked up. For models without errors in their names.
  const NameUses* name_uses = nullptr;
  // Sizes for axes of the model's inputs that have such a denotation ("DATA_BATCH"), in any case of letters.
  struct DenotedSize {
    std::string denotation;
    int64_t size;
    bool found = false;  // set by the import
  };
  std::vector<DenotedSize>* denoted_sizes = nullptr;
  // Contents of the graph's initializers in place of the file's, which are not looked at.
  struct GivenInitializer {
    std::string name;
    Tensor contents;
    bool found = false;  // set by the import
  };
  std::vector<GivenInitializer>* initializers = nullptr;
  // Operators that only this model knows, by domain ("" for ai.onnx) and name; before treadle's own. Null: there is
  // none such. Records live as long as the graph.
  std::function<const OpDef*(std::string_view domain, std::string_view name)> operators;
  // What the model's external data is read from, by what the model calls it, in place of files of that name.
  std::vector<std::pair<std::string, std::shared_ptr<wire::MappedFile>>> files;
};

// Errors, each with its place (file, path through the bodies, operator and version):
// kInvalidFile (bytes), kInvalidModel (rules of the specification), kNotImplemented (an operator, version or type that
// treadle lacks), kLimit, kNoSuchFile (external data).
Result<std::unique_ptr<ir::Graph>> import_model(const std::shared_ptr<wire::MappedFile>& file,
                                                const ImportOptions& options = {});
// The same for a message that has been parsed from `file`.
Result<std::unique_ptr<ir::Graph>> import_model(const wire::ModelProto& model,
                                                const std::shared_ptr<wire::MappedFile>& file,
                                                const ImportOptions& options = {});

// Inputs that have defaults become constants: the graph as it runs when the caller overrides none of them.
void fix_input_defaults(ir::Graph& graph);

}  // namespace treadle::model
