#pragma once
// The arguments of an operator's functions: InferContext, PrepareContext, ComputeContext, LowerContext.

#include <optional>
#include <span>
#include <unordered_map>

#include "ir/graph.h"
#include "op/kernel.h"
#include "op/operand.h"
#include "op/pack_cache.h"
#include "type/any_value.h"

namespace treadle {

struct ElementwiseForm;  // op/elementwise.h

// ---------------------------------------------------------------------------------------------------------------------

// Infers a node's bodies. The inference driver decides how types of states are unified (ONNX's rules, or a fixed
// point).
class BodyInference {
 public:
  // Types of the body's outputs, given the types of its inputs. `states`: how many values a loop carries; from the
  // second iteration on they have the types of the corresponding outputs.
  virtual Result<std::vector<Type>> infer(const char* attribute, std::vector<Type> inputs, size_t states = 0) = 0;
  virtual const ir::Region* region(const char* attribute) const = 0;

 protected:
  ~BodyInference() = default;
};

// Types in, types out. One function per operator serves checking (symbolic sizes), planning (known sizes) and running
// (sizes that depend on data). With known sizes it allocates nothing.
class InferContext {
 public:
  const ir::NodeInfo& node;
  std::span<const Type* const> inputs;    // null: left out
  std::span<const Tensor* const> values;  // contents if known, else null; may be shorter than `inputs`
  std::span<const Shape* const>
      symbols;  // contents of small integer tensors (rank 0 or 1) as Dims, else null; may be shorter than `inputs`
  std::span<Type> outputs;               // to be set; one per output, including outputs that are left out
  std::span<Shape> output_symbols;       // to be set if the operator can compute them; may be empty
  std::span<bool> output_symbols_known;  // whether output_symbols[i] was set
  BodyInference* bodies = nullptr;       // for operators with graph attributes

  const ir::Attributes& attributes() const { return node.attributes; }
  int version() const;  // since_version of the node's version

  bool has_input(size_t i) const { return i < inputs.size() && inputs[i] && inputs[i]->is_known(); }
  const Type& input(size_t i) const { return *inputs[i]; }
  ElementType element(size_t i) const { return has_input(i) ? inputs[i]->element : ElementType::kUndefined; }
  // Null if the input is left out or its rank is unknown.
  const Shape* shape(size_t i) const { return has_input(i) && inputs[i]->has_shape ? &inputs[i]->shape : nullptr; }
  // The contents of input i; null if unknown.
  const Tensor* value(size_t i) const { return i < values.size() ? values[i] : nullptr; }
  // The contents of a small integer input as Dims, from value() or symbols; nullopt if unknown.
  std::optional<Shape> dims_value(size_t i) const;

  // A tensor of unknown shape; of known shape.
  void set_output(size_t i, ElementType element);
  void set_output(size_t i, ElementType element, Shape shape);
  void set_output(size_t i, Type type);
  bool wants_symbols(size_t i) const { return i < output_symbols.size(); }
  void set_output_symbols(size_t i, Shape contents);
};

// ---------------------------------------------------------------------------------------------------------------------

// Known shapes in, a kernel out. Preparation does all work that does not depend on data.
class PrepareContext {
 public:
  const ir::NodeInfo& node;
  std::span<const Operand> inputs;
  std::span<const Operand> outputs;
  StateArena& arena;
  PackCache& packs;

  // Results.
  Kernel kernel;
  size_t scratch_bytes = 0;  // 64-byte aligned, uninitialised, at operand index inputs.size() + outputs.size()
  // If not null, an operator that can writes here what it computes. Memory that the form points to lives as long as
  // `arena`.
  ElementwiseForm* form = nullptr;
  // Threads that a run may use. The kernel may split its work over them (op/parallel.h).
  int threads = 1;
  // Result: estimated nanoseconds of a run, if it takes longer than a pass over the operands.
  double cost_ns = 0;
  // Result: bytes that the kernel keeps from one run to the next, at operand scratch_operand() + 1. They are zero
  // before the first run. The operand is null if runs do not follow each other.
  size_t kept_bytes = 0;
  // The caller wants `form` only: an operator that fills it may leave `kernel` empty.
  bool form_only = false;
  // Operators that move elements say in `form` where the elements of operands and results of at most so many come from.
  int64_t most_moves = 1024;

  const ir::Attributes& attributes() const { return node.attributes; }
  int version() const;
  bool has_input(size_t i) const { return i < inputs.size() && inputs[i].present(); }
  bool has_output(size_t i) const { return i < outputs.size() && outputs[i].present(); }
  uint32_t scratch_operand() const { return static_cast<uint32_t>(inputs.size() + outputs.size()); }

