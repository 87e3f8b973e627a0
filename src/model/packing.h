#pragma once
// Elements narrower than a byte. Files pack them from the low bits of each byte up, across bytes. In memory each
// element has a byte; signed ones are sign-extended.

#include <cstddef>
#include <cstdint>

#include "type/element_type.h"

namespace treadle::model {

// Bytes of `count` packed elements.
inline size_t packed_bytes(ElementType type, size_t count) {
  const size_t bits = info(type).file_bits;
  return count / 8 * bits + (count % 8 * bits + 7) / 8;
}

inline void unpack(ElementType type, const uint8_t* packed, size_t count, uint8_t* elements) {
  const unsigned bits = info(type).file_bits;
  const unsigned mask = (1u << bits) - 1;
  const unsigned sign = is_signed_integer(type) ? 1u << (bits - 1) : 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t bit = i * bits;
    unsigned window = packed[bit / 8];
    if (bit % 8 + bits > 8) window |= static_cast<unsigned>(packed[bit / 8 + 1]) << 8;
    elements[i] = static_cast<uint8_t>(((window >> (bit % 8) & mask) ^ sign) - sign);
  }
}

// `packed` must be zero at first.
inline void pack(ElementType type, const uint8_t* elements, size_t count, uint8_t* packed) {
  const unsigned bits = info(type).file_bits;
  for (size_t i = 0; i < count; ++i) {
    const size_t bit = i * bits;
    const unsigned window = (elements[i] & ((1u << bits) - 1)) << (bit % 8);
    packed[bit / 8] |= static_cast<uint8_t>(window);
    if (bit % 8 + bits > 8) packed[bit / 8 + 1] |= static_cast<uint8_t>(window >> 8);
  }
}

}  // namespace treadle::model
