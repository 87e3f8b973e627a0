#include "compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common.h"

namespace cli {

namespace {

using treadle::Value;

constexpr int kFloat = 1, kDouble = 11, kBool = 9, kBfloat16 = 16, kComplex64 = 14, kComplex128 = 15;

bool is_exact(int element) {
  const std::string name = treadle_element_name(element);
  return element == kBool || name.find("int") != std::string::npos;
}

bool is_float(int element) {
  return element == kFloat || element == kDouble;
}

std::vector<double> numbers_of(const Value& tensor) {
  if (tensor.element() != kComplex64 && tensor.element() != kComplex128) return tensor.to_doubles();
  std::vector<double> numbers(static_cast<size_t>(tensor.count()) * 2);
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] =
        tensor.element() == kComplex64 ? static_cast<double>(tensor.data<float>()[i]) : tensor.data<double>()[i];
  }
  return numbers;
}

std::string compare_texts(const Value& expected, const Value& found) {
  for (int64_t i = 0; i < expected.count(); ++i) {
    if (expected.text(i) != found.text(i)) {
      return fmt::format("element {} is '{}', expected '{}'", i, found.text(i), expected.text(i));
    }
  }
  return "";
}

std::string compare_numbers(const Value& expected, const Value& found, const Tolerance& tolerance, double& largest) {
  if (is_exact(expected.element())) {
    if (expected.bytes() == 0 || std::memcmp(expected.data<char>(), found.data<char>(), expected.bytes()) == 0)
      return "";
  }
  const std::vector<double> want = numbers_of(expected), have = numbers_of(found);
  double scale = 0;
  for (const double number : want) {
    if (std::isfinite(number)) scale = std::max(scale, std::fabs(number));
  }
  const bool given = tolerance.relative || tolerance.absolute;
  double relative = tolerance.relative.value_or(1e-3);
  if (expected.element() == kBfloat16) relative = std::max(relative, 1.0 / 64);
  const double absolute = tolerance.absolute.value_or(1e-7);
  size_t wrong = 0, worst = 0;
  double worst_difference = -1;
  for (size_t i = 0; i < want.size(); ++i) {
    if (want[i] == have[i] || (std::isnan(want[i]) && std::isnan(have[i]))) continue;
    const double difference = std::fabs(want[i] - have[i]);
    if (std::isfinite(difference)) largest = std::max(largest, difference);
    const double allowed = is_exact(expected.element()) ? 0
                           : given                      ? absolute + relative * std::fabs(want[i])
                                                        : 1e-3 + std::max(relative, 1e-3) * scale;
    if (difference <= allowed) continue;
    ++wrong;
    const double rank = std::isnan(difference) ? INFINITY : difference;
    if (rank > worst_difference) {
      worst_difference = rank;
      worst = i;
    }
  }
  if (wrong == 0) return "";
  return fmt::format("{} of {} elements differ, most of all element {}: {:.9g}, expected {:.9g}", wrong, want.size(),
                     worst, have[worst], want[worst]);
}

}  // namespace

std::string compare(const Value& expected, const Value& found, const Tolerance& tolerance, double& largest) {
  if (expected.kind() == TREADLE_OPTIONAL && found.kind() != TREADLE_OPTIONAL) {
    if (expected.has_value()) return compare(expected.optional_value(), found, tolerance, largest);
    return found.kind() == TREADLE_NONE ? "" : fmt::format("is {}, expected nothing", found.type_text());
  }
  if (expected.kind() != found.kind()) {
    return fmt::format("is {}, expected {}", found.type_text(), expected.type_text());
  }
  switch (expected.kind()) {
    case TREADLE_TENSOR:
      if (expected.element() != found.element() || expected.dims() != found.dims()) {
        return fmt::format("is {}, expected {}", found.type_text(), expected.type_text());
      }
      return expected.element() == kString ? compare_texts(expected, found)
                                           : compare_numbers(expected, found, tolerance, largest);
    case TREADLE_SEQUENCE: {
      if (expected.sequence_size() != found.sequence_size()) {
        return fmt::format("has {} elements, expected {}", found.sequence_size(), expected.sequence_size());
      }
      for (size_t i = 0; i < expected.sequence_size(); ++i) {
        const std::string problem = compare(expected.sequence_at(i), found.sequence_at(i), tolerance, largest);
        if (!problem.empty()) return fmt::format("[{}] {}", i, problem);
      }
      return "";
    }
    case TREADLE_OPTIONAL:
      if (expected.has_value() != found.has_value()) {
        return found.has_value() ? "has a value, expected none" : "has no value";
      }
      return expected.has_value() ? compare(expected.optional_value(), found.optional_value(), tolerance, largest) : "";
    case TREADLE_MAP: {
      const std::string problem = compare(expected.map_keys(), found.map_keys(), tolerance, largest);
      if (!problem.empty()) return "keys: " + problem;
      const Value want = expected.map_values(), have = found.map_values();
      // Python writes the floats of a map as doubles.
      const bool floats = is_float(want.element()) && is_float(have.element()) && want.count() == have.count();
      return floats ? compare_numbers(want, have, tolerance, largest) : compare(want, have, tolerance, largest);
    }
    default:
      return "";
  }
}

}  // namespace cli
