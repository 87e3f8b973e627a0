#pragma once
// The order of a graph's nodes. The specification wants each node behind those whose results it uses; exporters and
// tools that edit graphs do not always keep to that, and other engines sort.

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "wire/onnx.h"

namespace treadle::model {

// Calls `fn` with every name from outside of the node that the node uses: its inputs, and what its bodies, which may be
// nested, take from around them. A name may come more than once.
void for_each_used_name(const wire::NodeProto& node, const std::function<void(std::string_view)>& fn);

// Positions of the nodes, each behind those that make what it uses, else in the order of the file. Of nodes that depend
// on each other in a circle one comes first all the same.
std::vector<uint32_t> sorted_order(const wire::List<wire::NodeProto>& nodes);

}  // namespace treadle::model
