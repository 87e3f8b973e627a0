// Types of values: as protobuf writes them, and whether a value can be handed from onnxruntime to treadle and back.
#pragma once

#include <vector>

#include "host.h"
#include "message.h"

namespace treadle::provider {

// A TypeProto; empty for a type that onnxruntime does not know.
Message type_message(const OrtTypeInfo* type);
// The same; of a tensor without its sizes.
Message unsized_message(const OrtTypeInfo* type);

// Sizes of a tensor; -1: not known.
std::vector<int64_t> dims_of(const OrtTypeInfo* type);

// How many elements a tensor of the type has; 0 where that is not known, and for what is no tensor.
int64_t elements_of(const OrtTypeInfo* type);

// The same with 1 in place of each size that is not known.
double least_elements_of(const OrtTypeInfo* type);

// Only tensors can: this library has no way to make a sequence, a map or an optional that a node gives.
bool can_cross(const OrtTypeInfo* type);

}  // namespace treadle::provider
