#include <immintrin.h>

#include <algorithm>

#include "yard.h"

YARDSTICK void run_decoder(int64_t n, const uint8_t* stream, uint8_t* mode, uint8_t* left, uint32_t* hash,
                           int8_t* level, uint8_t* last, uint8_t* decoded) {
  uint8_t m = 0, l = 0, p = 0;
  uint32_t h = 2166136261u;
  int8_t v = 0;
  for (int64_t i = 0; i < n; ++i) {
    const uint8_t x = stream[i];
    const bool begins = l == 0;
    const uint8_t byte = m < 8 ? x : x ^ p;
    m = begins ? x >> 4 : m;
    l = begins ? x & 15 : l - 1;
    p = begins ? 0 : byte;
    decoded[i] = p;
    h = (h ^ p) * 16777619u;
    v = static_cast<int8_t>(v + static_cast<int8_t>(byte));
  }
  *mode = m;
  *left = l;
  *hash = h;
  *level = v;
  *last = p;
}

YARDSTICK void crc16(int64_t n, const uint8_t* message, const uint8_t* high, const uint8_t* low, uint16_t* last,
                     uint16_t* all) {
  uint16_t c = 0xffff;
  for (int64_t i = 0; i < n; ++i) {
    const uint8_t at = static_cast<uint8_t>(c) ^ message[i];
    c = static_cast<uint16_t>((c >> 8) ^ (high[at] << 8 | low[at]));
    all[i] = c;
  }
  *last = c;
}

YARDSTICK void fixed_point_filter(int64_t n, const int16_t* samples, const int32_t* b0, const int32_t* b1,
                                  const int32_t* b2, const int32_t* a1, const int32_t* a2, int16_t* a, int16_t* b,
                                  int16_t* c, int16_t* d, int16_t* filtered) {
  int16_t x1 = 0, x2 = 0, y1 = 0, y2 = 0;
  const int32_t c0 = *b0, c1 = *b1, c2 = *b2, d1 = *a1, d2 = *a2;
  for (int64_t i = 0; i < n; ++i) {
    const int32_t sum = samples[i] * c0 + x1 * c1 + x2 * c2 - y1 * d1 - y2 * d2;
    const auto y = static_cast<int16_t>(std::clamp(sum / 16384, -32768, 32767));
    x2 = x1;
    x1 = samples[i];
    y2 = y1;
    y1 = y;
    filtered[i] = y;
  }
  *a = x1;
  *b = x2;
  *c = y1;
  *d = y2;
}

YARDSTICK void blended_pixels(int64_t n, int64_t width, const uint8_t* frames, const uint8_t* start,
                              uint8_t* __restrict last) {
  std::memcpy(last, start, static_cast<size_t>(width));
  for (int64_t i = 0; i < n; ++i, frames += width) {
    for (int64_t j = 0; j < width; ++j) last[j] = static_cast<uint8_t>((last[j] * 3 + frames[j]) / 4);
  }
}

// Every operation rounds, as those of the model do. clang does not vectorise loops over _Float16 by itself.
namespace {

__m256 rounded(__m256 x) {
  return _mm256_cvtph_ps(_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}

__m256 half_step(__m256 s, __m256 x, __m256 decay, __m256 most) {
  const __m256 sum = rounded(_mm256_add_ps(rounded(_mm256_mul_ps(s, decay)), x));
  const __m256 size = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), sum);
  return rounded(_mm256_sub_ps(sum, _mm256_min_ps(size, most)));
}

__m256 load_halves(const _Float16* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}

}  // namespace

YARDSTICK void half_vectors(int64_t n, int64_t width, const _Float16* xs, const _Float16* start, const _Float16* decay,
                            const _Float16* most, _Float16* last) {
  const __m256 factor = _mm256_set1_ps(static_cast<float>(*decay)), limit = _mm256_set1_ps(static_cast<float>(*most));
  __m256 state[8];
  for (int64_t j = 0; j < width / 8; ++j) state[j] = load_halves(start + 8 * j);
  for (int64_t i = 0; i < n; ++i, xs += width) {
    for (int64_t j = 0; j < width / 8; ++j) state[j] = half_step(state[j], load_halves(xs + 8 * j), factor, limit);
  }
  for (int64_t j = 0; j < width / 8; ++j) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(last + 8 * j), _mm256_cvtps_ph(state[j], _MM_FROUND_TO_NEAREST_INT));
  }
}

YARDSTICK void half_numbers(int64_t n, const _Float16* xs, const _Float16* start, const _Float16* decay,
                            const _Float16* most, _Float16* last) {
  _Float16 s = *start;
  const _Float16 factor = *decay, limit = *most;
  for (int64_t i = 0; i < n; ++i) {
    const auto kept = static_cast<_Float16>(s * factor);
    const auto sum = static_cast<_Float16>(kept + xs[i]);
    const _Float16 size = sum < 0 ? -sum : sum;
    s = static_cast<_Float16>(sum - (size < limit ? size : limit));
  }
  *last = s;
}
