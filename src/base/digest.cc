#include "base/digest.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace treadle {

namespace {

constexpr std::array<uint64_t, 8> kStart = {0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b,
                                            0xa54ff53a5f1d36f1, 0x510e527fade682d1, 0x9b05688c2b3e6c1f,
                                            0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};

// By round: the message words that each half of a mixing takes. The last two rounds repeat the first two.
constexpr uint8_t kOrder[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
};

[[gnu::always_inline]] inline void mix(uint64_t* v, size_t a, size_t b, size_t c, size_t d, uint64_t x, uint64_t y) {
  v[a] += v[b] + x;
  v[d] = std::rotr(v[d] ^ v[a], 32);
  v[c] += v[d];
  v[b] = std::rotr(v[b] ^ v[c], 24);
  v[a] += v[b] + y;
  v[d] = std::rotr(v[d] ^ v[a], 16);
  v[c] += v[d];
  v[b] = std::rotr(v[b] ^ v[c], 63);
}

// With the order of words known at compile time, the whole state stays in registers.
template <size_t kRound>
void run_round(uint64_t* v, const uint64_t* words) {
  constexpr const auto& order = kOrder[kRound % 10];
  mix(v, 0, 4, 8, 12, words[order[0]], words[order[1]]);
  mix(v, 1, 5, 9, 13, words[order[2]], words[order[3]]);
  mix(v, 2, 6, 10, 14, words[order[4]], words[order[5]]);
  mix(v, 3, 7, 11, 15, words[order[6]], words[order[7]]);
  mix(v, 0, 5, 10, 15, words[order[8]], words[order[9]]);
  mix(v, 1, 6, 11, 12, words[order[10]], words[order[11]]);
  mix(v, 2, 7, 8, 13, words[order[12]], words[order[13]]);
  mix(v, 3, 4, 9, 14, words[order[14]], words[order[15]]);
}

uint64_t load_word(const uint8_t* at) {
  uint64_t word = 0;
  for (int i = 7; i >= 0; --i) word = word << 8 | at[i];
  return word;
}

}  // namespace

std::string to_hex(const Digest& digest) {
  std::string text;
  for (const uint8_t byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

Digester::Digester() : state_(kStart) {
  state_[0] ^= 0x01010000 ^ sizeof(Digest);
}

void Digester::compress(const uint8_t* block, bool last) {
  uint64_t words[16];
  for (size_t i = 0; i < 16; ++i) words[i] = load_word(block + 8 * i);
  uint64_t v[16];
  std::copy(state_.begin(), state_.end(), v);
  std::copy(kStart.begin(), kStart.end(), v + 8);
  v[12] ^= count_;
  if (last) v[14] = ~v[14];
  [&]<size_t... kRound>(std::index_sequence<kRound...>) {
    (run_round<kRound>(v, words), ...);
  }(std::make_index_sequence<12>());
  for (size_t i = 0; i < 8; ++i) state_[i] ^= v[i] ^ v[i + 8];
}

// finish() compresses the last block, so a full block waits for further bytes.
Digester& Digester::add(std::span<const std::byte> bytes) {
  const auto* at = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t left = bytes.size();
  while (left > 0) {
    if (filled_ == kBlock) {
      count_ += kBlock;
      compress(buffer_.data(), false);
      filled_ = 0;
    }
    const size_t take = std::min(left, kBlock - filled_);
    std::memcpy(buffer_.data() + filled_, at, take);
    filled_ += take;
    at += take;
    left -= take;
  }
  return *this;
}

Digest Digester::finish() {
  count_ += filled_;
  std::fill(buffer_.begin() + static_cast<std::ptrdiff_t>(filled_), buffer_.end(), uint8_t{0});
  compress(buffer_.data(), true);
  Digest digest;
  for (size_t i = 0; i < digest.size(); ++i) digest[i] = static_cast<uint8_t>(state_[i / 8] >> (8 * (i % 8)));
  return digest;
}

}  // namespace treadle
