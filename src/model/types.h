#pragma once
// TypeProto <-> Type.

#include "base/arena.h"
#include "type/type.h"
#include "wire/onnx.h"

namespace treadle::model {

// Error for 0 and for what is no element type.
Result<ElementType> read_element_type(int64_t number);

// Negative sizes, which exporters write for "unknown", are unknown. A message without content is an unknown type.
// Errors: kInvalidModel; kNotImplemented for opaque types.
Result<Type> read_type(const wire::TypeProto& proto);

// `arena` gets what the message refers to, with the texts of symbolic sizes.
wire::TypeProto write_type(const Type& type, Arena& arena);

}  // namespace treadle::model
