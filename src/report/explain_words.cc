#include "report/explain_words.h"

#include <fmt/format.h>

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

}  // namespace treadle::report
