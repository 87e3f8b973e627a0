#pragma once
// Operators that a program registers: the interface that the engine calls, and the record that it makes for them. A
// node of such an operator runs by itself in every tier. No rewrite looks into it, and no group or native loop contains
// it.

#include <memory>
#include <string>
#include <vector>

#include "op/op_def.h"

namespace treadle {

// The code of one node. Several runs may call it at once.
class CustomKernel {
 public:
  virtual ~CustomKernel() = default;
  // Sets all outputs of the node.
  virtual Status compute(ComputeContext& context) const = 0;
};

class CustomOperator {
 public:
  virtual ~CustomOperator() = default;
  // Called once for each node of a model, when its attributes are complete.
  virtual Result<std::shared_ptr<const CustomKernel>> make_kernel(const ir::NodeInfo& node) const = 0;
  // Sets what is known of the outputs beyond the element types of the record.
  virtual Status infer(const CustomKernel& kernel, InferContext& context) const = 0;
};

struct CustomFormal {
  std::string name;
  std::string type;  // "tensor(float)", "seq(tensor(int64))", ...; empty: any type
  Arity arity = Arity::kSingle;
};

struct CustomRecord {
  std::string domain, name;
  int since = 1;
  std::vector<CustomFormal> inputs, outputs;
  // Attributes that nodes may have; true if they must.
  std::vector<std::pair<std::string, bool>> attributes;
  bool any_attributes = true;  // whether other names are allowed as well
  // The same inputs always give the same outputs, and a run has no other effect. Such a node is computed once if its
  // inputs never change, and left out if its outputs are unused.
  bool pure = false;
  std::shared_ptr<const CustomOperator> implementation;
};

// Errors: kInvalidArgument for invalid names, types and arities.
Result<std::unique_ptr<OpDef>> make_custom_op(CustomRecord record);

// Makes find_op() return `op` for its domain and name, in place of one that was added before. Loaded models keep their
// operators. Errors: kInvalidArgument if treadle itself has the operator.
Status add_op(std::unique_ptr<OpDef> op);

}  // namespace treadle
