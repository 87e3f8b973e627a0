#include "base/memory_fill.h"

#include <charconv>
#include <cstring>

#include "base/knobs.h"

namespace treadle {

std::optional<unsigned char> fill_named(std::string_view text) {
  unsigned char byte = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), byte);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return byte;
}

void fill_fresh(void* data, size_t bytes) {
  static const std::optional<unsigned char> byte = [] {
    const char* text = environment(kFillVariable);
    return text ? fill_named(text) : std::nullopt;
  }();
  if (byte) std::memset(data, *byte, bytes);
}

}  // namespace treadle
