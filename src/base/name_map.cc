#include "base/name_map.h"

#include <chrono>
#include <cstring>

namespace treadle {

namespace {

uint64_t mix(uint64_t a, uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// 0 to 8 bytes; short ones by their ends, which costs no call.
uint64_t load(const char* p, size_t size) {
  uint64_t word = 0;
  if (size == 8) {
    std::memcpy(&word, p, 8);
  } else if (size >= 4) {
    uint32_t low = 0, high = 0;
    std::memcpy(&low, p, 4);
    std::memcpy(&high, p + size - 4, 4);
    word = uint64_t{high} << 32 | low;
  } else if (size > 0) {
    word = static_cast<uint64_t>(static_cast<uint8_t>(p[0])) << 16 |
           static_cast<uint64_t>(static_cast<uint8_t>(p[size / 2])) << 8 | static_cast<uint8_t>(p[size - 1]);
  }
  return word;
}

}  // namespace

uint64_t process_seed() {
  static const char address = 0;
  static const uint64_t seed =
      mix(reinterpret_cast<uintptr_t>(&address) | 1,
          static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) ^ 0x9e3779b97f4a7c15);
  return seed;
}

uint64_t hash_name(std::string_view name, uint64_t seed) {
  constexpr uint64_t kMultiplier = 0xa0761d6478bd642f;
  const char* p = name.data();
  size_t left = name.size();
  uint64_t hash = seed ^ name.size();
  for (; left > 8; left -= 8, p += 8) hash = mix(hash ^ load(p, 8), kMultiplier);
  return mix(hash ^ load(p, left), kMultiplier ^ seed);
}

}  // namespace treadle
