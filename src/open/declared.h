#pragma once
// The types that a model declares, beside opened sizes.

#include <unordered_map>

#include "base/arena.h"
#include "open/opening.h"
#include "open/reading.h"

namespace treadle::open {

// Takes the sizes out of what the model declares, inputs of the model aside: inference would believe the old ones.
class DeclaredSizes {
 public:
  DeclaredSizes(wire::ModelProto& model, Arena& arena);

  // Errors: kInvalidArgument if the model declares a size by the name of an opened one, and it is another size.
  Status check_symbols(const Reading& old, const Openings& openings) const;
  // Puts them back, with what inference says of values that are computed from opened inputs. Functions, whose values
  // differ from call to call, declare no sizes any more.
  void restore(const Reading& now, const Reading& old, const Openings& openings);

 private:
  wire::ModelProto& model_;
  Arena& arena_;
  std::unordered_map<const wire::ValueInfoProto*, std::optional<wire::TypeProto>> declared_;
};

}  // namespace treadle::open
