#pragma once
// Rules of the operators' documents that concern a node by itself: least and greatest values of attributes, words of
// enumerations, attributes of which exactly one is given, arguments that come together. Rules about shapes or types of
// inputs are in the operators' inference.

#include "ir/graph.h"

namespace treadle {

// Errors of both: kInvalidModel with what was expected and what was found. To be called when a node's attributes are
// complete.
Status check_attribute_rules(const ir::NodeInfo& node);
// To be called when its inputs and outputs are complete as well.
Status check_argument_rules(const ir::Node& node);

}  // namespace treadle
