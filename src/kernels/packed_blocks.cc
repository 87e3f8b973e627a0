// Every format is a function from a block to its numbers. A number is a product of parts of the block, computed in
// float in the order of the format's reference implementation, so results have the same bits as other readers'.
#include "kernels/packed_blocks.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>

#include "base/float_formats.h"
#include "kernels/packed_grids.h"

namespace treadle::kernels {

namespace {

template <class T>
T load(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

float half_at(const uint8_t* at) {
  return half_to_float(load<uint16_t>(at));
}

int low(uint8_t byte) {
  return byte & 15;
}
int high(uint8_t byte) {
  return byte >> 4;
}

// --- numbers that are not packed

void unpack_f32(const uint8_t* block, float* y) {
  *y = load<float>(block);
}

void unpack_f16(const uint8_t* block, float* y) {
  *y = half_at(block);
}

void unpack_bf16(const uint8_t* block, float* y) {
  *y = bfloat16_to_float(load<uint16_t>(block));
}

// --- a scale for each block

void unpack_q2_0(const uint8_t* block, float* y) {
  const float scale = half_at(block);
  for (int i = 0; i < 64; ++i) y[i] = static_cast<float>((block[2 + i / 4] >> (2 * (i % 4)) & 3) - 1) * scale;
}

void unpack_q4_0(const uint8_t* block, float* y) {
  const float scale = half_at(block);
  for (int i = 0; i < 16; ++i) {
    y[i] = static_cast<float>(low(block[2 + i]) - 8) * scale;
    y[i + 16] = static_cast<float>(high(block[2 + i]) - 8) * scale;
  }
}

void unpack_q5_0(const uint8_t* block, float* y) {
  const float scale = half_at(block);
  const auto fifth = load<uint32_t>(block + 2);
  for (int i = 0; i < 16; ++i) {
    const int first = low(block[6 + i]) | static_cast<int>(fifth >> i & 1) << 4;
    const int second = high(block[6 + i]) | static_cast<int>(fifth >> (i + 16) & 1) << 4;
    y[i] = static_cast<float>(first - 16) * scale;
    y[i + 16] = static_cast<float>(second - 16) * scale;
  }
}

void unpack_q8_0(const uint8_t* block, float* y) {
  const float scale = half_at(block);
  for (int i = 0; i < 32; ++i) y[i] = static_cast<float>(static_cast<int8_t>(block[2 + i])) * scale;
}

constexpr float kIq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

void unpack_iq4(const uint8_t* bytes, float scale, float* y) {
  for (int i = 0; i < 16; ++i) {
    y[i] = kIq4[low(bytes[i])] * scale;
    y[i + 16] = kIq4[high(bytes[i])] * scale;
  }
}

void unpack_iq4_nl(const uint8_t* block, float* y) {
  unpack_iq4(block + 2, half_at(block), y);
}

// --- blocks of 256 with a scale for each part

void unpack_iq4_xs(const uint8_t* block, float* y) {
  const float scale = half_at(block);
  const auto highs = load<uint16_t>(block + 2);
  for (int part = 0; part < 8; ++part) {
    const int lows = block[4 + part / 2] >> (4 * (part % 2)) & 15;
    const int own = lows | (highs >> (2 * part) & 3) << 4;
    unpack_iq4(block + 8 + 16 * part, scale * static_cast<float>(own - 32), y + 32 * part);
  }
}

// Scale and least number of part `i`; six bits each.
struct ScaleAndLeast {
  float scale, least;
};
ScaleAndLeast scale_and_least(const uint8_t* packed, int i) {
  if (i < 4) return {static_cast<float>(packed[i] & 63), static_cast<float>(packed[i + 4] & 63)};
  return {static_cast<float>(low(packed[i + 4]) | (packed[i - 4] >> 6) << 4),
          static_cast<float>(high(packed[i + 4]) | (packed[i] >> 6) << 4)};
}

void unpack_q5_k(const uint8_t* block, float* y) {
  const float scale = half_at(block), least = half_at(block + 2);
  const uint8_t *const fifth = block + 16, *const bits = block + 48;
  for (int part = 0; part < 8; ++part) {
    const auto own = scale_and_least(block + 4, part);
    const float d = scale * own.scale, m = least * own.least;
    for (int i = 0; i < 32; ++i) {
      const int q = bits[part / 2 * 32 + i] >> (4 * (part % 2)) & 15;
      y[32 * part + i] = d * static_cast<float>(q + ((fifth[i] >> part & 1) << 4)) - m;
    }
  }
}

void unpack_q6_k(const uint8_t* block, float* y) {
  const float scale = half_at(block + 208);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, part = i % 128 / 32, at = i % 32;
    const uint8_t four = block[64 * half + 32 * (part % 2) + at];
    const int two = block[128 + 32 * half + at] >> (2 * part) & 3;
    const auto own = static_cast<int8_t>(block[192 + i / 16]);
    const int q = (part < 2 ? low(four) : high(four)) | two << 4;
    y[i] = scale * static_cast<float>(own) * static_cast<float>(q - 32);
  }
}

// --- grids

constexpr float kIq2[4] = {8, 25, 43, 0};
constexpr float kIq3[8] = {4, 12, 20, 28, 36, 44, 52, 62};

// Unpacks `count` values of a grid, times the scale. A set bit of `negative` makes its value negative.
template <int kBits>
void unpack_grid(uint16_t packed, int count, unsigned negative, float scale, float* y) {
  const float* const values = kBits == 2 ? kIq2 : kIq3;
  for (int i = 0; i < count; ++i) {
    const float value = scale * values[packed >> (kBits * i) & ((1 << kBits) - 1)];
    y[i] = negative >> i & 1 ? -value : value;
  }
}

// Seven signs are stored. The eighth makes the number of negative values even.
unsigned eight_signs(unsigned seven) {
  return seven | static_cast<unsigned>(std::popcount(seven) & 1) << 7;
}

float iq_scale(float scale, unsigned own, float factor) {
  return scale * (0.5f + static_cast<float>(own)) * factor;
}

void unpack_iq2_xxs(const uint8_t* block, float* y) {
  const float scale = half_at(block);
  for (int part = 0; part < 8; ++part) {
    const uint8_t* const indices = block + 2 + 8 * part;
    const auto rest = load<uint32_t>(indices + 4);
    const float own = iq_scale(scale, rest >> 28, 0.25f);
    for (int i = 0; i < 4; ++i) {
      const unsigned signs = eight_signs(rest >> (7 * i) & 127);
      unpack_grid<2>(kGridIq2Xxs[indices[i]], 8, signs, own, y + 32 * part + 8 * i);
    }
  }
}

void unpack_iq2_xs(const uint8_t* block, float* y) {
  const float scale = half_at(block);
  for (int i = 0; i < 32; ++i) {
    const auto packed = load<uint16_t>(block + 2 + 2 * i);
    const unsigned own = block[66 + i / 4] >> (4 * (i % 4 / 2)) & 15;
    unpack_grid<2>(kGridIq2Xs[packed & 511], 8, eight_signs(packed >> 9), iq_scale(scale, own, 0.25f), y + 8 * i);
  }
}

void unpack_iq2_s(const uint8_t* block, float* y) {
  const float scale = half_at(block);
  for (int i = 0; i < 32; ++i) {
    const unsigned own = block[74 + i / 4] >> (4 * (i % 4 / 2)) & 15;
    const unsigned index = block[2 + i] | (block[66 + i / 4] >> (2 * (i % 4)) & 3u) << 8;
    unpack_grid<2>(kGridIq2S[index], 8, block[34 + i], iq_scale(scale, own, 0.25f), y + 8 * i);
  }
}

void unpack_iq3_xxs(const uint8_t* block, float* y) {
  const float scale = half_at(block);
  for (int i = 0; i < 32; ++i) {
    const auto rest = load<uint32_t>(block + 66 + i / 4 * 4);
    const unsigned signs = eight_signs(rest >> (7 * (i % 4)) & 127);
    const float own = iq_scale(scale, rest >> 28, 0.5f);
    unpack_grid<3>(kGridIq3Xxs[block[2 + 2 * i]], 4, signs, own, y + 8 * i);
    unpack_grid<3>(kGridIq3Xxs[block[3 + 2 * i]], 4, signs >> 4, own, y + 8 * i + 4);
  }
}

constexpr PackedFormat kFormats[] = {
    {0, "F32", 1, 4, unpack_f32},
    {1, "F16", 1, 2, unpack_f16},
    {2, "Q4_0", 32, 18, unpack_q4_0},
    {6, "Q5_0", 32, 22, unpack_q5_0},
    {8, "Q8_0", 32, 34, unpack_q8_0},
    {13, "Q5_K", 256, 176, unpack_q5_k},
    {14, "Q6_K", 256, 210, unpack_q6_k},
    {16, "IQ2_XXS", 256, 66, unpack_iq2_xxs},
    {17, "IQ2_XS", 256, 74, unpack_iq2_xs},
    {18, "IQ3_XXS", 256, 98, unpack_iq3_xxs},
    {20, "IQ4_NL", 32, 18, unpack_iq4_nl},
    {22, "IQ2_S", 256, 82, unpack_iq2_s},
    {23, "IQ4_XS", 256, 136, unpack_iq4_xs},
    {30, "BF16", 1, 2, unpack_bf16},
    {42, "Q2_0", 64, 18, unpack_q2_0},
};

}  // namespace

std::span<const PackedFormat> packed_formats() {
  return kFormats;
}

const PackedFormat* packed_format(int64_t id) {
  const auto* const found =
      std::find_if(std::begin(kFormats), std::end(kFormats), [&](const PackedFormat& f) { return f.id == id; });
  return found == std::end(kFormats) ? nullptr : found;
}

}  // namespace treadle::kernels
