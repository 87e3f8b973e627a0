#include "check/diagnostic.h"

#include <functional>

#include "base/utf8.h"

namespace treadle {

namespace {

constexpr ProblemInfo kProblems[] = {
#define X(enumerator, name, severity, meaning) {name, Severity::severity, meaning},
    TREADLE_PROBLEMS(X)
#undef X
};

}  // namespace

const ProblemInfo& info(Problem problem) {
  return kProblems[static_cast<size_t>(problem)];
}

std::string Diagnostic::sentence() const {
  std::string text = message;
  const char* separator = ": ";
  if (!expected.empty()) {
    text += separator;
    text += "expected " + expected;
    separator = ", ";
  }
  if (!found.empty()) {
    text += separator;
    text += "found " + found;
  }
  return text;
}

size_t offset_in(std::string_view file, std::string_view part) {
  const std::less_equal<> not_after;
  const bool inside = part.data() && not_after(file.data(), part.data()) &&
                      not_after(part.data() + part.size(), file.data() + file.size());
  return inside ? static_cast<size_t>(part.data() - file.data()) : kNoOffset;
}

std::string quoted(std::string_view text) {
  constexpr size_t kMaxBytes = 160;
  std::string result = "\"";
  while (!text.empty()) {
    if (result.size() > kMaxBytes) return result + "...\"";
    const size_t length = utf8_length(text);
    const auto byte = static_cast<unsigned char>(text[0]);
    if (length == 0 || byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
      text.remove_prefix(1);
      continue;
    }
    if (byte == '"' || byte == '\\') result += '\\';
    result += text.substr(0, length);
    text.remove_prefix(length);
  }
  return result + '"';
}

}  // namespace treadle
