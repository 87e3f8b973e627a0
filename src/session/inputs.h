#pragma once
// The inputs of a session, and what a caller gives for them in a run.

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
  bool has_default = false;  // an initialiser stands in when the caller gives no value
};

// A value of the caller's, who keeps it until the call returns.
struct Feed {
  std::string_view name;
  const AnyValue* value;  // not null. kNone: an empty optional, an input left to its default, or no value
};

namespace session {

// Parallel to the graph's inputs; none is null.
using Values = std::span<const AnyValue* const>;

// What a run is given, by position.
struct Given {
  std::vector<const AnyValue*> values;  // parallel to the graph's inputs
  std::vector<AnyValue> own;            // those that are not the caller's
  // Parallel to `values`: None was given for an input that the model does not declare as optional. Empty: for none.
  std::vector<bool> absent;

  void clear() {
    values.clear();
    own.clear();
    absent.clear();
  }
  void reserve(size_t feeds, size_t inputs) {
    values.assign(inputs, nullptr);
    own.reserve(feeds + inputs);  // `values` may point there
  }
  const AnyValue* keep(AnyValue value) { return &own.emplace_back(std::move(value)); }
};

class Inputs {
 public:
  Inputs() = default;
  explicit Inputs(const ir::Graph& graph);

  size_t size() const { return by_position_.size(); }
  const IoInfo& operator[](size_t i) const { return *by_position_[i]; }  // of the graph's
  const AnyValue& default_of(size_t i) const { return defaults_[i]; }    // kNone: it has none
  std::span<const IoInfo> required() const { return required_; }         // those that a caller gives
  std::span<const IoInfo> overridable() const { return overridable_; }   // initialisers that one may give
  std::vector<Type> types() const;                                       // parallel to the graph's

  // The values of a run: those of the caller, looked up by name, and defaults; one element of any rank where the model
  // has a scalar is that scalar. None where no value may be left out is `absent`, and its place stays null. Errors:
  // kInvalidArgument names the input, what was expected and what was found.
  Status fill(std::span<const Feed> feeds, Given& given) const;
  // For callers that work with values alone. Errors: kInvalidArgument names the first absent input.
  Status require_all(const Given& given) const;
  // Whether `value` may be given for input i. Errors: likewise.
  Status check(size_t i, const AnyValue& value) const;

 private:
  std::vector<IoInfo> required_, overridable_;
  std::vector<const IoInfo*> by_position_;  // parallel to the graph's inputs
  std::vector<AnyValue> defaults_;          // likewise
};

// What of `type` holds for any value of a list: the sizes of its elements are left out.
Type without_element_shapes(const Type& type);

}  // namespace session

}  // namespace treadle
