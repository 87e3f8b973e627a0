#include "ops/math/string_cast.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstring>

#include "op/pieces.h"
#include "ops/costs.h"

namespace treadle {

namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n\f\v";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  text = text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
  // from_chars does not accept a plus sign.
  if (text.size() > 1 && text[0] == '+' && text[1] != '-' && text[1] != '+') text.remove_prefix(1);
  return text;
}

// "0x1.8p3", whose prefix from_chars does not accept.
bool is_hexadecimal(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X') && text[2] != '-';
}

template <class T>
bool parse(std::string_view text, T& value) {
  if constexpr (std::is_floating_point_v<T>) {
    if (is_hexadecimal(text)) {
      const std::string owned(text);
      char* stop = nullptr;
      value = static_cast<T>(std::strtod(owned.c_str(), &stop));
      return stop == owned.c_str() + owned.size();
    }
  }
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (stop != end || text.empty()) return false;
  if constexpr (std::is_floating_point_v<T>) {
    if (code == std::errc::result_out_of_range) {  // too large or too small: the result of strtod
      value = static_cast<T>(std::strtod(std::string(text).c_str(), nullptr));
      return true;
    }
  }
  return code == std::errc();
}

bool equals_ignoring_case(std::string_view a, std::string_view lower) {
  if (a.size() != lower.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if ((a[i] >= 'A' && a[i] <= 'Z' ? a[i] - 'A' + 'a' : a[i]) != lower[i]) return false;
  }
  return true;
}

// Parses one element of type `to` into `out`.
bool parse_element(std::string_view text, ElementType to, void* out, const kernels::CastOptions& options) {
  if (to == ElementType::kBool && (equals_ignoring_case(text, "true") || equals_ignoring_case(text, "false"))) {
    *static_cast<bool*>(out) = text.size() == 4;
    return true;
  }
  if (is_integer(to)) {
    if (int64_t value; parse(text, value)) {
      kernels::cast(ElementType::kInt64, to, &value, out, 1, options);
      return true;
    }
    if (uint64_t value; parse(text, value)) {
      kernels::cast(ElementType::kUint64, to, &value, out, 1, options);
      return true;
    }
  }
  if (to == ElementType::kFloat) return parse(text, *static_cast<float*>(out));
  double value;
  if (!parse(text, value)) return false;
  kernels::cast(ElementType::kDouble, to, &value, out, 1, options);
  return true;
}

// As onnxruntime prints numbers, since the specification leaves the form open: eight digits, for doubles too.
std::string print_float(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-INF" : "INF";
  return fmt::format("{:.8g}", value);
}

std::string print_element(ElementType from, const void* element) {
  if (from == ElementType::kBool) return *static_cast<const uint8_t*>(element) ? "1" : "0";
  if (from == ElementType::kDouble) return print_float(*static_cast<const double*>(element));
  if (from == ElementType::kUint64) return fmt::format("{}", *static_cast<const uint64_t*>(element));
  if (is_integer(from)) {
    int64_t value;
    kernels::cast(from, ElementType::kInt64, element, &value, 1);
    return fmt::format("{}", value);
  }
  float value;
  kernels::cast(from, ElementType::kFloat, element, &value, 1);
  return print_float(static_cast<double>(value));
}

}  // namespace

Status cast_strings(const Tensor& in, Tensor& out, const kernels::CastOptions& options) {
  const auto count = static_cast<size_t>(in.element_count());
  StopPoll stop;
  if (is_string(in.type()) && is_string(out.type())) {
    for (size_t i = 0; i < count; ++i) {
      out.mutable_data<String>()[i] = in.data<String>()[i];
      if (stop.after(text_ns(in.data<String>()[i]))) return stopped();
    }
    return {};
  }
  if (is_string(in.type())) {
    auto* bytes = static_cast<std::byte*>(out.mutable_raw());
    for (size_t i = 0; i < count; ++i) {
      const String& text = in.data<String>()[i];
      if (!parse_element(trimmed(text), out.type(), bytes + i * byte_width(out.type()), options)) {
        return error(Code::kRuntime, "input[{}] is '{}', expected the text of a number of type {}", i, text,
                     name(out.type()));
      }
      if (stop.after(costs::kNumberTextNs + kByteNs * static_cast<double>(text.size()))) return stopped();
    }
    return {};
  }
  const auto* bytes = static_cast<const std::byte*>(in.raw());
  for (size_t i = 0; i < count; ++i) {
    out.mutable_data<String>()[i] = print_element(in.type(), bytes + i * byte_width(in.type()));
    if (stop.after(costs::kNumberTextNs)) return stopped();
  }
  return {};
}

}  // namespace treadle
