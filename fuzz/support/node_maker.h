#pragma once
// New parts of a model, mostly as the operators' records want them: a mutator that only changes what is there seldom
// finds its way to an operator that is not.

#include <unordered_map>
#include <vector>

#include "fuzz/support/texts.h"
#include "op/op_def.h"
#include "wire/onnx.h"

namespace treadle::fuzz {

// What a new node may refer to.
struct Scope {
  struct Visible {
    std::string_view name;
    ElementType element;  // kUndefined: not known
  };
  std::vector<Visible> values;
  std::vector<const wire::GraphProto*> graphs;  // to take for bodies
};

class NodeMaker {
 public:
  NodeMaker(Random& random, Storage& storage, const wire::ModelProto& model);

  // A node, and before it the constants that it uses.
  std::vector<wire::NodeProto> make(const Scope& scope);
  // Attributes of `node` drawn anew, for another operator.
  void set_attributes(wire::NodeProto& node, const OpVersion& version, const Scope& scope);
  const OpVersion* version_of(const OpDef& op) const;

  wire::TensorProto tensor(ElementType element);
  wire::TensorProto small_ints();
  wire::TypeProto type();
  std::string_view new_name();
  std::string_view random_bytes(size_t size);

 private:
  std::string_view argument(const Formal& formal, const OpVersion& version, const Scope& scope,
                            std::unordered_map<std::string_view, ElementType>& bound,
                            std::vector<wire::NodeProto>& constants);
  wire::AttributeProto attribute(const AttributeDef& def, const Scope& scope);
  wire::GraphProto body(const Scope& scope);

  Random& random_;
  Storage& storage_;
  std::unordered_map<std::string_view, int64_t> opsets_;  // domain to version
};

}  // namespace treadle::fuzz
