#pragma once
// Element types in C, and numbers as C writes them.

#include <cstdint>
#include <string>
#include <string_view>

#include "type/element_type.h"

namespace treadle::c {

// Whether C holds elements of this type. Floats of 16 bits and less are held as their bits. As in the engine, an
// element of less than 8 bits takes a byte: signed integers extend their sign, others are in the low bits.
bool is_held(ElementType type);
// The type in which elements are stored: "float", "uint16_t" for float16 and bfloat16, "uint8_t" for bool, "int8_t" for
// int4.
std::string_view stored(ElementType type);
// The end of the names of functions for this type: "f32", "f16", "i64", "bool".
std::string_view suffix(ElementType type);

// Each gives back the same bits when it is compiled, except for the payload of a NaN.
std::string literal(float value);
std::string literal(double value);
std::string literal(int32_t value);
std::string literal(int64_t value);
std::string literal(uint32_t value);
std::string literal(uint64_t value);
std::string literal(uint8_t value);
// An element in memory.
std::string literal(ElementType type, const void* element);

}  // namespace treadle::c
