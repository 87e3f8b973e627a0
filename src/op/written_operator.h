#pragma once
// What a node of opaque_op() was written as.

#include <string>

namespace treadle {

// Such a node's `parsed`, where an import made it.
struct WrittenOperator {
  std::string name;    // with the domain: "my.domain.Foo"
  std::string reason;  // why nothing is known of it
};

}  // namespace treadle
