#include "ir/text_words.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <iterator>

#include "base/utf8.h"
#include "ir/text_lexer.h"
#include "type/element_type.h"

namespace treadle::ir {

namespace {

bool is_printable(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if ((byte < 0x20 && byte != '\n' && byte != '\r' && byte != '\t') || byte == 0x7f) return false;
    const size_t length = utf8_length(text.substr(i));
    if (length == 0) return false;
    i += length;
  }
  return true;
}

// Whether a word has a meaning of its own where a name may stand.
bool is_reserved(std::string_view word) {
  return element_type_from_name(word) != ElementType::kUndefined || word == "undefined" || word == "seq" ||
         word == "map" || word == "optional" || word == "sparse_tensor" || word == "opaque" || word == "hex" ||
         is_real_word(word);
}

template <class T>
void put_chars(std::string& out, T value) {
  char buffer[32];
  const auto result = std::to_chars(buffer, std::end(buffer), value);
  out.append(buffer, result.ptr);
}

template <class T, class Bits>
void put_real(std::string& out, T value) {
  if (!std::isnan(value)) return put_chars(out, value);
  const Bits bits = std::bit_cast<Bits>(value);
  const Bits usual = std::bit_cast<Bits>(std::numeric_limits<T>::quiet_NaN());
  constexpr Bits kSign = Bits{1} << (8 * sizeof(T) - 1);
  if ((bits & ~kSign) == usual) {
    out += bits & kSign ? "-nan" : "nan";
  } else {
    fmt::format_to(std::back_inserter(out), "nan({:#x})", bits);
  }
}

}  // namespace

void put_name(std::string& out, std::string_view name) {
  if (is_text_word(name) && !is_reserved(name)) {
    out += name;
  } else {
    put_string(out, name);
  }
}

void put_word(std::string& out, std::string_view word) {
  if (is_text_word(word)) {
    out += word;
  } else {
    put_string(out, word);
  }
}

void put_dotted(std::string& out, std::string_view name) {
  for (std::string_view left = name;;) {
    const size_t dot = left.find('.');
    if (!is_text_word(left.substr(0, dot))) return put_string(out, name);
    if (dot == std::string_view::npos) break;
    left.remove_prefix(dot + 1);
  }
  out += name;
}

void put_string(std::string& out, std::string_view text, bool in_notes) {
  if (!is_printable(text)) return put_hex(out, text);
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (in_notes && (c == '\n' || c == '\r')) {
      out += c == '\n' ? "\\n" : "\\r";
    } else {
      out += c;
    }
  }
  out += '"';
}

void put_pairs(std::string& out, const wire::List<wire::StringStringEntry>& entries, bool in_notes) {
  const char* separator = "[";
  for (const auto& entry : entries) {
    out += separator;
    put_string(out, entry.key, in_notes);
    out += ": ";
    put_string(out, entry.value, in_notes);
    separator = ", ";
  }
  out += entries.empty() ? "[]" : "]";
}

void put_hex(std::string& out, std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  out += "hex\"";
  for (const char c : bytes) {
    out += kDigits[static_cast<uint8_t>(c) >> 4];
    out += kDigits[static_cast<uint8_t>(c) & 15];
  }
  out += '"';
}

void put_number(std::string& out, float value) {
  put_real<float, uint32_t>(out, value);
}

void put_number(std::string& out, double value) {
  put_real<double, uint64_t>(out, value);
}

void put_number(std::string& out, int64_t value) {
  put_chars(out, value);
}

void put_number(std::string& out, uint64_t value) {
  put_chars(out, value);
}

}  // namespace treadle::ir
