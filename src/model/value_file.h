#pragma once
// Values in files of their own, as the backend tests have them (input_0.pb): TensorProto, SequenceProto, OptionalProto
// or MapProto. Which of these a file holds is not in the file; the value's type says it.

#include <memory>
#include <string>
#include <string_view>

#include "type/any_value.h"
#include "wire/mapped_file.h"

namespace treadle::model {

// `type`: the declared type; of an unknown one a tensor is expected. Tensors may be views into `file`, which they keep.
Result<AnyValue> read_value(const std::shared_ptr<wire::MappedFile>& file, const Type& type);

// Error: kInvalidArgument for a value that is absent, kLimit above 2 GiB.
Result<std::string> write_value(const AnyValue& value, std::string_view name = {});

}  // namespace treadle::model
