#include "json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>
#include <cmath>
#include <cstdlib>

namespace cli {

std::string json_quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
        } else {
          out += c;
        }
    }
  }
  return out + "\"";
}

JsonObject& JsonObject::raw(std::string_view key, std::string_view json) {
  if (!members_.empty()) members_ += ",";
  members_ += json_quote(key) + ":";
  members_ += json;
  return *this;
}

JsonObject& JsonObject::number(std::string_view key, double value) {
  return raw(key, std::isfinite(value) ? fmt::format("{}", value) : "null");
}

Failure failure_of(const treadle::Error& error) {
  return {treadle_code_name(error.code()), error.message(), error.place()};
}

std::string to_json(const Failure& failure) {
  JsonObject object;
  object.text("code", failure.code).text("message", failure.message);
  if (!failure.path.empty()) object.text("path", failure.path);
  return object.str();
}

std::string json_array(const std::vector<std::string>& items) {
  return fmt::format("[{}]", fmt::join(items, ","));
}

namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  bool top(JsonTop& top) {
    if (!take('{')) return false;
    if (take('}')) return true;
    do {
      std::string key;
      if (!string(key) || !take(':') || !member(key, top)) return false;
    } while (take(','));
    return take('}');
  }

 private:
  bool member(const std::string& key, JsonTop& top) {
    const size_t begin = position();
    const char c = peek();
    if (c == '-' || std::isdigit(static_cast<unsigned char>(c))) {
      if (!skip(0)) return false;
      top.numbers[key] = std::strtod(std::string(text_.substr(begin, at_ - begin)).c_str(), nullptr);
      return true;
    }
    if (c == '[') {
      std::vector<std::string> list;
      if (strings(list)) {
        top.lists[key] = std::move(list);
        return true;
      }
      at_ = begin;
    }
    return skip(0);
  }

  bool strings(std::vector<std::string>& list) {
    take('[');
    if (take(']')) return true;
    do {
      std::string item;
      if (peek() != '"' || !string(item)) return false;
      list.push_back(std::move(item));
    } while (take(','));
    return take(']');
  }

  // Skips any value.
  bool skip(int depth) {
    if (depth > 64) return false;
    std::string ignored;
    if (peek() == '"') return string(ignored);
    for (const auto& [open, close] : {std::pair('[', ']'), std::pair('{', '}')}) {
      if (!take(open)) continue;
      if (take(close)) return true;
      do {
        if (open == '{' && (!string(ignored) || !take(':'))) return false;
        if (!skip(depth + 1)) return false;
      } while (take(','));
      return take(close);
    }
    const size_t begin = position();
    while (at_ < text_.size() && is_of_word(text_[at_])) ++at_;
    return at_ > begin;
  }

  // Whether the character belongs to a number, or to true, false or null.
  static bool is_of_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '+' || c == '-' || c == '.';
  }

  bool string(std::string& out) {
    if (!take('"')) return false;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\') ++at_;
      if (at_ < text_.size()) out += text_[at_++];
    }
    if (at_ == text_.size() || text_[at_] != '"') return false;
    ++at_;
    return true;
  }

  size_t position() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    return at_;
  }
  char peek() {
    position();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::optional<JsonTop> read_json_top(std::string_view text) {
  JsonTop top;
  if (!Parser(text).top(top)) return std::nullopt;
  return top;
}

}  // namespace cli
