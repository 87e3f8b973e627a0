#pragma once
// Digests of contents (BLAKE2b, RFC 7693, without a key): what differs has another one, also where somebody looks for
// two that have the same.

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
  // Numbers, bools and enumerators: seven bits a byte, from the lowest on, as many as it takes.
  template <class T>
    requires(std::is_integral_v<T> || std::is_enum_v<T>)
  Digester& number(T value) {
    auto rest = static_cast<uint64_t>(value);
    std::array<std::byte, 10> bytes;
    size_t count = 0;
    for (; rest >= 0x80; rest >>= 7) bytes[count++] = static_cast<std::byte>(rest | 0x80);
    bytes[count++] = static_cast<std::byte>(rest);
    return add(std::span(bytes).first(count));
  }
  // May be called once.
  Digest finish();

 private:
  static constexpr size_t kBlock = 128;
  void compress(const uint8_t* block, bool last);

  std::array<uint64_t, 8> state_;
  uint64_t count_ = 0;
  size_t filled_ = 0;
  std::array<uint8_t, kBlock> buffer_{};
};

}  // namespace treadle
