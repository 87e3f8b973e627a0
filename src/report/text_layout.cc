#include "report/text_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace treadle::report {

namespace {

constexpr std::string_view kBlocks[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};  // eighths

std::string_view ellipsis(bool utf8) {
  return utf8 ? "…" : "...";
}

bool continues(char c) {
  return (static_cast<unsigned char>(c) & 0xc0U) == 0x80;
}

// The bytes of the first `columns` code points.
size_t bytes_of(std::string_view text, size_t columns) {
  size_t at = 0;
  for (; at < text.size(); ++at) {
    if (!continues(text[at]) && columns-- == 0) break;
  }
  return at;
}

std::string_view last_columns(std::string_view text, size_t columns) {
  const size_t all = columns_of(text);
  return all <= columns ? text : text.substr(bytes_of(text, all - columns));
}

}  // namespace

size_t columns_of(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return !continues(c); }));
}

std::string shortened(std::string_view path, size_t most, bool utf8) {
  if (columns_of(path) <= most) return std::string(path);
  const std::string_view gap = ellipsis(utf8);
  if (most <= columns_of(gap)) return std::string(gap.substr(0, bytes_of(gap, most)));
  const size_t room = most - columns_of(gap);
  // The part up to the second '/' is the outermost node; the last parts say most.
  std::string_view head = path.substr(0, std::min(path.find('/', 1), path.size()));
  if (columns_of(head) > room / 3) head = head.substr(0, bytes_of(head, room / 3));
  std::string_view tail = last_columns(path, room - columns_of(head));
  const size_t slash = tail.find('/');
  if (slash != std::string_view::npos && slash < tail.size() / 2) tail = tail.substr(slash);
  return fmt::format("{}{}{}", head, gap, tail);
}

std::string cut_off(std::string_view text, size_t most, bool utf8) {
  if (columns_of(text) <= most) return std::string(text);
  const std::string_view gap = ellipsis(utf8);
  const size_t kept = most - std::min(most, columns_of(gap));
  return fmt::format("{}{}", text.substr(0, bytes_of(text, kept)), gap.substr(0, bytes_of(gap, most - kept)));
}

std::string bar(double share, size_t columns, bool utf8) {
  const double filled = std::clamp(share, 0.0, 1.0) * static_cast<double>(columns);
  std::string text;
  if (!utf8) {
    text.assign(static_cast<size_t>(std::lround(filled)), '#');
  } else {
    const auto eighths = static_cast<size_t>(std::lround(filled * 8));
    for (size_t i = 0; i < eighths / 8; ++i) text += "█";
    text += kBlocks[eighths % 8];
  }
  return text + std::string(columns - columns_of(text), ' ');
}

std::string duration_text(double ns) {
  static constexpr const char* kUnits[] = {"ns", "us", "ms"};
  for (const char* unit : kUnits) {
    if (ns < 999.5) return fmt::format("{:.3g} {}", ns, unit);
    ns /= 1000;
  }
  return ns < 999.5 ? fmt::format("{:.3g} s", ns) : fmt::format("{:.0f} s", ns);
}

std::string percent_text(double share) {
  return fmt::format("{:.0f} %", std::max(share, 0.0) * 100);
}

std::string wrapped(std::string_view label, std::string_view text, const TextOptions& options) {
  const size_t width = std::max(options.width, kLeastWidth);
  const size_t indent = std::min(columns_of(label), width / 2);
  std::string all(label), spaces(indent, ' ');
  size_t used = columns_of(label);
  bool is_first = true;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = shortened(text.substr(at, end - at), width - indent, options.utf8);
    if (!is_first && used + 1 + columns_of(word) > width) {
      all += "\n" + spaces;
      used = indent;
    } else if (!is_first) {
      all += " ";
      ++used;
    }
    all += word;
    used += columns_of(word);
    is_first = false;
    at = end + 1;
  }
  return all + "\n";
}

}  // namespace treadle::report
