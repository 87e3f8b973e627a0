#include "c/types.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

namespace treadle::c {

namespace {

struct Held {
  ElementType type;
  std::string_view stored, suffix;
};

constexpr Held kHeld[] = {
    {ElementType::kFloat, "float", "f32"},
    {ElementType::kDouble, "double", "f64"},
    {ElementType::kFloat16, "uint16_t", "f16"},
    {ElementType::kBfloat16, "uint16_t", "bf16"},
    {ElementType::kInt8, "int8_t", "i8"},
    {ElementType::kUint8, "uint8_t", "u8"},
    {ElementType::kInt16, "int16_t", "i16"},
    {ElementType::kUint16, "uint16_t", "u16"},
    {ElementType::kInt32, "int32_t", "i32"},
    {ElementType::kUint32, "uint32_t", "u32"},
    {ElementType::kInt64, "int64_t", "i64"},
    {ElementType::kUint64, "uint64_t", "u64"},
    {ElementType::kBool, "uint8_t", "bool"},
    {ElementType::kInt4, "int8_t", "i4"},
    {ElementType::kUint4, "uint8_t", "u4"},
    {ElementType::kInt2, "int8_t", "i2"},
    {ElementType::kUint2, "uint8_t", "u2"},
    {ElementType::kFloat8e4m3fn, "uint8_t", "f8e4m3fn"},
    {ElementType::kFloat8e4m3fnuz, "uint8_t", "f8e4m3fnuz"},
    {ElementType::kFloat8e5m2, "uint8_t", "f8e5m2"},
    {ElementType::kFloat8e5m2fnuz, "uint8_t", "f8e5m2fnuz"},
    {ElementType::kFloat8e8m0, "uint8_t", "f8e8m0"},
    {ElementType::kFloat6e2m3, "uint8_t", "f6e2m3"},
    {ElementType::kFloat6e3m2, "uint8_t", "f6e3m2"},
    {ElementType::kFloat4e2m1, "uint8_t", "f4e2m1"},
};

const Held* held(ElementType type) {
  for (const Held& row : kHeld) {
    if (row.type == type) return &row;
  }
  return nullptr;
}

template <class T>
std::string real(T value, std::string_view end) {
  constexpr std::string_view kOne = std::is_same_v<T, float> ? "1.0f" : "1.0", kZero = kOne == "1.0f" ? "0.0f" : "0.0";
  if (std::isnan(value)) return fmt::format("({} / {})", kZero, kZero);
  if (std::isinf(value)) return fmt::format("({}{} / {})", value < 0 ? "-" : "", kOne, kZero);
  char digits[64];
  const auto end_of = std::to_chars(digits, digits + sizeof digits, value);
  std::string text(digits, end_of.ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text.append(end);
}

template <class T>
T read(const void* element) {
  T value;
  std::memcpy(&value, element, sizeof value);
  return value;
}

}  // namespace

bool is_held(ElementType type) {
  return held(type) != nullptr;
}
std::string_view stored(ElementType type) {
  return held(type)->stored;
}
std::string_view suffix(ElementType type) {
  return held(type)->suffix;
}

std::string literal(float value) {
  return real(value, "f");
}
std::string literal(double value) {
  return real(value, "");
}
std::string literal(int32_t value) {
  return value == std::numeric_limits<int32_t>::min() ? "(-2147483647 - 1)" : std::to_string(value);
}
std::string literal(int64_t value) {
  if (value == std::numeric_limits<int64_t>::min()) return "(-9223372036854775807 - 1)";
  return std::to_string(value);
}
std::string literal(uint32_t value) {
  return std::to_string(value) + "u";
}
std::string literal(uint64_t value) {
  return std::to_string(value) + "u";
}
std::string literal(uint8_t value) {
  return std::to_string(value);
}

std::string literal(ElementType type, const void* element) {
  const std::string_view t = stored(type);
  if (t == "float") return literal(read<float>(element));
  if (t == "double") return literal(read<double>(element));
  if (t == "int8_t") return std::to_string(read<int8_t>(element));
  if (t == "uint8_t") return std::to_string(read<uint8_t>(element));
  if (t == "int16_t") return std::to_string(read<int16_t>(element));
  if (t == "uint16_t") return std::to_string(read<uint16_t>(element));
  if (t == "int32_t") return literal(read<int32_t>(element));
  if (t == "uint32_t") return literal(read<uint32_t>(element));
  if (t == "int64_t") return literal(read<int64_t>(element));
  return literal(read<uint64_t>(element));
}

}  // namespace treadle::c
