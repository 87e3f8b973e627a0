#include "base/json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "base/utf8.h"

namespace treadle {

std::string json_text(std::string_view text) {
  std::string result = "\"";
  while (!text.empty()) {
    size_t length = 1;
    while (length < 4 && length < text.size() && !is_utf8(text.substr(0, length))) ++length;
    const auto byte = static_cast<unsigned char>(text[0]);
    if (!is_utf8(text.substr(0, length))) {
      result += "\\ufffd";
      length = 1;
    } else if (byte == '"' || byte == '\\') {
      result += '\\';
      result += text[0];
    } else if (byte < 0x20) {
      result += fmt::format("\\u{:04x}", byte);
    } else {
      result += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return result + '"';
}

std::string json_number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "null";
}

std::string json_array(const std::vector<std::string>& items) {
  return fmt::format("[{}]", fmt::join(items, ","));
}

JsonObject& JsonObject::raw(std::string_view key, std::string_view json) {
  if (!members_.empty()) members_ += ',';
  members_ += json_text(key);
  members_ += ':';
  members_ += json;
  return *this;
}

}  // namespace treadle
