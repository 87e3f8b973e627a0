#pragma once
// The inference driver: walks regions in order, asks each operator for the types of its outputs, carries known contents
// along, and brings loop states to a fixed point.

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

// What is known of a value beyond its type.
struct Fact {
  Tensor constant;           // defined(): the contents
  bool has_symbols = false;  // contents of a small integer tensor (rank 0 or 1) as Dims
  Shape symbols;
};

// How much inference concludes.
enum class Rules : uint8_t {
  kTreadle,  // all that can be known
  // What onnx's own inference concludes (release 1.23): sizes are numbers or names, no expressions; contents are
  // carried through eleven operators; loop states lose their shape. For comparing with it.
  kOnnx,
};

// For who wants to know of every node that fails: inference then goes on behind it, and nothing is known of what it
// makes beyond what is declared.
class InferenceMonitor {
 public:
  // Asked before a node is inferred, in each round of a loop; false: its arguments are wrong and it is not.
  virtual bool allows(const ir::Node& node) = 0;
  // `waits`: only sizes do not fit, in a body that a run may never reach (InferenceOptions::sizes_wait).
  virtual void failed(const ir::Node& node, Status status, bool waits) = 0;

 protected:
  ~InferenceMonitor() = default;
};

struct InferenceOptions {
  Rules rules = Rules::kTreadle;
  // Evaluate nodes whose inputs are all known, within these limits.
  bool fold = true;
  reference::FoldLimits fold_limits = {};
  // Carry contents of small integer tensors from node to node.
  bool propagate = true;
  // Believe what sequences and optionals say about the shapes of their elements. Planning does not: nothing checks it
  // before the run.
  bool trust_containers = true;
  // Keep a declared type where inference knows less. Planning does not: exporters declare wrong shapes.
  bool keep_declared = true;
  // Argument types must be ones that the operator allows.
  bool check_types = false;
  // With keep_declared: a declared type that contradicts the inferred one is an error. Otherwise the inferred one
  // counts.
  bool contradictions_fail = false;
  // A node that fails is an error. Otherwise its outputs stay as they are declared.
  bool strict = true;
  // With strict: a node that fails within a region is none, and nothing is known of what it makes. For planning: the
  // run says so, if it gets there.
  bool fails_late = false;
  // With strict: sizes that do not fit are no error in a body that a run may never reach: a branch, a Loop whose trip
  // count or condition is open. The run says so, if it gets there. waiting() lists the nodes.
  bool sizes_wait = false;
  InferenceMonitor* monitor = nullptr;
  // Sizes that nobody knows get names (`unk__0`), so that equal ones can be told.
  bool name_unknowns = false;
};

// Whether a run reaches what is being inferred; of two bodies, one within the other, the larger one counts.
enum class Reach : uint8_t { kSurely, kPerhaps, kNever };

// A node whose sizes do not fit, and that waits for the run.
struct WaitingNode {
  const ir::Node* node;
  Status status;  // with its place
  Reach reach;
};

// What it knows of values it keeps under numbers that it puts into their notes: of several that go over one graph, only
// the last to begin knows anything.
class Inference {
 public:
  explicit Inference(InferenceOptions options = {});
  Inference(const Inference&) = delete;
  Inference& operator=(const Inference&) = delete;
  ~Inference();

  // Types (written to Value::type) and facts of everything in `region`, whose inputs have their types already.
  // Errors carry the node's path, operator and version. What was inferred before one stays.
  Status infer(ir::Region& region);
  Status infer(ir::Node& node);

  // Contents of a constant, or of a value that evaluates to one; null where not known.
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
  void know_nothing(ir::Node& node);
  Status infer_if_known(ir::Node& node, const Tensor& condition);
  // A branch that is not taken: its types are of use to readers, but nothing in it has to fit the sizes at hand.
  void infer_leniently(ir::Region& region);
  Status infer_with_record(ir::Node& node);
  Status take_type(ir::Value* value, Type&& inferred);
  Status take_facts(ir::Node& node, Results& results);
  void fold(ir::Node& node);
  // Contents of a small integer or bool value, element by element.
  std::optional<Shape> contents(const ir::Value* value) const;
  // Of an If: what both branches say. Of a Loop or Scan: states that no trip changes.
  void unite_facts(const ir::Node& node);
  void keep_facts(const ir::Node& node);
  void share_facts(const ir::Value* from, const ir::Value* to);

  // The type that the value had when this was first asked: before inference came by.
  const Type& declared(const ir::Value* value);
  bool as_onnx() const { return options_.rules == Rules::kOnnx; }
  void forget_expressions(Type& type) const;
  void name_unknowns(const ir::Value* value, Type& type);
  void find_taken_names(const ir::Region& top);

  struct Known {
    Fact* fact = nullptr;
    const Type* declared = nullptr;  // null: not asked yet
  };
  // Numbers of values: never asked for; asked for, and declared without a type; kFirstKnown + index in known_.
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
  Arena arena_;  // of the facts
  std::vector<Fact*> facts_, unused_facts_;
  std::deque<Type> declared_types_;
  int trip_symbols_ = 0;
  Reach reach_ = Reach::kSurely;
  bool forgets_sizes_ = false;  // of the inputs of nodes
  std::vector<WaitingNode> waiting_;
  std::unordered_set<const ir::Region*> reached_;  // bodies, where there is a monitor

  // Names of unknown sizes: by value, so that inferring a body again gives the same ones, and by the region that made
  // them, since outside of a loop they mean nothing.
  std::unordered_map<const ir::Value*, std::vector<std::string>> names_;
  std::unordered_map<const ir::Region*, std::vector<std::string>> names_of_region_;
  std::unordered_set<std::string> taken_names_;
  int next_name_ = 0;
};

// Whether a node may be evaluated beforehand: its outputs (kUnknown: none, or not wanted) are tensors, and not much
// more than is known already.
bool worth_folding(std::span<const AnyValue> inputs, std::span<const Type> outputs);

}  // namespace treadle
