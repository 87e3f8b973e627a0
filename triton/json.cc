#include "json.h"

#include <fmt/format.h>

#include <charconv>

#include "failure.h"

namespace backend {

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}

  Json whole() {
    Json value = read(0);
    skip_space();
    if (at_ != text_.size()) fail("the end");
    return value;
  }

 private:
  static constexpr int kDeepest = 100;

  [[noreturn]] void fail(const char* expected) const {
    throw InvalidArgument(fmt::format("the configuration has no {} at byte {}", expected, at_));
  }
  void skip_space() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }
  bool takes(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  Json read(int depth) {
    if (depth > kDeepest) fail("end of its nesting");
    Json value;
    if (takes('{')) {
      value.kind_ = Json::Kind::kObject;
      if (takes('}')) return value;
      do {
        if (!takes('"')) fail("name");
        std::string name = quoted();
        if (!takes(':')) fail("colon");
        value.members_.emplace_back(std::move(name), read(depth + 1));
      } while (takes(','));
      if (!takes('}')) fail("closing brace");
    } else if (takes('[')) {
      value.kind_ = Json::Kind::kArray;
      if (takes(']')) return value;
      do {
        value.items_.push_back(read(depth + 1));
      } while (takes(','));
      if (!takes(']')) fail("closing bracket");
    } else if (takes('"')) {
      value.kind_ = Json::Kind::kScalar;
      value.text_ = quoted();
    } else {
      const size_t end = std::min(text_.find_first_of(" \t\r\n,]}", at_), text_.size());
      if (end == at_) fail("value");
      value.text_ = text_.substr(at_, end - at_);
      value.kind_ = value.text_ == "null" ? Json::Kind::kNull : Json::Kind::kScalar;
      if (value.text_ == "null") value.text_.clear();
      at_ = end;
    }
    return value;
  }

  // Behind the opening quote.
  std::string quoted() {
    std::string text;
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] != '\\') {
        text += text_[at_];
        continue;
      }
      if (++at_ == text_.size()) break;
      static constexpr std::string_view kNames = "bfnrt", kMeanings = "\b\f\n\r\t";
      const size_t known = kNames.find(text_[at_]);
      if (text_[at_] == 'u') {
        append_utf8(text);
      } else {
        text += known == std::string_view::npos ? text_[at_] : kMeanings[known];
      }
    }
    if (at_ == text_.size()) fail("closing quote");
    ++at_;
    return text;
  }

  unsigned hexadecimal() {
    unsigned unit = 0;
    const char* const begin = text_.data() + std::min(at_ + 1, text_.size());
    const char* const end = text_.data() + std::min(at_ + 5, text_.size());
    if (end - begin != 4 || std::from_chars(begin, end, unit, 16).ptr != end) fail("character of four digits");
    at_ += 4;
    return unit;
  }

  // Parses "u0041", or two such halves with a backslash between them; `at_` ends on the last digit.
  void append_utf8(std::string& text) {
    unsigned code = hexadecimal();
    if (code >= 0xd800 && code < 0xdc00 && text_.substr(at_ + 1, 2) == "\\u") {
      at_ += 2;
      code = 0x10000 + ((code - 0xd800) << 10) + (hexadecimal() - 0xdc00);
    }
    const auto put = [&](unsigned byte) { text += static_cast<char>(byte); };
    if (code < 0x80) return put(code);
    if (code < 0x800) return put(0xc0 | code >> 6), put(0x80 | (code & 63));
    if (code < 0x10000) return put(0xe0 | code >> 12), put(0x80 | (code >> 6 & 63)), put(0x80 | (code & 63));
    put(0xf0 | code >> 18), put(0x80 | (code >> 12 & 63)), put(0x80 | (code >> 6 & 63)), put(0x80 | (code & 63));
  }

  std::string_view text_;
  size_t at_ = 0;
};

Json Json::parse(std::string_view text) {
  return JsonReader(text).whole();
}

const Json& Json::operator[](std::string_view name) const {
  static const Json kNothing;
  for (const auto& [known, value] : members_) {
    if (known == name) return value;
  }
  return kNothing;
}

int64_t Json::integer(int64_t otherwise) const {
  int64_t value = 0;
  const char* const end = text_.data() + text_.size();
  const auto read = std::from_chars(text_.data(), end, value);
  return read.ec == std::errc() && read.ptr == end && !text_.empty() ? value : otherwise;
}

Json json_of(TRITONSERVER_Message* message) {
  const char* base = nullptr;
  size_t size = 0;
  check(TRITONSERVER_MessageSerializeToJson(message, &base, &size));
  return Json::parse({base, size});
}

}  // namespace backend
