#pragma once
// Whether a Loop's body can make its condition false.

#include <string_view>
#include <unordered_map>

#include "wire/onnx.h"

namespace treadle::checking {

// Whether a tensor is the single bool `wanted`.
bool is_bool(const wire::TensorProto& tensor, bool wanted);

// The nodes and constants of a graph or function, by the names of their outputs.
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

// Finds the model's functions, and remembers their Makers.
class Functions {
 public:
  virtual const wire::FunctionProto* function_of(const wire::NodeProto& node) const = 0;
  virtual const Makers& makers_of(const wire::FunctionProto& function) = 0;

 protected:
  ~Functions() = default;
};

// Whether a condition that is true when an iteration begins is certainly true at its end. Followed through Identity,
// And, Or, the branches of Ifs, and functions that the body calls. `body` must have at least two inputs and one output.
bool condition_stays_true(const wire::NodeProto& loop, const wire::GraphProto& body, const Makers& makers,
                          Functions& functions);

}  // namespace treadle::checking
