#pragma once
// AttributeProto -> ir::Attribute, without graphs.

#include "ir/attribute.h"
#include "model/tensor_reader.h"

namespace treadle::model {

// The kind that the message states; without one (files of IR version 1), the kind of the field that is present.
ir::AttributeKind attribute_kind(const wire::AttributeProto& proto);

// Attributes with such names are notes of other tools.
inline bool is_private(std::string_view name) {
  return name.starts_with("__");
}

// The attribute under `name`, which differs from the message's own if it was bound to a parameter of a function.
// Errors: kInvalidModel for contents that are missing or broken.
Result<ir::Attribute> read_attribute(std::string_view name, const wire::AttributeProto& proto, TensorReader& tensors);

}  // namespace treadle::model
