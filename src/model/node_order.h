#pragma once
// The order of a graph's nodes. The specification requires each node to follow those whose results it uses. Exporters
// and graph editors break this rule, and other engines sort.

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "wire/onnx.h"

namespace treadle::model {

// Calls `fn` with every outer name that the node uses: its inputs, and names that its bodies, also nested ones, take
// from around them. A name may come more than once.
void for_each_used_name(const wire::NodeProto& node, const std::function<void(std::string_view)>& fn);

// The order of the nodes in which each follows the nodes whose results it uses, and otherwise in the order of the file.
// Nodes in a circle come in some order.
std::vector<uint32_t> sorted_order(const wire::List<wire::NodeProto>& nodes);

}  // namespace treadle::model
