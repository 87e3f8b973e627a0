#include "latencies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace cli {

namespace {

struct Percentile {
  double percent;
  const char *label, *member;
};
constexpr Percentile kPercentiles[] = {
    {50, "p50", "p50_s"}, {90, "p90", "p90_s"}, {99, "p99", "p99_s"}, {99.9, "p99.9", "p99_9_s"}};

}  // namespace

Latencies::Latencies(std::vector<double> seconds) : sorted_(std::move(seconds)) {
  std::sort(sorted_.begin(), sorted_.end());
}

double Latencies::percentile(double percent) const {
  const double rank = std::ceil(percent / 100 * static_cast<double>(count()));
  return sorted_[std::clamp<size_t>(static_cast<size_t>(rank), 1, count()) - 1];
}

std::string Latencies::text(std::string_view of) const {
  const bool is_short = percentile(50) < 1e-3;
  const double factor = is_short ? 1e6 : 1e3;
  const char* const unit = is_short ? "us" : "ms";
  const auto line = [&](const char* label, double seconds) {
    return fmt::format("{:<10}{:10.3f} {}", label, seconds * factor, unit);
  };
  std::string text;
  for (const Percentile& p : kPercentiles) {
    text += line(p.label, percentile(p.percent)) + (text.empty() ? fmt::format("  of {} {}\n", count(), of) : "\n");
  }
  return text + line("maximum", maximum()) + "\n" + line("best", best()) + "\n";
}

void Latencies::add_to(JsonObject& json) const {
  for (const Percentile& p : kPercentiles) json.number(p.member, percentile(p.percent));
  json.number("maximum_s", maximum()).number("best_s", best());
}

}  // namespace cli
