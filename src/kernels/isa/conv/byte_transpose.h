#pragma once
// Copies between planes of bytes and what tiles with channels in the lanes read and make: elements of four channels of
// a position, and results of some channels of a position.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/isa/byte_rounding.h"
#include "kernels/isa/conv/direct_copy.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

#if defined(__AVX2__)

inline constexpr int kTransposed = 16;  // positions at once

// Planes of bytes as [position][four channels]; channels that do not exist are 0.
struct QuadCopy {
  const uint8_t* planes;
  const uint8_t* end;  // of all that may be read
  int64_t plane;       // bytes
  int64_t channels, depth;
  int64_t stride;  // from one position to the next
  bool flip;       // bytes have a sign
  uint8_t padding;

  static constexpr int64_t kRoomBytes = 16 << 10;
  // Positions at once: lines of planes are read whole, and the room stays in the first-level cache.
  static int64_t columns(int64_t depth) {
    return std::clamp<int64_t>(kRoomBytes / (depth * 4) / kTransposed * kTransposed, kTransposed, 4 * kTransposed);
  }
  static int64_t room_bytes(int64_t depth) { return columns(depth) * depth * 4; }

  // `count` neighbours from `at` on.
  void copy(int64_t at, int64_t count, uint32_t* room, uint32_t* to) const {
    const int64_t most = columns(depth);
    for (int64_t first = 0; first < count; first += most) {
      const int64_t n = std::min(most, count - first);
      for (int64_t c = 0; c < depth; ++c) {
        for (int64_t i = 0; i < n; i += kTransposed) quads(c, at + first + i, room + c * most + i);
      }
      transpose_planes(reinterpret_cast<const float*>(room), most, depth, n,
                       reinterpret_cast<float*>(to + first * stride), stride);
    }
  }

  void pad(int64_t count, uint32_t* to) const {
    const uint32_t all = padding * 0x01010101u;
    const int64_t last = channels - (depth - 1) * 4;  // channels of the last element
    const uint32_t partial = last == 4 ? all : all & ((uint32_t{1} << (8 * last)) - 1);
    for (int64_t i = 0; i < count; ++i, to += stride) {
      std::fill_n(to, depth - 1, all);
      to[depth - 1] = partial;
    }
  }

 private:
  // Element c of 16 positions.
  void quads(int64_t c, int64_t at, uint32_t* to) const {
    const __m128i flipped = _mm_set1_epi8(static_cast<char>(flip ? 0x80 : 0));
    __m128i line[4];
    for (int64_t i = 0; i < 4; ++i) {
      line[i] = _mm_setzero_si128();
      if (4 * c + i < channels) line[i] = _mm_xor_si128(bytes(planes + (4 * c + i) * plane + at), flipped);
    }
    const __m128i low = _mm_unpacklo_epi8(line[0], line[1]), high = _mm_unpackhi_epi8(line[0], line[1]);
    const __m128i next_low = _mm_unpacklo_epi8(line[2], line[3]), next_high = _mm_unpackhi_epi8(line[2], line[3]);
    auto* out = reinterpret_cast<__m128i*>(to);
    _mm_storeu_si128(out, _mm_unpacklo_epi16(low, next_low));
    _mm_storeu_si128(out + 1, _mm_unpackhi_epi16(low, next_low));
    _mm_storeu_si128(out + 2, _mm_unpacklo_epi16(high, next_high));
    _mm_storeu_si128(out + 3, _mm_unpackhi_epi16(high, next_high));
  }
  __m128i bytes(const uint8_t* from) const {
    if (end - from >= 16) return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    alignas(16) uint8_t room[16] = {};
    std::memcpy(room, from, static_cast<size_t>(end - from));
    return _mm_load_si128(reinterpret_cast<const __m128i*>(room));
  }
};

// Bytes of 16 positions, of which `n` exist: lane i of `a` has positions 0 to 3 of channel i, of `b` positions 4 to 7,
// and so on. The first `count` channels become rows of y.
TREADLE_ALWAYS_INLINE void put_transposed_quads(NarrowingLanes::Bits a, NarrowingLanes::Bits b, NarrowingLanes::Bits c,
                                                NarrowingLanes::Bits d, int64_t count, int64_t n, uint8_t* y,
                                                int64_t row) {
  using L = NarrowingLanes;
  const L::Bits first = L::unpacklo32(a, b), second = L::unpackhi32(a, b);
  const L::Bits next_first = L::unpacklo32(c, d), next_second = L::unpackhi32(c, d);
  // Register i has channels i, 4 + i, ... in its parts of 128 bits.
  const L::Bits transposed[4] = {L::unpacklo64(first, next_first), L::unpackhi64(first, next_first),
                                 L::unpacklo64(second, next_second), L::unpackhi64(second, next_second)};
  alignas(kVectorBytes) __m128i parts[4][kVectorBytes / 16];
  for (int i = 0; i < 4; ++i) std::memcpy(parts[i], &transposed[i], kVectorBytes);
  for (int64_t channel = 0; channel < count; ++channel, y += row) {
    const __m128i& part = parts[channel % 4][channel / 4];
    if (n == kTransposed) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(y), part);
    } else {
      std::memcpy(y, &part, static_cast<size_t>(n));
    }
  }
}

// As many positions of words, `from` as many channels apart as there are lanes.
inline void put_transposed_words(const float* from, int64_t count, int64_t n, float* y, int64_t row) {
  constexpr int64_t kLanes = Lanes<float>::kCount;
  for (int64_t at = 0; at < n; at += kLanes) {
    transpose_tile(from + at * kLanes, kLanes, std::min(kLanes, n - at), count, y + at, row);
  }
}

#endif

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
