#pragma once
// JSON as reports are written in.

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

namespace treadle {

// A string; what is not UTF-8 becomes U+FFFD.
std::string json_text(std::string_view text);
// A number with as many digits as it takes, null where it is none.
std::string json_number(double value);
std::string json_array(const std::vector<std::string>& items);  // of JSON texts

// Members in the order in which they are added.
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
