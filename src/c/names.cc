#include "c/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>

namespace treadle::c {

namespace {

constexpr std::string_view kWords[] = {
    "alignas",   "alignof", "asm",      "auto",     "bool",    "break",     "case",   "catch",    "char",
    "class",     "const",   "continue", "default",  "delete",  "do",        "double", "else",     "enum",
    "explicit",  "export",  "extern",   "false",    "float",   "for",       "friend", "goto",     "if",
    "inline",    "int",     "linux",    "long",     "mutable", "namespace", "new",    "operator", "private",
    "protected", "public",  "register", "restrict", "return",  "short",     "signed", "sizeof",   "static",
    "struct",    "switch",  "template", "this",     "throw",   "true",      "try",    "typedef",  "typename",
    "typeof",    "union",   "unix",     "unsigned", "using",   "virtual",   "void",   "volatile", "while",
    "NULL",      "memcpy",  "memset",   "memmove",  "main"};

}  // namespace

std::string identifier(std::string_view name) {
  std::string made;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool fits = byte < 128 && (std::isalnum(byte) != 0 || c == '_');
    if (fits) {
      made += c;
    } else if (made.empty() || made.back() != '_') {
      made += '_';
    }
  }
  while (made.size() > 1 && made.back() == '_') made.pop_back();
  const size_t first = made.find_first_not_of('_');
  made.erase(0, first == std::string::npos ? made.size() : first);  // identifiers that begin with '_' are reserved
  if (made.empty()) made = "x";
  if (std::isdigit(static_cast<unsigned char>(made[0])) != 0) made.insert(0, "v");
  constexpr size_t kLongest = 48;
  if (made.size() > kLongest) made.resize(kLongest);
  if (std::ranges::find(kWords, made) != std::end(kWords)) made += '_';
  return made;
}

bool is_local_name(std::string_view name) {
  const size_t letters = std::min(name.find_first_of("0123456789"), name.size());
  const bool ends_in_digits = name.find_first_not_of("0123456789", letters) == std::string_view::npos;
  constexpr std::string_view kNames[] = {
      "added",   "alpha",   "at",       "best",         "beta",    "both",  "candidate", "constants", "count",
      "divisor", "error",   "first",    "forget",       "found",   "from",  "held",      "high",      "input",
      "inputs",  "inverse", "kept",     "label",        "last",    "loss",  "low",       "mean",      "memory",
      "output",  "outputs", "own_mean", "own_variance", "pfc",     "pic",   "plane",     "poc",       "range",
      "reset",   "row",     "scale",    "scaled",       "scratch", "shift", "shifted",   "shown",     "square",
      "start",   "state",   "sum",      "sums",         "to",      "total", "value",     "variance",  "weight",
      "weights", "width",   "wins",     "zero",         "x_i"};
  return (letters <= 2 && ends_in_digits) || std::ranges::find(kNames, name) != std::end(kNames);
}

std::string Names::add(std::string_view name) {
  std::string wanted = identifier(name);
  if (is_local_name(wanted)) wanted.insert(0, "v_");
  std::string made = wanted;
  for (int i = 2; !taken_.insert(made).second; ++i) made = fmt::format("{}_{}", wanted, i);
  return made;
}

std::string in_comment(std::string_view text) {
  std::string made;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 32 || byte == 127 || byte == '\\') {
      made += ' ';
    } else if (!made.empty() && ((made.back() == '*' && c == '/') || (made.back() == '/' && c == '*'))) {
      made += ' ';
      made += c;
    } else if (c == '?' && !made.empty() && made.back() == '?') {
      made += ' ';  // no trigraph
      made += c;
    } else {
      made += c;
    }
  }
  return made;
}

}  // namespace treadle::c
