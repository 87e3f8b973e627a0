#pragma once
// What becomes of a Loop's condition in its body.

#include <string_view>
#include <unordered_map>

#include "wire/onnx.h"

namespace treadle::checking {

// Whether a tensor is the single bool `wanted`.
bool is_bool(const wire::TensorProto& tensor, bool wanted);

// The nodes and constants of a graph or function, by the names of what they make.
class Makers {
 public:
  explicit Makers(const wire::GraphProto& graph);
  explicit Makers(const wire::FunctionProto& function) { add(function.nodes); }

  const wire::NodeProto* maker(std::string_view name) const {
    const auto it = makers_.find(name);
    return it == makers_.end() ? nullptr : it->second;
  }
  std::string_view behind_identities(std::string_view name) const;
  const wire::TensorProto* constant(std::string_view name) const;

 private:
  void add(const wire::List<wire::NodeProto>& nodes);

  std::unordered_map<std::string_view, const wire::NodeProto*> makers_;
  std::unordered_map<std::string_view, const wire::TensorProto*> initializers_;
};

// Finds the model's functions, and remembers who makes what in them.
class Functions {
 public:
  virtual const wire::FunctionProto* function_of(const wire::NodeProto& node) const = 0;
  virtual const Makers& makers_of(const wire::FunctionProto& function) = 0;

 protected:
  ~Functions() = default;
};

// Whether a condition that is true when a trip begins is sure to be true behind it: followed through Identity, And and
// Or, the branches of Ifs, and the functions that the body calls. `body` has its two first inputs and an output.
bool condition_stays_true(const wire::NodeProto& loop, const wire::GraphProto& body, const Makers& makers,
                          Functions& functions);

}  // namespace treadle::checking
