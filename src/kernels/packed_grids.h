#pragma once
// The grids of GGUF's formats IQ2 and IQ3: an index selects eight values, or four.

#include <array>
#include <cstdint>

namespace treadle::kernels {

// Eight values of two bits each, the first in the lowest bits: 0 is 8, 1 is 25, 2 is 43.
extern const std::array<uint16_t, 256> kGridIq2Xxs;
extern const std::array<uint16_t, 512> kGridIq2Xs;
extern const std::array<uint16_t, 1024> kGridIq2S;
// Four values of three bits each: 0 is 4, then 12, 20, 28, 36, 44, 52, 62.
extern const std::array<uint16_t, 256> kGridIq3Xxs;

}  // namespace treadle::kernels
