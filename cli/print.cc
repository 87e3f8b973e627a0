#include "print.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "common.h"
#include "json.h"

namespace cli {

namespace {

using treadle::Value;

constexpr size_t kShown = 8;

bool is_number(const Value& tensor) {
  return tensor.element() != kString && tensor.element() != 14 && tensor.element() != 15;
}

std::string json_number(double number) {
  return std::isfinite(number) ? fmt::format("{}", number) : json_quote(fmt::format("{}", number));
}

std::string elements(const Value& tensor) {
  std::vector<std::string> items;
  if (tensor.element() == kString) {
    for (int64_t i = 0; i < tensor.count() && items.size() < kShown; ++i) items.push_back(json_quote(tensor.text(i)));
  } else if (is_number(tensor)) {
    for (const double number : tensor.to_doubles()) {
      if (items.size() == kShown) break;
      items.push_back(std::isnan(number) ? "nan" : fmt::format("{:.6g}", number));  // of either sign
    }
  }
  const bool more = tensor.count() > static_cast<int64_t>(items.size());
  return fmt::format("{}{}", fmt::join(items, ", "), more ? ", ..." : "");
}

std::string range(const Value& tensor) {
  if (!is_number(tensor) || tensor.count() <= static_cast<int64_t>(kShown)) return "";
  double low = INFINITY, high = -INFINITY;
  int64_t nan = 0;
  for (const double number : tensor.to_doubles()) {
    nan += std::isnan(number) ? 1 : 0;
    low = std::min(low, number);  // a NaN changes neither
    high = std::max(high, number);
  }
  if (nan == tensor.count()) return "  all nan";
  const std::string some = nan > 0 ? fmt::format(", {} nan", nan) : "";
  return fmt::format("  from {:.6g} to {:.6g}{}", low, high, some);
}

}  // namespace

std::string summary(const Value& value) {
  switch (value.kind()) {
    case TREADLE_TENSOR:
      return fmt::format("{}  {}{}", value.type_text(), elements(value), range(value));
    case TREADLE_SEQUENCE:
      return fmt::format("{}  {} elements", value.type_text(), value.sequence_size());
    case TREADLE_OPTIONAL:
      return value.has_value() ? summary(value.optional_value()) : value.type_text() + "  empty";
    case TREADLE_MAP:
      return fmt::format("{}  {} entries", value.type_text(), value.map_keys().count());
    default:
      return "none";
  }
}

std::string to_json(const Value& value) {
  std::vector<std::string> items;
  JsonObject object;
  object.text("type", value.type_text());
  switch (value.kind()) {
    case TREADLE_TENSOR: {
      std::vector<std::string> dims;
      for (const int64_t d : value.dims()) dims.push_back(std::to_string(d));
      if (value.element() == kString) {
        for (int64_t i = 0; i < value.count(); ++i) items.push_back(json_quote(value.text(i)));
      } else if (is_number(value)) {
        for (const double number : value.to_doubles()) items.push_back(json_number(number));
      }
      return object.raw("shape", json_array(dims)).raw("data", json_array(items)).str();
    }
    case TREADLE_SEQUENCE:
      for (size_t i = 0; i < value.sequence_size(); ++i) items.push_back(to_json(value.sequence_at(i)));
      return object.raw("elements", json_array(items)).str();
    case TREADLE_OPTIONAL:
      return object.raw("value", value.has_value() ? to_json(value.optional_value()) : "null").str();
    case TREADLE_MAP:
      return object.raw("keys", to_json(value.map_keys())).raw("values", to_json(value.map_values())).str();
    default:
      return "null";
  }
}

}  // namespace cli
