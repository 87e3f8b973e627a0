#include "ops/text/unicode.h"

#include <utf8proc.h>

#include <cstdlib>
#include <memory>

#include "base/stop.h"
#include "ops/costs.h"

namespace treadle::text {

namespace {

// The first character of `text` and its length in bytes; -1 and 1 for a byte that is not UTF-8.
struct Character {
  int32_t code = -1;
  size_t length = 1;
};

Character first_character(std::string_view text) {
  utf8proc_int32_t code = -1;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const utf8proc_ssize_t length = utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(text.size()), &code);
  if (length <= 0) return {};
  return {code, static_cast<size_t>(length)};
}

// If the work is to stop, the rest of a text is left out.
template <class Change>
String change(std::string_view text, Change&& change_code) {
  String out;
  out.reserve(text.size());
  StopPoll stop;
  while (!text.empty() && !stop.after(costs::kCaseCharacterNs)) {
    const Character c = first_character(text);
    if (c.code < 0) {
      out += text[0];
    } else {
      utf8proc_uint8_t bytes[4];
      const utf8proc_ssize_t length = utf8proc_encode_char(change_code(c.code), bytes);
      out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(length));
    }
    text.remove_prefix(c.length);
  }
  return out;
}

}  // namespace

String to_lower(std::string_view text) {
  return change(text, utf8proc_tolower);
}

String to_upper(std::string_view text) {
  return change(text, utf8proc_toupper);
}

String fold_case(std::string_view text) {
  utf8proc_uint8_t* folded = nullptr;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_CASEFOLD);
  const utf8proc_ssize_t length = utf8proc_map(bytes, static_cast<utf8proc_ssize_t>(text.size()), &folded, options);
  if (length < 0) return String(text);
  const std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> owned(folded, std::free);
  return String(reinterpret_cast<const char*>(folded), static_cast<size_t>(length));
}

size_t leading_space(std::string_view text) {
  if (text.empty()) return 0;
  const Character c = first_character(text);
  if (c.code < 0x80) {
    // Tab to carriage return, the separators of files, groups, records and units, and space.
    return (c.code >= 0x09 && c.code <= 0x0d) || (c.code >= 0x1c && c.code <= 0x20) ? 1 : 0;
  }
  const utf8proc_category_t category = utf8proc_category(c.code);
  const bool space = c.code == 0x85 || category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
                     category == UTF8PROC_CATEGORY_ZP;
  return space ? c.length : 0;
}

size_t leading_character(std::string_view text) {
  return first_character(text).length;
}

}  // namespace treadle::text
