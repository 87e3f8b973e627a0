#pragma once
// Named sets of element types, as type constraints of the specification use them. IrN: the types that tensors of that
// IR version may have.

#include "type/element_type.h"

namespace treadle {

template <class... Ts>
constexpr ElementTypeSet tensors(Ts... types) {
  return ElementTypeSet::of(types...);
}

namespace types {

inline constexpr ElementTypeSet kBools = tensors(ElementType::kBool);
inline constexpr ElementTypeSet kStrings = tensors(ElementType::kString);
inline constexpr ElementTypeSet kInt64s = tensors(ElementType::kInt64);
inline constexpr ElementTypeSet kInt32s = tensors(ElementType::kInt32);
inline constexpr ElementTypeSet kIndices = kInt64s | tensors(ElementType::kInt32);
inline constexpr ElementTypeSet kFloat32s = tensors(ElementType::kFloat);
inline constexpr ElementTypeSet kUint8s = tensors(ElementType::kUint8);
inline constexpr ElementTypeSet kBytes = kUint8s | tensors(ElementType::kInt8);
inline constexpr ElementTypeSet kInt64OrString = kStrings | tensors(ElementType::kInt64);
inline constexpr ElementTypeSet kFloats = kFloat32s | tensors(ElementType::kFloat16, ElementType::kDouble);
inline constexpr ElementTypeSet kFloatsBf16 = kFloats | tensors(ElementType::kBfloat16);
inline constexpr ElementTypeSet kFloats32 = kFloat32s | tensors(ElementType::kDouble);
inline constexpr ElementTypeSet kFloatsTo32 = kFloat32s | tensors(ElementType::kFloat16, ElementType::kBfloat16);
inline constexpr ElementTypeSet kNumeric32 =
    kFloats | tensors(ElementType::kInt32, ElementType::kInt64, ElementType::kUint32, ElementType::kUint64);
inline constexpr ElementTypeSet kNumeric32Bf16 = kNumeric32 | tensors(ElementType::kBfloat16);
inline constexpr ElementTypeSet kNumeric =
    kNumeric32 | tensors(ElementType::kUint8, ElementType::kInt8, ElementType::kUint16, ElementType::kInt16);
inline constexpr ElementTypeSet kNumericBf16 = kNumeric | tensors(ElementType::kBfloat16);
inline constexpr ElementTypeSet kIntegers =
    kIndices | tensors(ElementType::kUint8, ElementType::kInt8, ElementType::kUint16, ElementType::kInt16,
                       ElementType::kUint32, ElementType::kUint64);
inline constexpr ElementTypeSet kSigned =
    kFloats | tensors(ElementType::kInt8, ElementType::kInt16, ElementType::kInt32, ElementType::kInt64);
inline constexpr ElementTypeSet kSignedBf16 = kSigned | tensors(ElementType::kBfloat16);
inline constexpr ElementTypeSet kUnsigneds =
    kUint8s | tensors(ElementType::kUint16, ElementType::kUint32, ElementType::kUint64);
inline constexpr ElementTypeSet kNumericBool = kNumeric | tensors(ElementType::kBool);
inline constexpr ElementTypeSet kNumericBoolBf16 = kNumericBf16 | tensors(ElementType::kBool);
inline constexpr ElementTypeSet kAllTensors =
    kNumericBool | tensors(ElementType::kString, ElementType::kComplex64, ElementType::kComplex128);
inline constexpr ElementTypeSet kAllTensorsIr4 = kAllTensors | tensors(ElementType::kBfloat16);
inline constexpr ElementTypeSet kAllTensorsIr9 =
    kAllTensorsIr4 | tensors(ElementType::kFloat8e4m3fn, ElementType::kFloat8e4m3fnuz, ElementType::kFloat8e5m2,
                             ElementType::kFloat8e5m2fnuz);
inline constexpr ElementTypeSet kAllTensorsIr10 = kAllTensorsIr9 | tensors(ElementType::kUint4, ElementType::kInt4);
inline constexpr ElementTypeSet kAllTensorsIr11 = kAllTensorsIr10 | tensors(ElementType::kFloat4e2m1);
inline constexpr ElementTypeSet kAllTensorsIr12 = kAllTensorsIr11 | tensors(ElementType::kFloat8e8m0);
inline constexpr ElementTypeSet kAllTensorsIr13 = kAllTensorsIr12 | tensors(ElementType::kUint2, ElementType::kInt2);
inline constexpr ElementTypeSet kAllTensorsIr14 =
    kAllTensorsIr13 | tensors(ElementType::kFloat6e2m3, ElementType::kFloat6e3m2);
inline constexpr ElementTypeSet kCastable = kNumericBool | tensors(ElementType::kString);
inline constexpr ElementTypeSet kMlNumbers = kIndices | tensors(ElementType::kFloat, ElementType::kDouble);
inline constexpr ElementTypeSet kReducible8 = kNumeric32 | tensors(ElementType::kUint8, ElementType::kInt8);
inline constexpr ElementTypeSet kReducible8Bf16 = kReducible8 | tensors(ElementType::kBfloat16);
inline constexpr ElementTypeSet kCastableIr4 = kNumericBoolBf16 | tensors(ElementType::kString);
inline constexpr ElementTypeSet kFillableIr4 = kNumericBf16 | tensors(ElementType::kBool);
inline constexpr ElementTypeSet kCastableIr9 =
    kCastableIr4 | tensors(ElementType::kFloat8e4m3fn, ElementType::kFloat8e4m3fnuz, ElementType::kFloat8e5m2,
                           ElementType::kFloat8e5m2fnuz);
inline constexpr ElementTypeSet kFillableIr9 =
    kNumericBoolBf16 | tensors(ElementType::kFloat8e4m3fn, ElementType::kFloat8e4m3fnuz, ElementType::kFloat8e5m2,
                               ElementType::kFloat8e5m2fnuz);
inline constexpr ElementTypeSet kBitsIr9 = kFillableIr9 | tensors(ElementType::kComplex64, ElementType::kComplex128);
inline constexpr ElementTypeSet kCastableIr10 = kCastableIr9 | tensors(ElementType::kUint4, ElementType::kInt4);
inline constexpr ElementTypeSet kFillableIr10 = kFillableIr9 | tensors(ElementType::kUint4, ElementType::kInt4);
inline constexpr ElementTypeSet kBitsIr10 = kBitsIr9 | tensors(ElementType::kUint4, ElementType::kInt4);
inline constexpr ElementTypeSet kCastableIr11 = kCastableIr10 | tensors(ElementType::kFloat4e2m1);
inline constexpr ElementTypeSet kFillableIr11 = kFillableIr10 | tensors(ElementType::kFloat4e2m1);
inline constexpr ElementTypeSet kBitsIr11 = kBitsIr10 | tensors(ElementType::kFloat4e2m1);
inline constexpr ElementTypeSet kCastableIr12 = kCastableIr11 | tensors(ElementType::kFloat8e8m0);
inline constexpr ElementTypeSet kFillableIr12 = kFillableIr11 | tensors(ElementType::kFloat8e8m0);
inline constexpr ElementTypeSet kBitsIr12 = kBitsIr11 | tensors(ElementType::kFloat8e8m0);
inline constexpr ElementTypeSet kCastableIr13 = kCastableIr12 | tensors(ElementType::kUint2, ElementType::kInt2);
inline constexpr ElementTypeSet kFillableIr13 = kFillableIr12 | tensors(ElementType::kUint2, ElementType::kInt2);
inline constexpr ElementTypeSet kBitsIr13 = kBitsIr12 | tensors(ElementType::kUint2, ElementType::kInt2);
inline constexpr ElementTypeSet kCastableIr14 =
    kCastableIr13 | tensors(ElementType::kFloat6e2m3, ElementType::kFloat6e3m2);
inline constexpr ElementTypeSet kFloat8s = tensors(ElementType::kFloat8e4m3fn, ElementType::kFloat8e4m3fnuz,
                                                   ElementType::kFloat8e5m2, ElementType::kFloat8e5m2fnuz);

}  // namespace types

}  // namespace treadle
