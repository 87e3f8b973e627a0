#pragma once
// Writing and reading JSON.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "treadle/treadle.hpp"

namespace cli {

std::string json_quote(std::string_view text);

// Keeps members in the order in which they were added.
class JsonObject {
 public:
  JsonObject& text(std::string_view key, std::string_view value) { return raw(key, json_quote(value)); }
  JsonObject& number(std::string_view key, double value);
  JsonObject& integer(std::string_view key, long long value) { return raw(key, std::to_string(value)); }
  JsonObject& boolean(std::string_view key, bool value) { return raw(key, value ? "true" : "false"); }
  JsonObject& raw(std::string_view key, std::string_view json);
  std::string str() const { return "{" + members_ + "}"; }

 private:
  std::string members_;
};

std::string json_array(const std::vector<std::string>& items);  // of items that are JSON already

// An error of the tool, and its place.
struct Failure {
  std::string code;  // "usage", "input", or the library's name of the error
  std::string message;
  std::string path = {};  // file, path through the bodies, operator; may be empty
};
Failure failure_of(const treadle::Error& error);
std::string to_json(const Failure& failure);

// The parts of a meta.json that the tool reads: numbers and lists of texts at the top level.
struct JsonTop {
  std::map<std::string, double> numbers;
  std::map<std::string, std::vector<std::string>> lists;
};
std::optional<JsonTop> read_json_top(std::string_view text);

}  // namespace cli
