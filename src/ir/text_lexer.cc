#include "ir/text_lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>

#include "base/stop.h"

namespace treadle::ir {

namespace {

enum CharClass : uint8_t { kSpace = 1, kLetter = 2, kDigit = 4 };

constexpr std::array<uint8_t, 256> kClasses = [] {
  std::array<uint8_t, 256> classes{};
  for (const char c : {' ', '\t', '\n', '\v', '\f', '\r'}) classes[static_cast<uint8_t>(c)] = kSpace;
  for (int c = 'a'; c <= 'z'; ++c) classes[c] = classes[c - 'a' + 'A'] = kLetter;
  for (int c = '0'; c <= '9'; ++c) classes[c] = kDigit;
  classes['_'] = kLetter;
  return classes;
}();

bool is(char c, int classes) {
  return kClasses[static_cast<uint8_t>(c)] & classes;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

constexpr std::pair<std::string_view, TextNotes::Key> kNoteKeys[] = {
    {"exact", TextNotes::kExact},
    {"exact_opsets", TextNotes::kExactOpsets},
    {"raw", TextNotes::kRaw},
    {"typed", TextNotes::kTyped},
    {"untyped", TextNotes::kUntyped},
    {"absent", TextNotes::kAbsent},
    {"doc_string", TextNotes::kDocString},
    {"metadata_props", TextNotes::kMetadata},
    {"denotation", TextNotes::kDenotation},
    {"dim_denotations", TextNotes::kDimensions},
    {"quantization_annotation", TextNotes::kQuantization},
    {"type", TextNotes::kType},
    {"fields", TextNotes::kFields},
};

uint32_t note_key(std::string_view word) {
  for (const auto& [name, key] : kNoteKeys) {
    if (name == word) return key;
  }
  return 0;
}

}  // namespace

std::string_view note_name(uint32_t key) {
  for (const auto& [name, value] : kNoteKeys) {
    if (value == key) return name;
  }
  return "";
}

bool is_text_word(std::string_view text) {
  return !text.empty() && is(text[0], kLetter) &&
         std::ranges::all_of(text, [](char c) { return is(c, kLetter | kDigit); });
}

bool is_real_word(std::string_view word) {
  const auto equals = [&](std::string_view lower) {
    return std::ranges::equal(word, lower, [](char a, char b) { return (a | 0x20) == b; });
  };
  return equals("inf") || equals("nan") || equals("infinity");
}

// ---- Errors

bool TextLexer::fail_at(size_t position, std::string message, Code code) {
  if (failed_) return false;
  failed_ = true;
  code_ = code;
  error_position_ = position;
  message_ = std::move(message);
  return false;
}

bool TextLexer::expected(std::string_view what) {
  if (failed_) return false;
  skip_space();
  return fail_at(position_, fmt::format("expected {}, found {}", what, found()));
}

std::string TextLexer::found() const {
  if (position_ >= text_.size()) return in_notes_ ? "the end of the line" : "the end of the text";
  size_t end = position_;
  while (end < text_.size() && is(text_[end], kLetter | kDigit) && end - position_ < 40) ++end;
  if (end > position_) return fmt::format("\"{}\"", text_.substr(position_, end - position_));
  const auto byte = static_cast<uint8_t>(text_[position_]);
  if (byte < 0x20 || byte == 0x7f) return fmt::format("the byte {:#04x}", byte);
  end = position_ + 1;
  while (end < text_.size() && (static_cast<uint8_t>(text_[end]) & 0xc0) == 0x80 && end - position_ < 4) ++end;
  return fmt::format("'{}'", text_.substr(position_, end - position_));
}

Status TextLexer::take_status() const {
  if (!failed_) return {};
  return Status(code_, message_ + text_excerpt(text_, error_position_)).in(text_position(text_, error_position_));
}

bool TextLexer::charge(size_t bytes) {
  charged_ += bytes;
  if (charged_ > next_look_) {
    constexpr size_t kBetweenLooks = size_t{256} << 10;
    next_look_ = charged_ + kBetweenLooks;
    if (stop_requested()) return fail_at(position_, stopped().message(), Code::kCancelled);
  }
  if (charged_ <= limits_.structure_bytes) return ok();
  return fail_at(position_, fmt::format("the structure of the model takes more than {} bytes", limits_.structure_bytes),
                 Code::kLimit);
}

// ---- Space and annotations

void TextLexer::skip_space() {
  while (position_ < text_.size()) {
    if (is(text_[position_], kSpace)) {
      ++position_;
    } else if (text_[position_] == '#' && !in_notes_) {
      const size_t end = std::min(text_.find('\n', position_), text_.size());
      if (position_ >= notes_read_ && text_.substr(position_, 2) == "#@") read_notes(end);
      position_ = end;
    } else {
      return;
    }
  }
}

// A comment is an annotation only if it begins with the name of one.
void TextLexer::read_notes(size_t line_end) {
  if (failed_) return;
  TextLexer line(text_.substr(0, line_end), storage_, limits_);
  line.in_notes_ = true;
  line.position_ = position_ + 2;
  line.notes_ = notes_;
  notes_read_ = line_end;
  if (note_key(line.peek_word()) != 0) {
    if (line.notes_.keys == 0) line.notes_.position = position_;
    do {
      line.peek();
      const size_t at = line.position_;
      const std::string_view word = line.word();
      if (note_key(word) == 0) line.fail_at(at, fmt::format("there is no annotation \"{}\"", word));
    } while (line.ok() && line.read_note(text_.substr(0, line.position_)) && line.match(','));
    if (line.ok() && !line.at_end()) line.expected("a comma or the end of the line");
  }
  notes_ = line.notes_;
  if (!line.ok()) fail_at(line.error_position_, std::move(line.message_), line.code_);
}

// `read` ends with the name of the annotation.
bool TextLexer::read_note(std::string_view read) {
  size_t begin = read.size();
  while (begin > 0 && is(read[begin - 1], kLetter | kDigit)) --begin;
  const uint32_t key = note_key(read.substr(begin));
  if (notes_.keys & key & ~TextNotes::kQuantization) {
    return fail_at(begin, fmt::format("the annotation \"{}\" is given twice", note_name(key)));
  }
  notes_.keys |= key;
  if (key < TextNotes::kDocString) return true;
  if (!expect(':')) return false;
  switch (key) {
    case TextNotes::kDocString:
      return string(notes_.doc_string);
    case TextNotes::kDenotation:
      return string(notes_.denotation);
    case TextNotes::kType:
      return string(notes_.type);
    case TextNotes::kFields:
      return string(notes_.fields);
    case TextNotes::kMetadata:
      return pairs(notes_.metadata);
    case TextNotes::kQuantization: {
      wire::TensorAnnotation& annotation = notes_.quantization.add(storage_.arena());
      return string(annotation.tensor_name) && pairs(annotation.quant_parameter_tensor_names);
    }
    default:
      break;
  }
  if (!expect('[')) return false;
  if (match(']')) return true;
  do {
    if (!string(notes_.dimensions.add(storage_.arena()))) return false;
  } while (match(','));
  return expect(']');
}

bool TextLexer::pairs(wire::List<wire::StringStringEntry>& entries) {
  if (!expect('[')) return false;
  if (match(']')) return true;
  do {
    wire::StringStringEntry& entry = entries.add(storage_.arena());
    if (!string(entry.key) || !expect(':') || !string(entry.value)) return false;
  } while (match(','));
  return expect(']');
}

TextNotes TextLexer::take_notes(uint32_t allowed, std::string_view element) {
  skip_space();
  if (notes_.keys == 0) return {};
  TextNotes notes = std::exchange(notes_, {});
  if (const uint32_t wrong = notes.keys & ~allowed; wrong != 0) {
    fail_at(notes.position,
            fmt::format("the annotation \"{}\" does not belong to {}", note_name(wrong & (~wrong + 1)), element));
  }
  return notes;
}

bool TextLexer::begin_token() {
  skip_space();
  if (!in_notes_ && notes_.keys != 0 && notes_.position < position_) {
    return fail_at(notes_.position, "nothing that this annotation could be about follows it");
  }
  return !failed_;
}

// ---- Tokens

char TextLexer::peek() {
  skip_space();
  return failed_ || position_ >= text_.size() ? '\0' : text_[position_];
}

bool TextLexer::match(char c) {
  skip_space();
  if (failed_ || !touches(c) || !begin_token()) return false;
  ++position_;
  return true;
}

bool TextLexer::expect(char c) {
  return match(c) || expected(fmt::format("'{}'", c));
}

bool TextLexer::arrow() {
  if (!begin_token()) return false;
  if (text_.substr(position_, 2) != "=>") return expected("'=>'");
  position_ += 2;
  return true;
}

bool TextLexer::match_ellipsis() {
  if (peek() != '.' || text_.substr(position_, 3) != "..." || !begin_token()) return false;
  position_ += 3;
  return true;
}

std::string_view TextLexer::word() {
  if (!begin_token()) return {};
  const size_t begin = position_;
  if (begin == text_.size() || !is(text_[begin], kLetter)) return {};
  while (position_ < text_.size() && is(text_[position_], kLetter | kDigit)) ++position_;
  return text_.substr(begin, position_ - begin);
}

std::string_view TextLexer::loose_word() {
  if (!begin_token()) return {};
  const size_t begin = position_;
  while (position_ < text_.size() && (is(text_[position_], kLetter | kDigit) || (position_ > begin && touches('-')))) {
    ++position_;
  }
  return text_.substr(begin, position_ - begin);
}

std::string_view TextLexer::peek_word() {
  skip_space();
  const size_t begin = position_;
  if (failed_ || begin == text_.size() || !is(text_[begin], kLetter)) return {};
  size_t end = begin + 1;
  while (end < text_.size() && is(text_[end], kLetter | kDigit)) ++end;
  return text_.substr(begin, end - begin);
}

char TextLexer::peek_after(std::string_view word) const {
  size_t at = position_ + word.size();
  while (at < text_.size() && (is(text_[at], kSpace) || text_[at] == '#')) {
    at = text_[at] == '#' ? std::min(text_.find('\n', at), text_.size()) : at + 1;
  }
  return at < text_.size() ? text_[at] : '\0';
}

bool TextLexer::next_is_string() {
  return peek() == '"' || (touches('h') && text_.substr(position_, 4) == "hex\"");
}

bool TextLexer::string(std::string_view& value) {
  if (!begin_token()) return false;
  if (touches('"')) return quoted(value);
  return next_is_string() ? hex_string(value) : expected("a string");
}

bool TextLexer::quoted(std::string_view& value) {
  const size_t begin = position_ + 1;
  size_t end = text_.find_first_of("\"\\", begin);
  if (end != std::string_view::npos && text_[end] == '"') {
    value = text_.substr(begin, end - begin);
    position_ = end + 1;
    return true;
  }
  std::string unescaped;
  size_t from = begin;
  while (end < text_.size() && text_[end] != '"') {
    unescaped.append(text_, from, end - from);
    if (end + 1 == text_.size()) break;
    const char c = text_[end + 1];
    const bool line_end = in_notes_ && (c == 'n' || c == 'r');
    unescaped += line_end ? (c == 'n' ? '\n' : '\r') : c;
    from = end + 2;
    end = text_.find_first_of("\"\\", from);
  }
  if (end >= text_.size() || text_[end] != '"') return fail_at(position_, "this string does not end");
  unescaped.append(text_, from, end - from);
  position_ = end + 1;
  value = storage_.keep(unescaped);
  return true;
}

bool TextLexer::hex_string(std::string_view& value) {
  constexpr size_t kPrefix = 4;
  const size_t begin = position_ + kPrefix;
  const size_t end = text_.find('"', begin);
  if (end == std::string_view::npos) return fail_at(position_, "this string does not end");
  std::string bytes;
  bytes.reserve((end - begin) / 2);
  int high = -1;
  for (size_t i = begin; i < end; ++i) {
    if (is(text_[i], kSpace)) continue;
    const int digit = hex_digit(text_[i]);
    if (digit < 0) return fail_at(i, "expected a hexadecimal digit");
    if (high < 0) {
      high = digit;
    } else {
      bytes += static_cast<char>(high << 4 | digit);
      high = -1;
    }
  }
  if (high >= 0) return fail_at(end, "expected an even number of hexadecimal digits");
  position_ = end + 1;
  value = storage_.keep(bytes);
  return true;
}

// ---- Numbers

bool TextLexer::next_is_real_word() {
  const std::string_view next = peek_word();
  return (next.size() == 3 || next.size() == 8) && is_real_word(next);
}

bool TextLexer::number(TextNumber& value) {
  if (!begin_token()) return false;
  const size_t begin = position_;
  size_t at = begin;
  const auto digits = [&] {
    const size_t first = at;
    while (at < text_.size() && is(text_[at], kDigit)) ++at;
    return at > first;
  };
  const auto is_at = [&](char c) { return at < text_.size() && text_[at] == c; };
  value.real = false;
  if (is_at('-')) ++at;
  if (at < text_.size() && is(text_[at], kLetter)) {
    position_ = at;
    const bool is_word = next_is_real_word();
    at += is_word ? peek_word().size() : 0;
    position_ = begin;
    if (!is_word) return expected("a number");
    value.real = true;
    if (is_at('(')) at = std::min(text_.find(')', at), text_.size() - 1) + 1;
  } else if (text_.substr(at, 2) == "0x") {
    at += 2;
    while (at < text_.size() && hex_digit(text_[at]) >= 0) ++at;
  } else if (!digits()) {
    return expected("a number");
  } else {
    if (is_at('.')) {
      value.real = true;
      ++at;
      digits();
    }
    if (is_at('e') || is_at('E')) {
      value.real = true;
      ++at;
      if (is_at('+') || is_at('-')) ++at;
      if (!digits()) return fail_at(at, "expected the digits of an exponent");
    }
  }
  value.text = text_.substr(begin, at - begin);
  position_ = at;
  return true;
}

namespace {

template <class T>
bool read_integer(std::string_view text, T& value) {
  const bool hex = text.starts_with("0x");
  const char* begin = text.data() + (hex ? 2 : 0);
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(begin, end, value, hex ? 16 : 10);
  return result.ec == std::errc() && result.ptr == end;
}

// Reads the bits of an unusual NaN, such as nan(0x7fc00001).
template <class T>
bool read_nan_bits(std::string_view text, T& value) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  const size_t open = text.find('(');
  if (text[0] == '-' || open == std::string_view::npos || text.back() != ')') return false;
  Bits bits = 0;
  if (!read_integer(text.substr(open + 1, text.size() - open - 2), bits)) return false;
  value = std::bit_cast<T>(bits);
  return std::isnan(value);
}

template <class T>
bool read_real(std::string_view text, T& value) {
  if (text.back() == ')') return read_nan_bits(text, value);
  const char* end = text.data() + text.size();
  value = 0;
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): up to end
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ptr != end) return false;
  if (result.ec == std::errc()) return true;
  // Out of range: a number too close to zero is rounded, one too large is refused.
  long double wide = 0;
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): up to end
  if (std::from_chars(text.data(), end, wide).ec != std::errc() || std::abs(wide) > 1) return false;
  value = text[0] == '-' ? -T{0} : T{0};
  return true;
}

}  // namespace

bool TextLexer::integer(const TextNumber& number, size_t at, int64_t& value) {
  if (number.real) return fail_at(at, fmt::format("expected an integer, found {}", number.text));
  if (read_integer(number.text, value)) return true;
  return fail_at(at, fmt::format("expected an integer of 64 bits, found {}", number.text));
}

bool TextLexer::integer(const TextNumber& number, size_t at, uint64_t& value) {
  if (number.real) return fail_at(at, fmt::format("expected an integer, found {}", number.text));
  if (number.text[0] != '-' && read_integer(number.text, value)) return true;
  return fail_at(at, fmt::format("expected an integer of 64 bits that is not negative, found {}", number.text));
}

bool TextLexer::real(const TextNumber& number, size_t at, float& value) {
  return read_real(number.text, value) || fail_at(at, fmt::format("expected a float, found {}", number.text));
}

bool TextLexer::real(const TextNumber& number, size_t at, double& value) {
  return read_real(number.text, value) || fail_at(at, fmt::format("expected a double, found {}", number.text));
}

}  // namespace treadle::ir
