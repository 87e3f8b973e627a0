#pragma once
// Bytes -> messages. Nothing is copied but numbers: every view in the result points into `bytes`, which must outlive
// it. Unknown fields are kept as bytes; fields given twice are merged as protobuf says (lists append, messages merge,
// the last scalar wins). Errors: kInvalidFile, or kLimit, with byte and field as their place. Weights are not looked
// at.

#include <string_view>

#include "wire/onnx.h"

namespace treadle::wire {

// A message with the arena that its lists and messages lie in, and without which they mean nothing: it does not turn
// into a message of its own.
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

// Reads fields into a message that has some already, as protobuf merges: a ModelProto or a message that a graph is made
// of. `arena` gets what it grows by. On failure the message is half read.
template <class Message>
Status merge(std::string_view bytes, Message& message, Arena& arena, Limits limits = {});

}  // namespace treadle::wire
