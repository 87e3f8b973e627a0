#include "base/name_map.h"

#include <chrono>
#include <cstring>

namespace treadle {

namespace {

uint64_t mix(uint64_t a, uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// Loads 0 to 8 bytes. Short names are loaded from both ends, without a call.
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
  constexpr uint64_t kOther = 0xe7037ed1a0b428db;
  const char* p = name.data();
  size_t left = name.size();
  const uint64_t secret = kMultiplier ^ seed;  // made from the seed, or a name could contain a word that makes a factor
                                               // zero
  uint64_t hash = seed ^ left;
  if (left <= 8) return mix(hash ^ load(p, left), secret);
  // Two words a step. The last step takes the last sixteen bytes, or all of a short name; they may overlap the step
  // before.
  for (; left > 16; left -= 16, p += 16) hash = mix(load(p, 8) ^ kOther ^ hash, load(p + 8, 8) ^ secret);
  const size_t total = name.size();
  const char* end = name.data() + total;
  const char* low = total >= 16 ? end - 16 : name.data();
  hash = mix(load(low, 8) ^ kOther ^ hash, load(end - 8, 8) ^ secret);
  return mix(hash, secret);
}

}  // namespace treadle
