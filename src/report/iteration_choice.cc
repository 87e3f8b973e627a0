#include "report/iteration_choice.h"

#include <algorithm>
#include <charconv>

namespace treadle::report {

namespace {

Status not_understood(std::string_view text) {
  return error(Code::kInvalidArgument, "'{}' names no iterations (expected such as 7, 0-9, 3,5 or ::10)", text);
}

// `otherwise`: for an empty text.
bool read(std::string_view text, int64_t otherwise, int64_t& number) {
  number = otherwise;
  if (text.empty()) return true;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc() && end == text.data() + text.size() && number >= 0;
}

template <class F>
Status for_each_part(std::string_view text, char separator, F&& f) {
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    TREADLE_TRY(f(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return {};
}

}  // namespace

Result<IterationChoice::Range> IterationChoice::parse_range(std::string_view text) {
  Range range;
  const size_t colon = text.find(':'), dash = text.find('-');
  if (colon != std::string_view::npos) {
    const size_t second = std::min(text.find(':', colon + 1), text.size());
    const std::string_view step = second < text.size() ? text.substr(second + 1) : "";
    int64_t end = 0;
    const bool is_read = read(text.substr(0, colon), 0, range.first) &&
                         read(text.substr(colon + 1, second - colon - 1), range.last, end) && read(step, 1, range.step);
    if (!is_read || range.step < 1) return not_understood(text);
    if (end != range.last) range.last = end - 1;
    return range;
  }
  const std::string_view first = text.substr(0, dash);
  const std::string_view last = dash == std::string_view::npos ? first : text.substr(dash + 1);
  if (first.empty() || last.empty() || !read(first, 0, range.first) || !read(last, 0, range.last)) {
    return not_understood(text);
  }
  return range;
}

Result<IterationChoice> IterationChoice::parse(std::string_view text) {
  IterationChoice choice;
  TREADLE_TRY(for_each_part(text, '/', [&](std::string_view level) -> Status {
    choice.levels_.emplace_back();
    return for_each_part(level, ',', [&](std::string_view part) -> Status {
      TREADLE_ASSIGN(const Range range, parse_range(part));
      choice.levels_.back().push_back(range);
      return {};
    });
  }));
  return choice;
}

bool IterationChoice::has(std::span<const int64_t> iterations) const {
  for (size_t i = 0; i < levels_.size() && i < iterations.size(); ++i) {
    const int64_t at = iterations[i];
    const bool chosen =
        at < 0 || std::any_of(
                      levels_[i].begin(), levels_[i].end(),
                      [&](const Range& range) {
                        return at >= range.first && at <= range.last && (at - range.first) % range.step == 0;
                      });
    if (!chosen) return false;
  }
  return true;
}

WatchedName watched_name(std::string_view text) {
  const size_t at = text.rfind('@');
  if (at != std::string_view::npos && at > 0) {
    auto choice = IterationChoice::parse(text.substr(at + 1));
    if (choice.ok()) return {std::string(text.substr(0, at)), std::move(choice).value()};
  }
  return {std::string(text), {}};
}

}  // namespace treadle::report
