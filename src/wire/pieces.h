#pragma once
// A message put together from pieces of another one. Pieces are copied only once, when the message is written.

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"

namespace treadle::wire {

class Pieces {
 public:
  size_t size() const { return size_; }  // in bytes
  void copy_to(char* out) const;         // size() bytes
  std::string to_string() const;

  // The bytes of `piece` must outlive this object.
  void add(std::string_view piece) {
    if (piece.empty()) return;
    pieces_.push_back(piece);
    size_ += piece.size();
  }
  void add_copy(std::string_view bytes) { add(arena_.copy(bytes)); }
  struct Mark {
    size_t pieces, bytes;
  };
  Mark mark() const { return {pieces_.size(), size_}; }
  // Removes the pieces that were added since `mark`.
  void back_to(Mark mark) {
    pieces_.resize(mark.pieces);
    size_ = mark.bytes;
  }
  // Pieces between begin_field() and end_field() become a field of bytes. Fields can be nested.
  Mark begin_field() {
    const Mark begin = mark();
    pieces_.emplace_back();
    return begin;
  }
  void end_field(Mark begin, uint32_t number);

 private:
  std::string_view head(uint32_t number, size_t length);

  std::vector<std::string_view> pieces_;
  size_t size_ = 0;
  Arena arena_;  // for bytes that are not pieces of the other message
};

}  // namespace treadle::wire
