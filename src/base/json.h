#pragma once
// Writing JSON for reports.

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

namespace treadle {

// A JSON string. Bytes that are not UTF-8 become U+FFFD.
std::string json_text(std::string_view text);
// The shortest digits that give the same number; null for NaN and infinities.
std::string json_number(double value);
std::string json_array(const std::vector<std::string>& items);  // of items that are JSON already

// Keeps members in the order in which they are added.
class JsonObject {
 public:
  JsonObject& raw(std::string_view key, std::string_view json);
  JsonObject& text(std::string_view key, std::string_view value) { return raw(key, json_text(value)); }
  JsonObject& number(std::string_view key, double value) { return raw(key, json_number(value)); }
  JsonObject& integer(std::string_view key, std::integral auto value) { return raw(key, std::to_string(value)); }
  JsonObject& boolean(std::string_view key, bool value) { return raw(key, value ? "true" : "false"); }
  std::string str() const { return "{" + members_ + "}"; }

 private:
  std::string members_;
};

}  // namespace treadle
