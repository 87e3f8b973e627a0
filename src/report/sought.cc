#include "report/sought.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace treadle::report {

using kernels::Statistics;

namespace {

constexpr char kKinds[] = "nan, inf, over=LIMIT, denormal, zero";

}  // namespace

Result<Sought> Sought::parse(std::string_view text) {
  Sought made;
  made.text_ = text;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string kind(text.substr(begin, end - begin));
    begin = end + 1;
    char* rest = nullptr;
    if (kind == "nan") {
      made.nan_ = true;
    } else if (kind == "inf") {
      made.infinite_ = true;
    } else if (kind == "denormal") {
      made.denormal_ = true;
    } else if (kind == "zero") {
      made.zero_ = true;
    } else if (kind.starts_with("over=") && kind.size() > 5) {
      made.over_ = std::strtod(kind.c_str() + 5, &rest);
      if (*rest != '\0' || !(made.over_ >= 0) || std::isinf(made.over_)) {
        return error(Code::kInvalidArgument, "'{}': the limit must be a finite number from 0 on", kind);
      }
    } else {
      return error(Code::kInvalidArgument, "'{}' cannot be found in values (there are: {})", kind, kKinds);
    }
  }
  return made;
}

bool Sought::is_in(const Statistics& of) const {
  const bool is_over = of.high > over_ || of.low < -over_;
  const bool is_zero = zero_ && of.count > 1 && of.zero == of.count;
  return (nan_ && of.nan > 0) || (infinite_ && of.infinite > 0) || (denormal_ && of.denormal > 0) || is_over || is_zero;
}

int64_t Sought::count_in(const Statistics& of) const {
  return (nan_ ? of.nan : 0) + (infinite_ ? of.infinite : 0) + (denormal_ ? of.denormal : 0);
}

bool Sought::is(double number, double least_normal) const {
  const double size = std::fabs(number);
  return (nan_ && std::isnan(number)) || (infinite_ && std::isinf(number)) || size > over_ ||
         (denormal_ && size > 0 && size < least_normal) || (zero_ && number == 0);
}

}  // namespace treadle::report
