// Types of values: as protobuf, and whether values can pass between onnxruntime and treadle.
#pragma once

#include <vector>

#include "host.h"
#include "message.h"

namespace treadle::provider {

// A TypeProto; empty for a type that onnxruntime does not know.
Message type_message(const OrtTypeInfo* type);
// The same, for tensors without sizes.
Message unsized_message(const OrtTypeInfo* type);

// Sizes of a tensor; -1: unknown.
std::vector<int64_t> dims_of(const OrtTypeInfo* type);

// The number of elements of a tensor of the type; 0 if unknown, or not a tensor.
int64_t elements_of(const OrtTypeInfo* type);

// The same with 1 in place of each unknown size.
double least_elements_of(const OrtTypeInfo* type);

// Only tensors can cross: this library has no way to make a sequence, map or optional that a node returns.
bool can_cross(const OrtTypeInfo* type);

}  // namespace treadle::provider
