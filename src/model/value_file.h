#pragma once
// Files of single values, as in the backend tests (input_0.pb): TensorProto, SequenceProto, OptionalProto or MapProto.
// The file does not say which; the value's type does.

#include <memory>
#include <string>
#include <string_view>

#include "type/any_value.h"
#include "wire/mapped_file.h"

namespace treadle::model {

// `type`: the declared type; if unknown, a tensor is expected. Tensors may be views into `file`, which they keep alive.
Result<AnyValue> read_value(const std::shared_ptr<wire::MappedFile>& file, const Type& type);

// Errors: kInvalidArgument for an absent value, kLimit above 2 GiB.
Result<std::string> write_value(const AnyValue& value, std::string_view name = {});

}  // namespace treadle::model
