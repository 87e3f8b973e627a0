#pragma once
// Problems of a model: each has a stable name, a place, and a hint if one is known.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace treadle {

enum class Severity : uint8_t {
  kWarning,  // runs, but perhaps not as its author expects, or not in every engine
  kError,    // violates the specification
};

// X(enumerator, name, severity, description). The names are stable: tools may rely on them.
#define TREADLE_PROBLEMS(X)                                                                                         \
  X(kFileInvalid, "file-invalid", kError, "the bytes are not a model")                                              \
  X(kFileLimit, "file-limit", kError, "the file's structure is nested too deeply, or too large")                    \
  X(kFileSize, "file-size", kWarning, "the file is larger than the 2 GiB that other readers accept")                \
  X(kTextEncoding, "text-encoding", kError, "a name is not UTF-8")                                                  \
  X(kIrVersion, "ir-version", kError, "the IR version is missing or unknown")                                       \
  X(kIrFeature, "ir-feature", kWarning, "something came with a later IR version than the model states")             \
  X(kGraphMissing, "graph-missing", kError, "the model has no graph")                                               \
  X(kOpsetMissing, "opset-missing", kError, "the model imports no operator set")                                    \
  X(kOpsetInvalid, "opset-invalid", kError, "an operator set's version is none, or stands where none may")          \
  X(kOpsetDuplicate, "opset-duplicate", kError, "a domain is imported in two versions")                             \
  X(kOpsetUnknown, "opset-unknown", kWarning, "an operator set is newer than what treadle knows")                   \
  X(kMetadataDuplicate, "metadata-duplicate", kError, "metadata has a key twice")                                   \
  X(kNameMissing, "name-missing", kError, "something that needs a name has none")                                   \
  X(kNameDuplicate, "name-duplicate", kError, "two values have one name")                                           \
  X(kNameUnknown, "name-unknown", kError, "a value is used that nothing defines")                                   \
  X(kNodeOrder, "node-order", kError, "a value is used before the node that makes it")                              \
  X(kNodeCycle, "node-cycle", kError, "nodes depend on each other in a circle")                                     \
  X(kOutputUnknown, "output-unknown", kError, "nothing in the graph or function makes its output")                  \
  X(kInitializerNotInput, "initializer-not-input", kError, "before IR version 4 every initializer is an input")     \
  X(kNameShadowed, "name-shadowed", kWarning, "a name in a body hides one outside of it")                           \
  X(kInitializerUnused, "initializer-unused", kWarning, "an initializer is never used")                             \
  X(kTypeMissing, "type-missing", kError, "an input or output of the model has no type, or no shape")               \
  X(kTypeInvalid, "type-invalid", kError, "a declared type is not complete, or there is no such type")              \
  X(kSizeNegative, "size-negative", kWarning, "a declared size is negative; unknown sizes are left out or named")   \
  X(kNodeEmpty, "node-empty", kError, "a node has neither inputs nor outputs")                                      \
  X(kDomainNotImported, "domain-not-imported", kError, "a node's domain is not among the imported operator sets")   \
  X(kOperatorUnknown, "operator-unknown", kError, "there is no such operator")                                      \
  X(kOperatorTooNew, "operator-too-new", kError, "the operator came with a later operator set")                     \
  X(kOperatorDeprecated, "operator-deprecated", kError, "the operator is no longer part of the imported set")       \
  X(kOperatorReplaced, "operator-replaced", kWarning, "a deprecated version of an operator that lives on")          \
  X(kOperatorOutdated, "operator-outdated", kWarning, "the operator was deprecated by a later operator set")        \
  X(kOperatorExperimental, "operator-experimental", kWarning, "an experimental operator that was removed")          \
  X(kOperatorCustom, "operator-custom", kWarning, "an operator of a domain that treadle knows nothing of")          \
  X(kInputCount, "input-count", kError, "too few or too many inputs")                                               \
  X(kInputMissing, "input-missing", kError, "a required input is left out")                                         \
  X(kOutputCount, "output-count", kError, "too few or too many outputs")                                            \
  X(kOutputMissing, "output-missing", kError, "a required output is left out")                                      \
  X(kAttributeUnknown, "attribute-unknown", kError, "the operator has no such attribute")                           \
  X(kAttributeMissing, "attribute-missing", kError, "a required attribute is missing")                              \
  X(kAttributeDuplicate, "attribute-duplicate", kError, "an attribute is given twice")                              \
  X(kAttributeType, "attribute-type", kError, "an attribute has another type than it should")                       \
  X(kAttributeValue, "attribute-value", kError, "an attribute's value is missing, or there are several")            \
  X(kAttributeReference, "attribute-reference", kError, "an attribute refers to a parameter that is not there")     \
  X(kAttributeIgnored, "attribute-ignored", kWarning, "another attribute makes this one void")                      \
  X(kAttributeUnread, "attribute-unread", kWarning, "the function declares no such attribute")                      \
  X(kAxisNegative, "axis-negative", kWarning, "a negative axis, which a later version of the operator allows")      \
  X(kBodySignature, "body-signature", kError, "a body's inputs or outputs do not fit its node")                     \
  X(kTensorType, "tensor-type", kError, "a tensor has no element type, or there is no such type")                   \
  X(kTensorDims, "tensor-dims", kError, "a tensor's sizes are negative, or their product is too large")             \
  X(kTensorData, "tensor-data", kError, "a tensor's data stand in the wrong field, in several, or in none")         \
  X(kTensorSize, "tensor-size", kError, "a tensor has less data than its sizes say")                                \
  X(kTensorExcess, "tensor-excess", kWarning, "a tensor has more data than its sizes say")                          \
  X(kTensorBits, "tensor-bits", kError, "bits of packed elements are set that belong to no element")                \
  X(kExternalData, "external-data", kError, "external data lie where they must not, or nowhere")                    \
  X(kExternalRange, "external-range", kError, "external data reach beyond the end of their file")                   \
  X(kSparseTensor, "sparse-tensor", kError, "a sparse tensor's parts do not fit each other")                        \
  X(kValueInvalid, "value-invalid", kError, "a sequence, map or optional is not complete")                          \
  X(kFunctionDuplicate, "function-duplicate", kError, "two functions have one name")                                \
  X(kFunctionCycle, "function-cycle", kError, "functions call each other in a circle")                              \
  X(kFunctionDepth, "function-depth", kError, "functions call each other too deeply")                               \
  X(kFunctionOpset, "function-opset", kError, "a function imports another version of an operator than the model")   \
  X(kFunctionHides, "function-hides-operator", kWarning, "a function has the name of an operator")                  \
  X(kTrainingInvalid, "training-invalid", kError, "training information does not fit the model")                    \
  X(kDeviceInvalid, "device-invalid", kError, "a device configuration does not fit the model")                      \
  X(kLoopCondition, "loop-condition-ignored", kWarning, "a Loop without cond ignores its body's condition")         \
  X(kLoopEndless, "loop-endless", kWarning, "a Loop that nothing ends")                                             \
  X(kStateShape, "state-shape", kWarning, "a body changes the declared shape of its state")                         \
  X(kTypeConstraint, "type-constraint", kError, "a value's type is none that the operator takes")                   \
  X(kTypeContradiction, "type-contradiction", kError, "a declared type contradicts the inferred one")               \
  X(kShapeContradiction, "shape-contradiction", kWarning, "a body declares a value with another shape than it has") \
  X(kInference, "inference", kError, "an operator cannot take its arguments")                                       \
  X(kSizesInBody, "sizes-in-body", kWarning, "sizes do not fit in a body that a run may never reach")               \
  X(kNotImplemented, "not-implemented", kWarning, "the model may be right, but treadle does not run it")

