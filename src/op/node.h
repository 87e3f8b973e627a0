#pragma once
// How nodes get their operator: with the defaults of all its attributes, whoever makes them.

#include "op/op_def.h"

namespace treadle {

// `ir::Graph::new_node` is defined beside this: a node that it makes has these from the beginning.
ir::Attributes default_attributes(const OpVersion& version);

// From now on `node` is an `op`, with its defaults and, of other attributes, those of `given`. Name, inputs, outputs
// and regions stay.
void become(ir::Node& node, const OpDef& op, const OpVersion& version, const ir::Attributes& given = {});
inline void become(ir::Node& node, const OpDef& op, const ir::Attributes& given = {}) {
  become(node, op, op.newest(), given);
}

// Whether no node lacks a default of its operator.
bool has_all_defaults(const ir::Region& region);

}  // namespace treadle
