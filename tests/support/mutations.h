#pragma once
// Broken variants of a file: truncated at every byte, and with single bits flipped.

#include <cstddef>
#include <string_view>
#include <vector>

namespace treadle {

// fn(std::string_view) gets every prefix, every `stride` bytes, in a buffer that ends where the bytes end, so that an
// address sanitizer sees the first byte read beyond.
template <class Fn>
void for_each_truncation(std::string_view bytes, size_t stride, Fn fn) {
  for (size_t size = 0; size < bytes.size(); size += stride) {
    const std::vector<char> copy(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    fn(std::string_view(copy.data(), copy.size()));
  }
}

// Every `stride`-th bit flipped.
template <class Fn>
void for_each_bit_flip(std::string_view bytes, size_t stride, Fn fn) {
  std::vector<char> copy(bytes.begin(), bytes.end());
  for (size_t bit = 0; bit < bytes.size() * 8; bit += stride) {
    const char flip = static_cast<char>(1 << (bit % 8));
    copy[bit / 8] ^= flip;
    fn(std::string_view(copy.data(), copy.size()));
    copy[bit / 8] ^= flip;
  }
}

}  // namespace treadle
