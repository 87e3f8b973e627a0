// The operators whose code follows from the node.

#include "c/writer.h"
#include "op/op_def.h"

namespace treadle::c {

OperatorFn operator_writer(const ir::Node& node) {
  for (const auto& family : {cell_operators(), softmax_operators()}) {
    for (const OperatorRow& row : family) {
      if (row.name == node.op->name && row.domain == node.op->domain) return row.write;
    }
  }
  return nullptr;
}

}  // namespace treadle::c
