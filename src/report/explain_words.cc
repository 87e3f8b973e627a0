#include "report/explain_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace treadle::report {

using Tier = LoopReport::Tier;

std::string_view name(Tier tier) {
  switch (tier) {
    case Tier::kProgram:
      return "program";
    case Tier::kChain:
      return "chain";
    case Tier::kNative:
      return "native";
    case Tier::kInside:
      return "inside";
  }
  return "";
}

std::string_view name(LoopReport::Bound bound) {
  switch (bound) {
    case LoopReport::Bound::kArithmetic:
      return "arithmetic";
    case LoopReport::Bound::kMemory:
      return "memory";
    case LoopReport::Bound::kStates:
      return "loop-carried dependencies";
  }
  return "";
}

std::string bytes_text(double bytes) {
  if (bytes < 10 * 1024) return fmt::format("{:.0f} bytes", bytes);
  if (bytes < 10 * 1024 * 1024) return fmt::format("{:.0f} KB", bytes / 1024);
  return fmt::format("{:.0f} MB", bytes / (1024 * 1024));
}

std::string count_text(size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string runs_text(double count) {
  const double unit = std::pow(10, std::max(std::floor(std::log10(std::max(count, 1.0))) - 1, 0.0));
  const double rounded = std::round(count / unit) * unit;
  return fmt::format("{:.0f} {}", rounded, rounded == 1 ? "run" : "runs");
}

}  // namespace treadle::report
