#include "level_strip.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string_view>

#include "terminal.h"

namespace cli {

namespace {

constexpr size_t kMarksPerRow = 50;  // fits a terminal of 80 columns

}  // namespace

LevelStrip::LevelStrip(double seconds_per_mark) : seconds_per_mark_(seconds_per_mark) {}

void LevelStrip::add(double level, double top) {
  if (in_row_ == 0) {
    fmt::print("{:>10}  ", seconds_per_mark_ > 0
                               ? fmt::format("{:.2f} s", static_cast<double>(count_) * seconds_per_mark_)
                               : fmt::to_string(count_));
    low_ = high_ = level;
  }
  top_ = std::max({top_, top, std::isfinite(level) ? level : 0});
  low_ = std::min(low_, level);
  high_ = std::max(high_, level);
  fmt::print("{}", mark(level));
  std::fflush(stdout);
  ++count_;
  if (++in_row_ == kMarksPerRow) finish();
}

void LevelStrip::finish() {
  if (in_row_ == 0) return;
  fmt::print("{:{}}  {:.3g} to {:.3g}\n", "", kMarksPerRow - in_row_, low_, high_);
  in_row_ = 0;
}

std::string LevelStrip::mark(double level) const {
  static constexpr std::string_view kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr std::string_view kAscii[] = {"_", ".", "-", ":", "=", "+", "*", "#"};
  static const bool blocks = shows_utf8();
  if (!std::isfinite(level)) return "?";
  const double share = top_ > 0 ? std::clamp(level / top_, 0.0, 1.0) : 0;
  const auto step = static_cast<size_t>(std::lround(share * 7));
  return std::string(blocks ? kBlocks[step] : kAscii[step]);
}

}  // namespace cli
