#pragma once
// Words, numbers, strings and annotations of ONNX text. After the first error every function returns false or nothing,
// and take_status() returns the error with its position and line.

#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/text.h"

namespace treadle::ir {

// An annotation is a comment that begins with `#@` and stands in front of an element: `#@ doc_string: "adds",
// metadata_props: ["k": "v"]`. Annotations hold parts of messages for which the onnx package's syntax has no words.
struct TextNotes {
  enum Key : uint32_t {
    kExact = 1 << 0,          // of a whole text: empty names and domains are absent in the messages
    kExactOpsets = 1 << 1,    // of a whole text: empty domains of operator sets are absent in the messages
    kRaw = 1 << 2,            // of a whole text, or of a tensor: numbers are raw_data
    kTyped = 1 << 3,          // of a tensor: numbers are in typed fields
    kUntyped = 1 << 4,        // of an attribute or tensor: its message lacks the type
    kAbsent = 1 << 5,         // of an attribute: its message lacks the value
    kDocString = 1 << 6,      // this key and those below have a value
    kMetadata = 1 << 7,       //
    kDenotation = 1 << 8,     // of a value's type
    kDimensions = 1 << 9,     // of a value: the denotations of its dimensions
    kQuantization = 1 << 10,  // of a graph: an annotation of one tensor; may be repeated
    kType = 1 << 11,          // of a value: its TypeProto as bytes
    kFields = 1 << 12,        // further fields of the message as bytes
  };
  uint32_t keys = 0;
  size_t position = 0;
  std::string_view doc_string, denotation, type, fields;
  wire::List<wire::StringStringEntry> metadata;
  wire::List<std::string_view> dimensions;
  wire::List<wire::TensorAnnotation> quantization;

  bool has(Key key) const { return keys & key; }
  wire::List<wire::StringStringEntry> take_metadata() { return metadata; }
};
std::string_view attribute_kind_name(int32_t kind);  // "floats"; empty for other numbers
std::string_view note_name(uint32_t key);

struct TextNumber {
  std::string_view text;
  bool real = false;  // with a point or exponent, or not finite
};

// Whether the text has the form [A-Za-z_][A-Za-z0-9_]*, which needs no quotes.
bool is_text_word(std::string_view text);
// Whether the word is inf, infinity or nan, in any case.
bool is_real_word(std::string_view word);

class TextLexer {
 public:
  TextLexer(std::string_view text, TextStorage& storage, wire::Limits limits)
      : text_(text), storage_(storage), limits_(limits) {}

  // Errors. `what`: the expected element, such as "a name".
  bool ok() const { return !failed_; }
  bool fail_at(size_t position, std::string message, Code code = Code::kInvalidFile);
  bool expected(std::string_view what);
  Status take_status() const;
  // Counts memory of the structure that is built.
  bool charge(size_t bytes);

  size_t position() const { return position_; }
  void rewind(size_t position) { position_ = position; }
  char peek();  // the first character of the next token; 0 at the end
  bool at_end() { return peek() == '\0' && position_ == text_.size(); }
  // Whether `c` follows directly, without space
  bool touches(char c) const { return position_ < text_.size() && text_[position_] == c; }

  bool match(char c);  // takes the character if it is next
  bool expect(char c);
  bool arrow();                   // =>
  bool match_ellipsis();          // ...
  std::string_view word();        // empty if no word is next
  std::string_view loose_word();  // a word that may contain `-` and begin with a digit
  std::string_view peek_word();
  char peek_after(std::string_view word) const;  // the character behind `word`, which is next; 0 at the end
  bool next_is_string();
  bool string(std::string_view& value);
  bool next_is_real_word();
  bool number(TextNumber& value);
  bool integer(const TextNumber& number, size_t at, int64_t& value);
  bool integer(const TextNumber& number, size_t at, uint64_t& value);
  bool real(const TextNumber& number, size_t at, float& value);
  bool real(const TextNumber& number, size_t at, double& value);
  // A number of the type of `value`.
  template <class T>
  bool number(T& value) {
    TextNumber read;
    peek();
    const size_t at = position_;
    if (!number(read)) return false;
    if constexpr (std::is_floating_point_v<T>) {
      return real(read, at, value);
    } else {
      return integer(read, at, value);
    }
  }

  // The annotations in front of the next token. Errors: an annotation that is not in `allowed`.
  TextNotes take_notes(uint32_t allowed, std::string_view element);
  // Whether there are annotations in front of the token that was looked at last.
  bool has_notes() const { return notes_.keys != 0; }

  TextStorage& storage() { return storage_; }
  const wire::Limits& limits() const { return limits_; }

 private:
  bool begin_token();
  void skip_space();
  void read_notes(size_t line_end);
  bool read_note(std::string_view word);
  bool quoted(std::string_view& value);
  bool hex_string(std::string_view& value);
  bool pairs(wire::List<wire::StringStringEntry>& entries);
  std::string found() const;

  std::string_view text_;
  TextStorage& storage_;
  wire::Limits limits_;
  size_t position_ = 0;
  size_t notes_read_ = 0;  // annotations before this position have been read
  bool in_notes_ = false;
  TextNotes notes_;
  size_t charged_ = 0, next_look_ = 0;
  bool failed_ = false;
  Code code_ = Code::kOk;
  size_t error_position_ = 0;
  std::string message_;
};

}  // namespace treadle::ir
