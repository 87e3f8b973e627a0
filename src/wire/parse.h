#pragma once
// Bytes -> messages. Only numbers are copied: texts and data of the result point into `bytes`, which must outlive it.
// Unknown fields are kept as bytes. Fields that appear twice are merged by protobuf's rules (lists append, messages
// merge, the last scalar wins). Weights are not looked at. Errors: kInvalidFile or kLimit, with byte and field as their
// place.

#include <string_view>

#include "wire/onnx.h"

namespace treadle::wire {

// A message with the arena that holds its lists and messages. It does not convert to a message, which would be invalid
// without the arena.
template <class Message>
class Parsed {
 public:
  Message& operator*() { return message_; }
  const Message& operator*() const { return message_; }
  Message* operator->() { return &message_; }
  const Message* operator->() const { return &message_; }
  Arena& arena() { return arena_; }

 private:
  Arena arena_;
  Message message_;
};

Result<Parsed<ModelProto>> parse_model(std::string_view bytes, Limits limits = {});
Result<Parsed<TensorProto>> parse_tensor(std::string_view bytes, Limits limits = {});
Result<Parsed<SparseTensorProto>> parse_sparse_tensor(std::string_view bytes, Limits limits = {});
Result<Parsed<SequenceProto>> parse_sequence(std::string_view bytes, Limits limits = {});
Result<Parsed<OptionalProto>> parse_optional(std::string_view bytes, Limits limits = {});
Result<Parsed<MapProto>> parse_map(std::string_view bytes, Limits limits = {});
Result<Parsed<TypeProto>> parse_type(std::string_view bytes, Limits limits = {});

// Merges fields into a message that may have some already, by protobuf's rules. Message: ModelProto, or a message of
// which a graph consists. New elements are allocated in `arena`. After an error the message is partly read.
template <class Message>
Status merge(std::string_view bytes, Message& message, Arena& arena, Limits limits = {});

}  // namespace treadle::wire
