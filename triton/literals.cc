#include "literals.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include "failure.h"

namespace backend {

namespace {

std::string_view trimmed(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

// The parts between commas outside of brackets.
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '[') ++depth;
    if (i < text.size() && text[i] == ']') --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    parts.push_back(trimmed(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  return parts;
}

template <class T>
bool store(std::string_view text, char* at) {
  T value{};
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return false;
  std::memcpy(at, &value, sizeof value);
  return true;
}

bool store_truth(std::string_view text, char* at) {
  *at = text == "true" || text == "1";
  return *at || text == "false" || text == "0";
}

using Store = bool (*)(std::string_view, char*);

Store store_of(int element) {
  switch (element) {
    case 1:
      return store<float>;
    case 2:
      return store<uint8_t>;
    case 3:
      return store<int8_t>;
    case 4:
      return store<uint16_t>;
    case 5:
      return store<int16_t>;
    case 6:
      return store<int32_t>;
    case 7:
      return store<int64_t>;
    case 9:
      return store_truth;
    case 11:
      return store<double>;
    case 12:
      return store<uint32_t>;
    case 13:
      return store<uint64_t>;
    default:
      return nullptr;
  }
}

}  // namespace

std::vector<std::pair<std::string, std::string>> assignments(const std::string& parameter, const std::string& text) {
  std::vector<std::pair<std::string, std::string>> found;
  for (const std::string_view part : parts_of(text)) {
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == part.size()) {
      throw InvalidArgument(
          fmt::format("parameter '{}' is to be NAME=VALUE, with commas between several, and is '{}'", parameter, text));
    }
    found.emplace_back(trimmed(part.substr(0, equals)), trimmed(part.substr(equals + 1)));
  }
  return found;
}

treadle::Value literal_value(const treadle::Type& type, const std::string& name, const std::string& text) {
  const Store put = store_of(type.element());
  if (!put) {
    throw InvalidArgument(
        fmt::format("input '{}' ({}) cannot be bound: texts of numbers are for floats of 32 and 64 "
                    "bits, integers and truth values",
                    name, type.text()));
  }
  const bool is_list = text.size() >= 2 && text.front() == '[' && text.back() == ']';
  const std::vector<std::string_view> numbers =
      parts_of(is_list ? std::string_view(text).substr(1, text.size() - 2) : std::string_view(text));
  std::vector<int64_t> dims(static_cast<size_t>(std::max<int64_t>(type.rank(), is_list ? 1 : 0)), 1);
  if (!dims.empty()) dims.back() = static_cast<int64_t>(numbers.size());
  treadle::Value value = treadle::Value::tensor(type.element(), dims);
  const size_t width = treadle::element_width(type.element());
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (put(numbers[i], value.mutable_data<char>() + i * width)) continue;
    throw InvalidArgument(
        fmt::format("'{}' for input '{}' ({}) is no number of that type", numbers[i], name, type.text()));
  }
  return value;
}

}  // namespace backend
