#pragma once
// Messages -> bytes, fields in order of their numbers, absent and default ones left out.

#include <string>

#include "wire/onnx.h"

namespace treadle::wire {

// Error: kLimit above 2 GiB - 1, what a protobuf reader accepts at most.
Result<std::string> serialize(const ModelProto& message);
Result<std::string> serialize(const TensorProto& message);
Result<std::string> serialize(const SequenceProto& message);
Result<std::string> serialize(const OptionalProto& message);
Result<std::string> serialize(const MapProto& message);
Result<std::string> serialize(const TypeProto& message);

}  // namespace treadle::wire
