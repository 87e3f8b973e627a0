#pragma once
// The inputs of a session, and the values that a caller gives for them in a run.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "type/any_value.h"

namespace treadle {

struct IoInfo {
  std::string name;
  Type type;
  bool has_default = false;  // an initialiser is used if the caller gives no value
};

// A value of the caller, which has to stay valid until the call returns.
struct Feed {
  std::string_view name;
  const AnyValue* value;  // not null. kNone: an empty optional, an input that takes its default, or no value
};

namespace session {

// Parallel to the graph's inputs; none is null.
using Values = std::span<const AnyValue* const>;

// The values of a run, by position.
struct Given {
  std::vector<const AnyValue*> values;  // parallel to the graph's inputs
  std::vector<AnyValue> own;            // values that are not the caller's
  // Parallel to `values`: the caller gave None for an input that is not optional. Empty: there are no such inputs.
  std::vector<bool> absent;

  void clear() {
    values.clear();
    own.clear();
    absent.clear();
  }
  void reserve(size_t feeds, size_t inputs) {
    values.assign(inputs, nullptr);
    own.reserve(feeds + inputs);  // `values` may point into `own`
  }
  const AnyValue* keep(AnyValue value) { return &own.emplace_back(std::move(value)); }
};

class Inputs {
 public:
  Inputs() = default;
  explicit Inputs(const ir::Graph& graph);

  size_t size() const { return by_position_.size(); }
  const IoInfo& operator[](size_t i) const { return *by_position_[i]; }  // of the graph's inputs
  const AnyValue& default_of(size_t i) const { return defaults_[i]; }    // kNone: no default
  std::span<const IoInfo> required() const { return required_; }         // inputs without a default
  std::span<const IoInfo> overridable() const { return overridable_; }   // initialisers that a caller may override
  std::vector<Type> types() const;                                       // parallel to the graph's inputs

  // Collects the values of a run: the caller's, found by name, and defaults. A tensor with one element of any rank
  // becomes a scalar if the model declares a scalar. If a caller gives None for an input that is not optional, `absent`
  // marks the input, and its value stays null. Errors: kInvalidArgument with the input's name, what was expected and
  // what was found.
  Status fill(std::span<const Feed> feeds, Given& given) const;
  // For callers that require all values. Errors: kInvalidArgument with the name of the first absent input.
  Status require_all(const Given& given) const;
  // Whether `value` fits input i. Errors: kInvalidArgument, as for fill().
  Status check(size_t i, const AnyValue& value) const;

 private:
  std::vector<IoInfo> required_, overridable_;
  std::vector<const IoInfo*> by_position_;  // parallel to the graph's inputs
  std::vector<AnyValue> defaults_;          // parallel to the graph's inputs
};

// `type` without the sizes of a list's elements, which may differ between values.
Type without_element_shapes(const Type& type);

}  // namespace session

}  // namespace treadle
