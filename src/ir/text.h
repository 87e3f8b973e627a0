#pragma once
// ONNX text <-> messages: the syntax of the onnx package, and what it lacks in a form that the package skips or that
// its syntax leaves free (docs/text.md has the grammar). What is printed here reads back as the same message, down to
// unknown fields and to which empty texts are there; what needs no extension, the onnx package reads as well.

#include <deque>
#include <string>
#include <string_view>

#include "wire/onnx.h"

namespace treadle::ir {

// Holds what a message that was read from a text points to, besides the text itself: unescaped strings, packed numbers.
class TextStorage {
 public:
  std::string_view keep(std::string_view text) { return arena_.copy(text); }
  Arena& arena() { return arena_; }  // of the messages

 private:
  Arena arena_;
};

// Text and `storage` must outlive the message. Errors: kInvalidFile with `line:column` as place and the line itself,
// marked, in the message; kLimit where nesting or the memory for the structure exceed `limits`.
// Message: ModelProto, GraphProto, FunctionProto or NodeProto.
template <class Message>
Result<Message> parse_text(std::string_view text, TextStorage& storage, wire::Limits limits = {});

struct TextOptions {
  int64_t max_elements = -1;  // tensors with more are printed without their values, `...`; negative: no limit
};

template <class Message>
std::string print_text(const Message& message, const TextOptions& options = {});

// Where in a text an error is, as "line:column", the column in characters; and that line with a mark under `length`
// bytes of it, to be put behind a message. Of long lines the part around it.
std::string text_position(std::string_view text, size_t position);
std::string text_excerpt(std::string_view text, size_t position, size_t length = 1);

// A text or a serialised message? Messages have control characters among their first bytes, texts have none.
bool looks_like_text(std::string_view bytes);

}  // namespace treadle::ir
