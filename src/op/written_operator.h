#pragma once
// The operator that a node of opaque_op() has in the model.

#include <string>

namespace treadle {

// `parsed` of such a node if it was imported.
struct WrittenOperator {
  std::string name;    // with the domain: "my.domain.Foo"
  std::string reason;  // why the operator is unknown
};

}  // namespace treadle
