#pragma once
// ModelProto -> ir::Graph: names become pointers, operators and functions are resolved, functions are inlined, defaults
// of attributes are filled in, and weights stay in the mapped file.
//
// Later stages rely on these properties of the result. Every node's operator is one that treadle knows, in the version
// that was in force where the node was written. Counts of inputs and outputs, names and kinds of attributes fit that
// version. Every name is defined once per graph, before its uses. `Constant` nodes have become constants. Declared
// types are taken over without a check.
//
// Two rules of the specification may be broken, since exporters and graph editors break them and onnxruntime accepts
// that: unsorted nodes are sorted, and operators of domains that the model does not import (ai.onnx.ml, com.microsoft)
// are those of the newest version.
//
// A name in a body may hide a name of an outer graph; a use refers to the innermost definition that precedes it.

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
  std::string folder;                            // folder of external data; empty: the file's own folder
  bool copy_weights = false;                     // copy weights into memory; otherwise they stay in mapped files
  size_t max_inlined_nodes = 1'000'000;          // limit of the nodes that calls of functions may become
  std::vector<std::string>* warnings = nullptr;  // gets a sentence for each rule that the model breaks although it runs
  // For inspecting models, not for running them: nodes of unknown operators become opaque_op(), and their outputs have
  // unknown types. A node that breaks the rules of its operator becomes one as well, and its error, with its place, is
  // added to `broken`. Known operators that cannot run stay. Errors of the file itself are still errors.
  std::vector<Status>* broken = nullptr;
  // Read as the onnx package's inference does: a call has to use every output of its function, STFT's attribute
  // onesided has no default, and combinations of attributes of ai.onnx are not checked.
  bool as_onnx = false;
  // For a graph that only serves inference and is freed before the file: names stay in the file, paths of nodes need
  // not be unique, and large weights become values without contents.
  bool for_types = false;
  bool unique_paths = false;  // with for_types too
  // Let the body's condition end a Loop without cond. The specification says that the condition is ignored.
  bool obey_loop_conditions = false;
  // Uses of names that were found before; names are not looked up again if it is complete. For models without errors in
  // names.
  const NameUses* name_uses = nullptr;
  // Sizes for axes of the model's inputs that have such a denotation ("DATA_BATCH"), in any case of letters.
  struct DenotedSize {
    std::string denotation;
    int64_t size;
    bool found = false;  // set by the import
  };
  std::vector<DenotedSize>* denoted_sizes = nullptr;
  // Contents for initializers of the graph; the file's contents are then ignored.
  struct GivenInitializer {
    std::string name;
    Tensor contents;
    bool found = false;  // set by the import
  };
  std::vector<GivenInitializer>* initializers = nullptr;
  // Operators of this model only, by domain ("" for ai.onnx) and name; they precede treadle's. Returns null for other
  // names. Records must live as long as the graph.
  std::function<const OpDef*(std::string_view domain, std::string_view name)> operators;
  // External data by the file's name in the model; used instead of the file.
  std::vector<std::pair<std::string, std::shared_ptr<wire::MappedFile>>> files;
};

// Errors, each with its place (file, path through the bodies, operator and version): kInvalidFile (bytes),
// kInvalidModel (rules of the specification), kNotImplemented (an operator, version or type that treadle lacks),
// kLimit, kNoSuchFile (external data).
Result<std::unique_ptr<ir::Graph>> import_model(const std::shared_ptr<wire::MappedFile>& file,
                                                const ImportOptions& options = {});
// The same for a message that has been parsed from `file`.
Result<std::unique_ptr<ir::Graph>> import_model(const wire::ModelProto& model,
                                                const std::shared_ptr<wire::MappedFile>& file,
                                                const ImportOptions& options = {});

// Turns inputs with defaults into constants, for runs in which the caller overrides none of them.
void fix_input_defaults(ir::Graph& graph);

}  // namespace treadle::model
