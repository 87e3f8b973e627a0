#pragma once
// Operators that a program brings along: what the engine calls for them, and the record that stands for one. A node of
// such an operator runs by itself, in every tier: no rewrite looks into it and no group or native loop takes it in.

#include <memory>
#include <string>
#include <vector>

#include "op/op_def.h"

namespace treadle {

// What one node runs. Several runs may call it at once.
class CustomKernel {
 public:
  virtual ~CustomKernel() = default;
  // Sets all outputs that the node has.
  virtual Status compute(ComputeContext& context) const = 0;
};

class CustomOperator {
 public:
  virtual ~CustomOperator() = default;
  // Called once for each node of a model, when its attributes are complete.
  virtual Result<std::shared_ptr<const CustomKernel>> make_kernel(const ir::NodeInfo& node) const = 0;
  // Sets what is known of the outputs beyond the element types that the record says.
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
  // Attributes that nodes may have, with whether they must.
  std::vector<std::pair<std::string, bool>> attributes;
  bool any_attributes = true;  // of other names, too
  // The same inputs give the same outputs and nothing else comes of a run: such nodes are computed once where their
  // inputs never change, and left out where nobody uses what they give.
  bool pure = false;
  std::shared_ptr<const CustomOperator> implementation;
};

// Errors: kInvalidArgument for names, types and arities that no operator may have.
Result<std::unique_ptr<OpDef>> make_custom_op(CustomRecord record);

// From now on find_op() gives `op` for its domain and name, in place of one that was added before; models that are
// loaded already keep theirs. Errors: kInvalidArgument where treadle itself has the operator.
Status add_op(std::unique_ptr<OpDef> op);

}  // namespace treadle
