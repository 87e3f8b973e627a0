#pragma once
// Which iterations of a value to look at, as users write them behind its name: "h@7", "h@0-9,20", "h@::10",
// "h@2/0-9".

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace treadle::report {

// All iterations unless it was parsed.
class IterationChoice {
 public:
  // One level for each loop around the value, from the outermost loop on, with "/" between levels. A level is a list of
  // iterations "7", ranges "0-9" (the last included), and steps "BEGIN:END:STEP" (END excluded; each part may be left
  // out). Levels that are left out mean all iterations. Errors: kInvalidArgument.
  static Result<IterationChoice> parse(std::string_view text);

  // `iterations`: of the loops around the value, the outermost first.
  bool has(std::span<const int64_t> iterations) const;
  size_t levels() const { return levels_.size(); }

 private:
  struct Range {
    int64_t first = 0, last = std::numeric_limits<int64_t>::max(), step = 1;
  };
  static Result<Range> parse_range(std::string_view text);

  std::vector<std::vector<Range>> levels_;
};

// "NAME" or "NAME@ITERATIONS". What does not end with valid iterations is a name.
struct WatchedName {
  std::string name;
  IterationChoice iterations;
};
WatchedName watched_name(std::string_view text);

}  // namespace treadle::report
