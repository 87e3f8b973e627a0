#pragma once
// Digests of contents (BLAKE2b, RFC 7693, without a key). Collisions cannot be found on purpose.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace treadle {

using Digest = std::array<uint8_t, 32>;

std::string to_hex(const Digest& digest);

class Digester {
 public:
  Digester();

  Digester& add(std::span<const std::byte> bytes);
  Digester& add(std::string_view text) { return number(text.size()).add(std::as_bytes(std::span(text))); }
  // Numbers, bools and enumerators as variable-length integers: seven bits a byte, lowest first.
  template <class T>
    requires(std::is_integral_v<T> || std::is_enum_v<T>)
  Digester& number(T value) {
    constexpr size_t kMost = 10;
    const auto wide = static_cast<uint64_t>(value);
    if (filled_ + kMost <= kBlock) {  // most of the input is numbers; this makes them twice as fast
      filled_ += put_number(wide, buffer_.data() + filled_);
      return *this;
    }
    std::array<uint8_t, kMost> bytes;
    return add(std::as_bytes(std::span(bytes).first(put_number(wide, bytes.data()))));
  }
  // May be called once.
  Digest finish();

 private:
  static constexpr size_t kBlock = 128;
  static size_t put_number(uint64_t rest, uint8_t* to) {
    size_t count = 0;
    for (; rest >= 0x80; rest >>= 7) to[count++] = static_cast<uint8_t>(rest | 0x80);
    to[count++] = static_cast<uint8_t>(rest);
    return count;
  }
  void compress(const uint8_t* block, bool last);

  std::array<uint64_t, 8> state_;
  uint64_t count_ = 0;
  size_t filled_ = 0;
  std::array<uint8_t, kBlock> buffer_{};
};

}  // namespace treadle
