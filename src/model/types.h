#pragma once
// TypeProto <-> Type.

#include "base/arena.h"
#include "type/type.h"
#include "wire/onnx.h"

namespace treadle::model {

// Errors: 0, or a number that is not an element type.
Result<ElementType> read_element_type(int64_t number);

// Negative sizes, which exporters write for "unknown", become unknown. An empty message is an unknown type. Errors:
// kInvalidModel; kNotImplemented for opaque types.
Result<Type> read_type(const wire::TypeProto& proto);

// `arena` gets what the message refers to, including the texts of symbolic sizes.
wire::TypeProto write_type(const Type& type, Arena& arena);

}  // namespace treadle::model
