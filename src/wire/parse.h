#pragma once
// Bytes -> messages. Nothing is copied but numbers: every view in the result points into `bytes`, which must outlive
// it. Unknown fields are kept as bytes; fields given twice are merged as protobuf says (lists append, messages merge,
// the last scalar wins). Errors: kInvalidFile, or kLimit, with byte and field as their place. Weights are not looked
// at.

#include <string_view>

#include "wire/onnx.h"

namespace treadle::wire {

Result<ModelProto> parse_model(std::string_view bytes, Limits limits = {});
Result<TensorProto> parse_tensor(std::string_view bytes, Limits limits = {});
Result<SparseTensorProto> parse_sparse_tensor(std::string_view bytes, Limits limits = {});
Result<SequenceProto> parse_sequence(std::string_view bytes, Limits limits = {});
Result<OptionalProto> parse_optional(std::string_view bytes, Limits limits = {});
Result<MapProto> parse_map(std::string_view bytes, Limits limits = {});
Result<TypeProto> parse_type(std::string_view bytes, Limits limits = {});

// Reads fields into a message that has some already, as protobuf merges: a ModelProto or a message that a graph is made
// of. On failure the message is half read.
template <class Message>
Status merge(std::string_view bytes, Message& message, Limits limits = {});

}  // namespace treadle::wire