enum class Problem : uint8_t {
#define X(enumerator, ...) enumerator,
  TREADLE_PROBLEMS(X)
#undef X
};

struct ProblemInfo {
  std::string_view name;
  Severity severity;
  std::string_view meaning;
};
const ProblemInfo& info(Problem problem);

inline constexpr size_t kNoOffset = ~size_t{0};

struct Diagnostic {
  Problem problem = Problem::kFileInvalid;
  std::string path;      // path through functions and bodies to the node: "/decoder:body/Add_7"; empty: the model
  std::string op;        // the node's operator, with its version if known: "Add-14"
  std::string message;   // what is wrong, without a full stop
  std::string expected;  // may be empty
  std::string found;     // may be empty
  std::string origin;    // where the offending name or type was defined; may be empty
  size_t origin_offset = kNoOffset, origin_length = 0;  // position of the name there
  std::string hint;                                     // how to correct it; may be empty
  size_t offset = kNoOffset;                            // byte offset in the file of the offending name or node
  size_t length = 0;                                    // its length in bytes

  Severity severity() const { return info(problem).severity; }
  std::string sentence() const;  // message, expected and found in one sentence
};

struct Report {
  std::string file;                     // as given; empty for bytes
  std::vector<Diagnostic> diagnostics;  // in model order
  size_t errors = 0, warnings = 0;      // including those beyond the limit, which are not in the list
  // Why a session refuses the model; empty if a session takes it. No value if no session was tried.
  std::optional<std::string> refusal;
  std::string outlook;  // whether the model will profit from treadle, in a line; empty if that is not known

  bool ok() const { return errors == 0; }
};

// A text from a file, in double quotes, for messages: escapes control characters and invalid UTF-8, cuts long texts.
std::string quoted(std::string_view text);
// The offset of `part` in `file`; kNoOffset if it is a view into other memory.
size_t offset_in(std::string_view file, std::string_view part);

}  // namespace treadle