  template <class T, class... Args>
  T* make_state(Args&&... args) {
    return arena.make<T>(std::forward<Args>(args)...);
  }
  void set_kernel(KernelFn run, const void* state, ResizeFn resize = nullptr, std::string_view method = {}) {
    kernel = {run, state, resize, method};
  }
  // The constant contents of a small integer input (axes, shapes, ...). Only for inputs named in OpDef::shape_inputs,
  // whose contents are always known here, and for inputs with `constant`.
  InlineVector<int64_t, 8> int64s(size_t i) const;
};

// ---------------------------------------------------------------------------------------------------------------------

// Values in, values out. For operators whose output sizes depend on data beyond small integers, and for sequences,
// optionals, maps and strings.
class ComputeContext {
 public:
  const ir::NodeInfo& node;
  std::span<const AnyValue> inputs;  // kNone: left out
  std::span<AnyValue> outputs;

  const ir::Attributes& attributes() const { return node.attributes; }
  int version() const;
  bool has_input(size_t i) const { return i < inputs.size() && !inputs[i].is_none(); }
  const Tensor& tensor(size_t i) const { return inputs[i].tensor(); }
  // Makes output i a tensor to be written.
  Result<Tensor*> allocate(size_t i, ElementType type, Dims dims);
};

// ---------------------------------------------------------------------------------------------------------------------

// A node in, simpler nodes out: builds a graph that computes the node's outputs from its inputs. Values that the node's
// bodies capture follow the node's inputs as further inputs of the graph, in the order of captures().
class LowerContext {
 public:
  LowerContext(const ir::NodeInfo& node, std::span<const Type* const> inputs, std::span<const Tensor* const> values,
               ir::Graph& graph, std::span<const std::unique_ptr<ir::Region>> bodies = {});

  const ir::NodeInfo& node() const { return node_; }
  const ir::Attributes& attributes() const { return node_.attributes; }
  int version() const;
  size_t input_count() const { return types_.size(); }
  bool has_input(size_t i) const { return i < types_.size() && types_[i] != nullptr; }
  const Type& type(size_t i) const { return *types_[i]; }
  const Tensor* value(size_t i) const { return i < values_.size() ? values_[i] : nullptr; }
  // The graph's value for input i; a constant if its contents are known.
  ir::Value* input(size_t i) const { return inputs_[i]; }
  void set_output(size_t i, ir::Value* value);

  // Appends nodes to `region()`. Operators are named without version; the newest one is taken.
  ir::Value* call(std::string_view op, std::span<ir::Value* const> inputs, std::vector<ir::Attribute> attributes = {},
                  std::string_view domain = "");
  ir::Value* call(std::string_view op, std::initializer_list<ir::Value*> inputs,
                  std::vector<ir::Attribute> attributes = {}, std::string_view domain = "");
  // A node with any number of outputs.
  ir::Node* node(std::string_view op, std::span<ir::Value* const> inputs, size_t outputs,
                 std::vector<ir::Attribute> attributes = {}, std::string_view domain = "");
  ir::Value* constant(Tensor tensor);
  ir::Value* constant_int64s(std::initializer_list<int64_t> values);
  ir::Value* constant_int64(int64_t scalar);
  ir::Value* number(double scalar, ElementType type);  // a constant

  // Begins a body of `node`, to which nodes are appended until end_region(). region_input() makes its inputs.
  void begin_region(ir::Node* node, std::string attribute);
  ir::Value* region_input(std::string name, Type type);
  // `type`: the known type of the value, for a loop without iterations.
  void region_output(ir::Value* value, Type type = {});
  void end_region();
  ir::Region* region() const { return region_; }

  // The body of that name of the node to be lowered; null if there is none.
  const ir::Region* body(std::string_view attribute) const;
  // Appends the body's nodes to `region()`, with `arguments` for the body's inputs. Returns the values of its outputs.
  std::vector<ir::Value*> inline_body(std::string_view attribute, std::span<ir::Value* const> arguments);
  // Values of the original graph that the bodies capture.
  std::span<ir::Value* const> captures() const { return captures_; }

 private:
  const ir::NodeInfo& node_;
  std::vector<const Type*> types_;
  std::vector<const Tensor*> values_;
  ir::Graph& graph_;
  ir::Region* region_;
  std::vector<ir::Value*> inputs_;
  std::span<const std::unique_ptr<ir::Region>> bodies_;
  std::vector<ir::Value*> captures_;
  std::unordered_map<const ir::Value*, ir::Value*> captured_;  // captured value to its value in the new graph
  int counter_ = 0;
};

}  // namespace treadle
