#pragma once
// Nodes get the defaults of all attributes of their operator, whichever code makes them.

#include "op/op_def.h"

namespace treadle {

// ir::Graph::new_node, which gives these to a new node, is defined in node.cc.
ir::Attributes default_attributes(const OpVersion& version);

// Turns `node` into an `op`, with its defaults and the attributes `given`. Name, inputs, outputs and regions stay.
void become(ir::Node& node, const OpDef& op, const OpVersion& version, const ir::Attributes& given = {});
inline void become(ir::Node& node, const OpDef& op, const ir::Attributes& given = {}) {
  become(node, op, op.newest(), given);
}

// Whether all nodes have all defaults of their operators.
bool has_all_defaults(const ir::Region& region);

}  // namespace treadle
