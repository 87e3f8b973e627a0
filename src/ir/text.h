#pragma once
// ONNX text <-> messages. The syntax is that of the onnx package. Parts of messages for which it has no words use a
// form that the onnx package skips, or that its syntax allows (docs/text.md has the grammar). Printed text parses to
// the same message, including unknown fields and empty texts. The onnx package can read the text of a message that
// needs no extension.

#include <deque>
#include <string>
#include <string_view>

#include "wire/onnx.h"

namespace treadle::ir {

// Owns memory that a message parsed from text points to, besides the text itself: unescaped strings, packed numbers.
class TextStorage {
 public:
  std::string_view keep(std::string_view text) { return arena_.copy(text); }
  Arena& arena() { return arena_; }  // for the messages

 private:
  Arena arena_;
};

// The text and `storage` must outlive the message. Errors: kInvalidFile with `line:column` as place and the marked line
// in the message; kLimit if nesting or the memory for the structure exceeds `limits`. Message: ModelProto, GraphProto,
// FunctionProto or NodeProto.
template <class Message>
Result<Message> parse_text(std::string_view text, TextStorage& storage, wire::Limits limits = {});

struct TextOptions {
  int64_t max_elements = -1;  // larger tensors are printed with `...` for their values; negative: no limit
};

template <class Message>
std::string print_text(const Message& message, const TextOptions& options = {});

// The position of an error as "line:column", with the column in characters. And the line with a mark under `length`
// bytes, to be put behind a message; a long line is cut around the position.
std::string text_position(std::string_view text, size_t position);
std::string text_excerpt(std::string_view text, size_t position, size_t length = 1);

// Whether bytes are a text, not a serialised message: messages have control characters among their first bytes.
bool looks_like_text(std::string_view bytes);

}  // namespace treadle::ir
