#pragma once
// Element types of tensors in one table, from which enumerators, names, widths, classes and compute types are
// generated.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/counted.h"

namespace treadle {

enum class TypeClass : uint8_t { kNone, kFloat, kSigned, kUnsigned, kBool, kComplex, kString };

// The types of arithmetic. Narrow types are converted tile by tile on reading and writing (kernels/convert.h).
enum class ComputeType : uint8_t { kF32, kF64, kI32, kI64, kU32, kU64, kBool, kNone };
inline constexpr int kComputeTypeCount = 7;

// X(enumerator, number in TensorProto.DataType, ONNX text name, bits in a file, bytes in memory, class, compute type)
// In memory 2- and 4-bit elements take one byte each; strings are String objects.
#define TREADLE_ELEMENT_TYPES(X)                               \
  X(kFloat, 1, "float", 32, 4, kFloat, kF32)                   \
  X(kUint8, 2, "uint8", 8, 1, kUnsigned, kU32)                 \
  X(kInt8, 3, "int8", 8, 1, kSigned, kI32)                     \
  X(kUint16, 4, "uint16", 16, 2, kUnsigned, kU32)              \
  X(kInt16, 5, "int16", 16, 2, kSigned, kI32)                  \
  X(kInt32, 6, "int32", 32, 4, kSigned, kI32)                  \
  X(kInt64, 7, "int64", 64, 8, kSigned, kI64)                  \
  X(kString, 8, "string", 0, sizeof(String), kString, kNone)   \
  X(kBool, 9, "bool", 8, 1, kBool, kBool)                      \
  X(kFloat16, 10, "float16", 16, 2, kFloat, kF32)              \
  X(kDouble, 11, "double", 64, 8, kFloat, kF64)                \
  X(kUint32, 12, "uint32", 32, 4, kUnsigned, kU32)             \
  X(kUint64, 13, "uint64", 64, 8, kUnsigned, kU64)             \
  X(kComplex64, 14, "complex64", 64, 8, kComplex, kNone)       \
  X(kComplex128, 15, "complex128", 128, 16, kComplex, kNone)   \
  X(kBfloat16, 16, "bfloat16", 16, 2, kFloat, kF32)            \
  X(kFloat8e4m3fn, 17, "float8e4m3fn", 8, 1, kFloat, kF32)     \
  X(kFloat8e4m3fnuz, 18, "float8e4m3fnuz", 8, 1, kFloat, kF32) \
  X(kFloat8e5m2, 19, "float8e5m2", 8, 1, kFloat, kF32)         \
  X(kFloat8e5m2fnuz, 20, "float8e5m2fnuz", 8, 1, kFloat, kF32) \
  X(kUint4, 21, "uint4", 4, 1, kUnsigned, kU32)                \
  X(kInt4, 22, "int4", 4, 1, kSigned, kI32)                    \
  X(kFloat4e2m1, 23, "float4e2m1", 4, 1, kFloat, kF32)         \
  X(kFloat8e8m0, 24, "float8e8m0", 8, 1, kFloat, kF32)         \
  X(kUint2, 25, "uint2", 2, 1, kUnsigned, kU32)                \
  X(kInt2, 26, "int2", 2, 1, kSigned, kI32)                    \
  X(kFloat6e2m3, 27, "float6e2m3", 6, 1, kFloat, kF32)         \
  X(kFloat6e3m2, 28, "float6e3m2", 6, 1, kFloat, kF32)

enum class ElementType : uint8_t {
  kUndefined = 0,
#define X(enumerator, number, ...) enumerator = number,
  TREADLE_ELEMENT_TYPES(X)
#undef X
};
inline constexpr int kElementTypeCount = 29;  // including kUndefined

struct ElementTypeInfo {
  std::string_view name;
  uint16_t file_bits;   // bits in raw_data; 0 for strings
  uint16_t byte_width;  // bytes in memory
  TypeClass type_class;
  ComputeType compute;
};

// By number of TensorProto.DataType.
inline constexpr std::array<ElementTypeInfo, kElementTypeCount> kElementTypes = [] {
  std::array<ElementTypeInfo, kElementTypeCount> table{};
  table[0] = {"undefined", 0, 0, TypeClass::kNone, ComputeType::kNone};
#define X(enumerator, number, text, bits, bytes, type_class, compute) \
  table[number] = {text, bits, bytes, TypeClass::type_class, ComputeType::compute};
  TREADLE_ELEMENT_TYPES(X)
#undef X
  return table;
}();

inline const ElementTypeInfo& info(ElementType type) {
  return kElementTypes[static_cast<size_t>(type)];
}

inline std::string_view name(ElementType type) {
  return info(type).name;
}
inline size_t byte_width(ElementType type) {
  return info(type).byte_width;
}
inline ComputeType compute_type(ElementType type) {
  return info(type).compute;
}
// These are false for kUndefined.
inline bool is_float(ElementType type) {
  return info(type).type_class == TypeClass::kFloat;
}
inline bool is_integer(ElementType type) {
  return info(type).type_class == TypeClass::kSigned || info(type).type_class == TypeClass::kUnsigned;
}
inline bool is_signed_integer(ElementType type) {
  return info(type).type_class == TypeClass::kSigned;
}
inline bool is_string(ElementType type) {
  return type == ElementType::kString;
}
inline bool is_sub_byte(ElementType type) {
  return info(type).file_bits > 0 && info(type).file_bits < 8;
}

// kUndefined for an unknown `name` (ONNX text, such as "float16") or number.
ElementType element_type_from_name(std::string_view name);
ElementType element_type_from_number(int64_t number);

// The type in which elements of `type` are computed: float for narrow floats, 32 bits for narrow integers, else the
// type itself.
ElementType wide_type(ElementType type);

// Memory size of one element of a compute type.
size_t byte_width(ComputeType type);

// A set of element types, one bit per TensorProto.DataType number.
class ElementTypeSet {
 public:
  constexpr ElementTypeSet() = default;
  constexpr explicit ElementTypeSet(uint32_t bits) : bits_(bits) {}
  template <class... Ts>
  static constexpr ElementTypeSet of(Ts... types) {
    return ElementTypeSet(((uint32_t{1} << static_cast<int>(types)) | ... | 0u));
  }
  constexpr bool contains(ElementType type) const { return (bits_ >> static_cast<int>(type)) & 1; }
  constexpr uint32_t bits() const { return bits_; }
  constexpr ElementTypeSet operator|(ElementTypeSet o) const { return ElementTypeSet(bits_ | o.bits_); }
  constexpr ElementTypeSet operator&(ElementTypeSet o) const { return ElementTypeSet(bits_ & o.bits_); }
  constexpr ElementTypeSet operator-(ElementTypeSet o) const { return ElementTypeSet(bits_ & ~o.bits_); }
  friend constexpr bool operator==(ElementTypeSet, ElementTypeSet) = default;

 private:
  uint32_t bits_ = 0;
};

}  // namespace treadle
