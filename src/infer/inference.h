#pragma once
// The inference driver: walks regions in order, asks each operator for the types of its outputs, computes known
// contents, and iterates loop states to a fixed point.

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "base/arena.h"
#include "ir/graph.h"
#include "op/op_def.h"
#include "reference/folding.h"

namespace treadle {

// Knowledge about a value beyond its type.
struct Fact {
  Tensor constant;           // defined(): the contents
  bool has_symbols = false;  // whether `symbols` has the contents of a small integer tensor (rank 0 or 1)
  Shape symbols;
};

// How much inference concludes.
enum class Rules : uint8_t {
  kTreadle,  // as much as possible
  // As onnx's own inference (release 1.23): sizes are numbers or names, no expressions; eleven operators pass on
  // contents; loop states lose their shape. For comparison with onnx.
  kOnnx,
};

// Is told of every node that fails. Inference then goes on behind the node, whose outputs have their declared types.
class InferenceMonitor {
 public:
  // Called before a node is inferred, in each round of a loop. False: its arguments are wrong, and it is not inferred.
  virtual bool allows(const ir::Node& node) = 0;
  // `waits`: only sizes do not fit, in a body that a run may never reach (InferenceOptions::sizes_wait).
  virtual void failed(const ir::Node& node, Status status, bool waits) = 0;

 protected:
  ~InferenceMonitor() = default;
};

struct InferenceOptions {
  Rules rules = Rules::kTreadle;
  // Whether to evaluate nodes whose inputs are all known, within these limits.
  bool fold = true;
  reference::FoldLimits fold_limits = {};
  // Whether to pass on contents of small integer tensors from node to node.
  bool propagate = true;
  // Whether to use the shapes of elements that sequences and optionals declare. Not for planning: nothing checks them
  // before the run.
  bool trust_containers = true;
  // Whether to keep a declared type if inference knows less. Not for planning: exporters declare wrong shapes.
  bool keep_declared = true;
  // Whether argument types must be allowed by the operator.
  bool check_types = false;
  // With keep_declared: whether a declared type that contradicts the inferred one is an error. If not, the inferred one
  // counts.
  bool contradictions_fail = false;
  // Whether a node that fails is an error. If not, its outputs keep their declared types.
  bool strict = true;
  // With strict: a node that fails within a region is no error, and its outputs are unknown. For planning: the run
  // reports the error if it gets there.
  bool fails_late = false;
  // With strict: sizes that do not fit are no error in a body that a run may never reach: a branch, or a Loop whose
  // trip count or condition is unknown. The run reports the error if it gets there. waiting() lists the nodes.
  bool sizes_wait = false;
  InferenceMonitor* monitor = nullptr;
  // Whether unknown sizes get names (`unk__0`), so that equal ones can be recognised.
  bool name_unknowns = false;
};

// Whether a run reaches the current region. For nested bodies the larger value counts.
enum class Reach : uint8_t { kSurely, kPerhaps, kNever };

// A node whose sizes do not fit; the run will report the error if it reaches the node.
struct WaitingNode {
  const ir::Node* node;
  Status status;  // includes its place
  Reach reach;
};

// Facts about values are stored under numbers in the values' notes. So of several inferences over one graph, only the
// one that began last has facts.
class Inference {
 public:
  explicit Inference(InferenceOptions options = {});
  Inference(const Inference&) = delete;
  Inference& operator=(const Inference&) = delete;
  ~Inference();

  // Infers types (written to Value::type) and facts of all values in `region`, whose inputs have their types already.
  // Errors have the node's path, operator and version. Results before an error are kept.
  Status infer(ir::Region& region);
  Status infer(ir::Node& node);

  // The contents of a constant, or of a value that evaluates to one; null if unknown.
  const Tensor* constant(const ir::Value* value) const;
  const Shape* symbols(const ir::Value* value) const;
  std::span<const WaitingNode> waiting() const { return waiting_; }
  void set_constant(const ir::Value* value, Tensor contents);
  void set_symbols(const ir::Value* value, Shape contents);
  void forget(const ir::Value* value) {
    if (value->note.walk == walk_ && value->note.number >= kFirstKnown) forget_fact(value);
  }

 private:
  class Bodies;
  struct Results;
  Status infer_node(ir::Node& node);
  void infer_unreached(ir::Node& node);
  bool waits_for_run(ir::Node& node, const Status& status);
  void set_unknown(ir::Node& node);
  Status infer_if_known(ir::Node& node, const Tensor& condition);
  // Infers a branch that is not taken: reports show its types, but its sizes need not fit.
  void infer_leniently(ir::Region& region);
  Status infer_with_record(ir::Node& node);
  Status take_type(ir::Value* value, Type&& inferred);
  Status take_facts(ir::Node& node, Results& results);
  void fold(ir::Node& node);
  // Contents of a small integer or bool value, element by element.
  std::optional<Shape> contents(const ir::Value* value) const;
  // For an If: facts that both branches agree on. For a Loop or Scan: those of states that no iteration changes.
  void unite_facts(const ir::Node& node);
  void keep_facts(const ir::Node& node);
  void share_facts(const ir::Value* from, const ir::Value* to);

  // The type of the value before inference first changed it.
  const Type& declared(const ir::Value* value);
  bool as_onnx() const { return options_.rules == Rules::kOnnx; }
  void forget_expressions(Type& type) const;
  void name_unknowns(const ir::Value* value, Type& type);
  void find_taken_names(const ir::Region& top);

  struct Known {
    Fact* fact = nullptr;
    const Type* declared = nullptr;  // null: not looked up yet
  };
  // Numbers in notes: not looked up; looked up, and declared without a type; kFirstKnown + index in known_.
  enum : uint32_t { kUnseen, kUndeclared, kFirstKnown };

  const Known* known(const ir::Value* value) const {
    const ir::Value::Note& note = value->note;
    return note.walk == walk_ && note.number >= kFirstKnown ? &known_[note.number - kFirstKnown] : nullptr;
  }
  Known& know(const ir::Value* value);
  Fact& fact(const ir::Value* value);
  void forget_fact(const ir::Value* value);
  void disbelieve(const ir::Value* value);

  InferenceOptions options_;
  std::optional<reference::Folding> folding_;  // made on first need
  const uint32_t walk_;
  std::vector<Known> known_;
  Arena arena_;  // for the facts
  std::vector<Fact*> facts_, unused_facts_;
  std::deque<Type> declared_types_;
  int iteration_symbols_ = 0;
  Reach reach_ = Reach::kSurely;
  bool forgets_sizes_ = false;  // whether sizes of nodes' inputs are ignored
  std::vector<WaitingNode> waiting_;
  std::unordered_set<const ir::Region*> reached_;  // bodies, if there is a monitor

  // Names of unknown sizes: by value, so that inferring a body again gives the same names, and by the region of the
  // value, since they have no meaning outside of a loop.
  std::unordered_map<const ir::Value*, std::vector<std::string>> names_;
  std::unordered_map<const ir::Region*, std::vector<std::string>> names_of_region_;
  std::unordered_set<std::string> taken_names_;
  int next_name_ = 0;
};

// Whether to evaluate a node beforehand: its outputs (kUnknown: none, or not wanted) are tensors and not much larger
// than its inputs.
bool worth_folding(std::span<const AnyValue> inputs, std::span<const Type> outputs);

}  // namespace treadle
