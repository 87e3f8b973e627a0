#pragma once
// The inference driver: walks regions in order, asks each operator for the types of its outputs, carries known contents
// along, and brings loop states to a fixed point.

#include <string>
#include <unordered_map>

#include "ir/graph.h"
#include "op/op_def.h"

namespace treadle {

// What is known of a value beyond its type.
struct Fact {
  Tensor constant;           // defined(): the contents
  bool has_symbols = false;  // contents of a small integer tensor (rank 0 or 1) as Dims
  Shape symbols;
};

struct InferenceOptions {
  // Evaluate nodes whose inputs are all known.
  bool fold = true;
  // Believe what sequences and optionals say about the shapes of their elements. Planning does not: nothing checks it
  // before the run.
  bool trust_containers = true;
  // Keep a declared type where inference knows less. Planning does not: exporters declare wrong shapes.
  bool keep_declared = true;
};

class Inference {
 public:
  explicit Inference(InferenceOptions options = {}) : options_(options) {}

  // Types (written to Value::type) and facts of everything in `region`, whose inputs have their types already.
  // Errors carry the node's path, operator and version.
  Status infer(ir::Region& region);
  Status infer(ir::Node& node);

  // Contents of a constant, or of a value that evaluates to one; null where not known.
  const Tensor* constant(const ir::Value* value) const;
  const Shape* symbols(const ir::Value* value) const;
  void set_constant(const ir::Value* value, Tensor contents);
  void set_symbols(const ir::Value* value, Shape contents);
  void forget(const ir::Value* value) { facts_.erase(value); }

 private:
  class Bodies;
  Status infer_if_known(ir::Node& node, const Tensor& condition);
  Status infer_with_record(ir::Node& node);
  void fold(ir::Node& node);

  InferenceOptions options_;
  std::unordered_map<const ir::Value*, Fact> facts_;
  int trip_symbols_ = 0;
};

// "path (Operator-version)", as errors name a node.
std::string node_place(const ir::Node& node);

}  // namespace treadle
