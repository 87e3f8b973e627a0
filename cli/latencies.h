#pragma once
// The distribution of measured times of runs or pushes.

#include <string>
#include <string_view>
#include <vector>

#include "json.h"

namespace cli {

class Latencies {
 public:
  explicit Latencies(std::vector<double> seconds);  // at least one, in any order

  size_t count() const { return sorted_.size(); }
  double best() const { return sorted_.front(); }
  double maximum() const { return sorted_.back(); }
  // The shortest measured time that `percent` of all times do not exceed.
  double percentile(double percent) const;
  // Lines of percentiles, all in one unit, and the maximum. `of`: follows the number of times ("runs").
  std::string text(std::string_view of) const;
  // Adds "p50_s" to "p99_9_s", "best_s" and "maximum_s".
  void add_to(JsonObject& json) const;

 private:
  std::vector<double> sorted_;
};

}  // namespace cli
