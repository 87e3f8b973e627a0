#include "ir/text.h"

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
