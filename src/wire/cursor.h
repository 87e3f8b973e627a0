#pragma once
// Walks the fields of protobuf messages in place. It replaces protozero's reader because files are not trusted:
// protozero cuts lengths to 32 bits, may read a bool one byte past the end, and throws without a position. A cursor
// keeps the first error. Later calls return zeros, `next()` returns false, and Document::status() says what was wrong,
// at which byte, and in which field, e.g. `byte 1204, graph.node[3].attribute[0].ints`.

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/arena.h"
#include "base/status.h"

namespace treadle::wire {

static_assert(std::endian::native == std::endian::little, "numbers in ONNX files are little-endian");

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct Limits {
  int depth = 256;                           // nesting of messages
  size_t structure_bytes = size_t{2} << 30;  // memory for the parsed structure, without weights
};

// Reads a varint at `position` and moves `position` behind it. False if it does not end before `end`, or is longer than
// ten bytes.
inline bool read_varint(const char*& position, const char* end, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 70 && position != end; shift += 7) {
    const uint8_t byte = static_cast<uint8_t>(*position++);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

class Cursor;

// State that all cursors into one file share.
class Document {
 public:
  Document(std::string_view bytes, Arena& arena, Limits limits = {}) : bytes_(bytes), arena_(arena), limits_(limits) {}

  std::string_view bytes() const { return bytes_; }
  Arena& arena() { return arena_; }  // for the messages that are read
  const Limits& limits() const { return limits_; }
  bool ok() const { return status_.ok(); }
  Status take_status();
  // Counts memory before it is allocated.
  bool charge(const Cursor& at, size_t bytes) {
    charged_ += bytes;
    return charged_ <= next_look_ ? ok() : look(at);
  }
  void fail(const Cursor& at, Code code, std::string_view what);
  // Adds a field to the place of the error. Called after an error on the way out, from the innermost field to the
  // outermost, so that error-free reading needs no paths.
  void failed_in(std::string_view field, size_t index = kNoIndex);

  static constexpr size_t kNoIndex = ~size_t{0};

 private:
  static constexpr size_t kBetweenLooks = size_t{1} << 20;
  // Called after about a megabyte of charges: checks the limit, and whether to stop.
  bool look(const Cursor& at);

  std::string_view bytes_;
  Arena& arena_;
  Limits limits_;
  size_t charged_ = 0, next_look_ = 0;
  Status status_;
  size_t failed_at_ = 0;
  std::string path_;  // the fields around the error
};

class Cursor {
 public:
  explicit Cursor(Document& document)
      : document_(document),
        position_(document.bytes().data()),
        end_(position_ + document.bytes().size()),
        field_begin_(position_) {}
  // A cursor into the message in the parent's current field.
  Cursor(const Cursor& parent, std::string_view bytes)
      : document_(parent.document_),
        depth_(parent.depth_ + 1),
        position_(bytes.data()),
        end_(bytes.data() + bytes.size()),
        field_begin_(position_) {}

  // Moves to the next field; false at the end and after an error. The caller reads or skips exactly one value before
  // the next call.
  [[gnu::always_inline]] bool next() {
    if (position_ == end_ || !document_.ok()) return false;
    field_begin_ = position_;
    const auto first = static_cast<uint8_t>(*position_++);
    tag_ = first;
    if (first >= 0x80) {
      // A tag of two bytes; longer ones take the general path.
      if (position_ != end_ && static_cast<uint8_t>(*position_) - 1u < 0x7f) {
        tag_ = (first & 0x7f) | static_cast<uint32_t>(*position_++) << 7;
      } else if (!read_long_tag()) {
        return false;
      }
    }
    if (tag_ < 8 || !(kWireTypes >> (tag_ & 7) & 1)) return fail_field(tag_), false;
    return true;
  }
  // As next(), but only to a field with the same tag as the last one: the elements of a list follow each other. May
  // return false for tags of several bytes although there is such a field.
  bool next_alike() {
    if (position_ == end_ || *position_ != *field_begin_ || static_cast<uint8_t>(*position_) >= 0x80) return false;
    field_begin_ = position_++;
    return document_.ok();
  }
  void skip();

  uint32_t field() const { return tag_ >> 3; }
  WireType wire_type() const { return static_cast<WireType>(tag_ & 7); }
  const char* field_begin() const { return field_begin_; }  // the address of its tag
  const char* position() const { return position_; }
  Document& document() const { return document_; }
  int depth() const { return depth_; }
  bool too_deep() const { return depth_ > document_.limits().depth; }

  // The value of the current field. Another wire type than the requested one is an error.
  uint64_t varint() {
    uint64_t value = 0;
    if (!expect(WireType::kVarint)) return 0;
    if (position_ != end_ && static_cast<uint8_t>(*position_) < 0x80) return static_cast<uint8_t>(*position_++);
    if (read_varint(position_, end_, value)) return value;
    fail(Code::kInvalidFile, "an integer is cut off or longer than ten bytes");
    return 0;
  }
  [[gnu::always_inline]] std::string_view bytes() {
    if (!expect(WireType::kBytes)) return {};
    uint64_t length = 0;
    if (position_ != end_ && static_cast<uint8_t>(*position_) < 0x80) {
      length = static_cast<uint8_t>(*position_++);
    } else if (!read_length(length)) {
      return {};
    }
    if (length > static_cast<size_t>(end_ - position_)) return fail_length(length), std::string_view();
    const char* begin = position_;
    position_ += length;
    return {begin, static_cast<size_t>(length)};
  }
  // How many fields in a row, from the current one on and at most `most`, have its tag. The cursor does not move. A
  // broken field ends the count.
  size_t count_row(size_t most) const;
  float fixed32() { return fixed<float>(WireType::kFixed32); }
  double fixed64() { return fixed<double>(WireType::kFixed64); }

  void fail(Code code, std::string_view what) { document_.fail(*this, code, what); }

 private:
  static constexpr unsigned kWireTypes = 1u << 0 | 1u << 1 | 1u << 2 | 1u << 5;

  bool expect(WireType type) {
    if (wire_type() == type && document_.ok()) return true;
    fail_type(type);
    return false;
  }
  bool read_long_tag();
  bool read_length(uint64_t& length);
  void fail_type(WireType type);
  void fail_field(uint64_t tag);
  void fail_length(uint64_t length);
  template <class T>
  T fixed(WireType type) {
    T value{};
    if (!expect(type)) return value;
    if (static_cast<size_t>(end_ - position_) < sizeof(T)) {
      fail(Code::kInvalidFile, "a number is cut off by the end of its message");
      return value;
    }
    std::memcpy(&value, position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  Document& document_;
  int depth_ = 0;
  uint32_t tag_ = 0;  // tag of the current field
  const char* position_;
  const char* end_;
  const char* field_begin_;
};

}  // namespace treadle::wire
