#pragma once
// AttributeProto -> ir::Attribute, apart from graphs.

#include "ir/attribute.h"
#include "model/tensor_reader.h"

namespace treadle::model {

// The kind that the message says, or, where it says none (files of IR version 1), that of the field it has.
ir::AttributeKind attribute_kind(const wire::AttributeProto& proto);

// Attributes whose names begin so are notes of other tools.
inline bool is_private(std::string_view name) {
  return name.starts_with("__");
}

// The attribute under `name`, which is not the message's own where it was bound to a parameter of a function.
// Errors: kInvalidModel for contents that are missing or broken.
Result<ir::Attribute> read_attribute(std::string_view name, const wire::AttributeProto& proto, TensorReader& tensors);

}  // namespace treadle::model
