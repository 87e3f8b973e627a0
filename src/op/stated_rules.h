#pragma once
// What the documents of operators demand of a node by itself: least and greatest values of attributes, the words of an
// enumeration, attributes of which one and only one is given, arguments that come together. Rules that need shapes or
// types of inputs stand in the operators' inference.

#include "ir/graph.h"

namespace treadle {

// Both: kInvalidModel with what is expected and what was found.
// To be called when the attributes of a node are complete.
Status check_attribute_rules(const ir::NodeInfo& node);
// To be called when its inputs and outputs are there as well.
Status check_argument_rules(const ir::Node& node);

}  // namespace treadle
