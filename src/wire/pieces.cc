#include "wire/pieces.h"

#include <protozero/varint.hpp>

#include "wire/cursor.h"

namespace treadle::wire {

std::string_view Pieces::head(uint32_t number, size_t length) {
  char bytes[2 * protozero::max_varint_length];
  char* end = bytes;
  end += protozero::add_varint_to_buffer(end, number << 3 | static_cast<uint32_t>(WireType::kBytes));
  end += protozero::add_varint_to_buffer(end, length);
  return arena_.copy({bytes, static_cast<size_t>(end - bytes)});
}

void Pieces::end_field(Mark begin, uint32_t number) {
  std::string_view& piece = pieces_[begin.pieces];
  piece = head(number, size_ - begin.bytes);
  size_ += piece.size();
}

void Pieces::copy_to(char* out) const {
  for (const std::string_view piece : pieces_) {
    std::memcpy(out, piece.data(), piece.size());
    out += piece.size();
  }
}

std::string Pieces::to_string() const {
  std::string bytes;
  bytes.reserve(size_);
  for (const std::string_view piece : pieces_) bytes.append(piece);
  return bytes;
}

}  // namespace treadle::wire
