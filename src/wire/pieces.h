#pragma once
// A message made of pieces of another one: what stays is not copied before the whole is written.

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"

namespace treadle::wire {

class Pieces {
 public:
  size_t size() const { return size_; }  // bytes
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
  // Takes back what was added since.
  void back_to(Mark mark) {
    pieces_.resize(mark.pieces);
    size_ = mark.bytes;
  }
  // What is added between begin_field() and end_field() becomes a field of bytes. Fields may lie in fields.
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
  Arena arena_;  // of what is no piece of the other message
};

}  // namespace treadle::wire
