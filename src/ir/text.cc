#include "ir/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/text_parser.h"

namespace treadle::ir {

template <class Message>
Result<Message> parse_text(std::string_view text, TextStorage& storage, wire::Limits limits) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  TextParser parser(text, storage, limits);
  Message message;
  if (!parser.parse(message)) return parser.take_status();
  return Result<Message>(std::move(message));
}

template Result<wire::ModelProto> parse_text(std::string_view, TextStorage&, wire::Limits);
template Result<wire::GraphProto> parse_text(std::string_view, TextStorage&, wire::Limits);
template Result<wire::FunctionProto> parse_text(std::string_view, TextStorage&, wire::Limits);
template Result<wire::NodeProto> parse_text(std::string_view, TextStorage&, wire::Limits);

namespace {

bool continues_character(char c) {
  return (static_cast<uint8_t>(c) & 0xc0) == 0x80;
}

// The position at most n characters before or after `position`, at a boundary between characters, and not beyond
// `limit`.
size_t excerpt_edge(std::string_view text, size_t position, size_t limit) {
  while (position != limit && continues_character(text[position])) position < limit ? ++position : --position;
  return position;
}

size_t line_begin(std::string_view text, size_t position) {
  const size_t before = position == 0 ? std::string_view::npos : text.rfind('\n', position - 1);
  return before == std::string_view::npos ? 0 : before + 1;
}

size_t line_number(std::string_view text, size_t position) {
  return 1 + static_cast<size_t>(std::ranges::count(text.substr(0, position), '\n'));
}

}  // namespace

std::string text_position(std::string_view text, size_t position) {
  const size_t begin = line_begin(text, position);
  const std::string_view before = text.substr(begin, position - begin);
  const auto column = 1 + before.size() - static_cast<size_t>(std::ranges::count_if(before, continues_character));
  return fmt::format("{}:{}", line_number(text, position), column);
}

std::string text_excerpt(std::string_view text, size_t position, size_t length) {
  constexpr size_t kContext = 80;
  const size_t line = line_begin(text, position);
  size_t begin = line, end = std::min(text.find_first_of("\r\n", position), text.size());
  if (position - begin > kContext) begin = excerpt_edge(text, position - kContext, position);
  if (end - position > kContext) end = excerpt_edge(text, position + kContext, position);
  const std::string number = fmt::format("{}", line_number(text, position));
  std::string mark(begin == line ? 0 : 3, ' ');
  for (const char c : text.substr(begin, position - begin)) {
    if (!continues_character(c)) mark += c == '\t' ? '\t' : ' ';
  }
  const std::string_view marked = text.substr(position, std::min(length, end - position));
  const auto characters = marked.size() - static_cast<size_t>(std::ranges::count_if(marked, continues_character));
  mark += '^';
  if (characters > 1) mark.append(characters - 1, '~');
  return fmt::format("\n  {} | {}{}\n  {} | {}", number, begin == line ? "" : "...", text.substr(begin, end - begin),
                     std::string(number.size(), ' '), mark);
}

bool looks_like_text(std::string_view bytes) {
  constexpr size_t kSample = 4096;
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (bytes.starts_with(kByteOrderMark)) return true;
  bool has_begin = false;
  for (const char c : bytes.substr(0, kSample)) {
    const auto byte = static_cast<uint8_t>(c);
    const bool is_space = c == ' ' || (byte >= 0x09 && byte <= 0x0d);
    if ((byte < 0x20 && !is_space) || byte == 0x7f) return false;
    if (has_begin || is_space) continue;
    has_begin = true;
    const auto lower = static_cast<char>(c | 0x20);
    if (c != '<' && c != '#' && c != '"' && c != '_' && (lower < 'a' || lower > 'z')) return false;
  }
  return has_begin;
}

}  // namespace treadle::ir
