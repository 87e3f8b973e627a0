#include "report/statistics_text.h"

#include <fmt/format.h>

#include <cmath>

#include "base/json.h"

namespace treadle::report {

std::string number_json(double number) {
  if (std::isnan(number)) return "\"nan\"";
  if (std::isinf(number)) return number > 0 ? "\"inf\"" : "\"-inf\"";
  return fmt::format("{:.17g}", number);
}

std::string to_text(const kernels::Statistics& s) {
  if (s.count == 0) return "empty";
  std::string text;
  if (s.low == s.high) {
    text = fmt::format("{:.4g}", s.low);
  } else if (s.low < s.high) {
    text = fmt::format("{:.4g} to {:.4g}", s.low, s.high);
  }
  const auto add = [&](int64_t count, std::string_view what) {
    if (count == 0) return;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count == s.count ? "all" : std::to_string(count), what);
  };
  add(s.nan, "nan");
  add(s.infinite, "inf");
  add(s.denormal, "denormal");
  return text;
}

std::string to_json(const kernels::Statistics& s) {
  JsonObject json;
  json.integer("count", s.count).integer("nan", s.nan).integer("inf", s.infinite).integer("zero", s.zero);
  json.integer("denormal", s.denormal);
  const bool has_numbers = s.low <= s.high;
  json.raw("minimum", has_numbers ? number_json(s.low) : "null");
  json.raw("maximum", has_numbers ? number_json(s.high) : "null");
  json.raw("mean", s.finite() > 0 ? number_json(s.mean()) : "null");
  return json.raw("norm", number_json(s.norm())).str();
}

}  // namespace treadle::report
