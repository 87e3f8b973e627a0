#pragma once
// Reads FlatBuffers without a schema: tables with numbered fields, vectors, texts. Every offset and length is checked
// against the file before it is followed. The sum of all reads is limited, since a hostile file may refer to one part
// many times. After the first error everything reads as absent, so the caller checks once, at the end.

#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace treadle::wire {

class FlatBuffer {
 public:
  // A table; if `at` is 0 it is absent and has no fields.
  struct Table {
    uint32_t at = 0, fields_at = 0, fields_end = 0;  // byte offsets in the buffer
    explicit operator bool() const { return at != 0; }
  };
  // `count` elements from byte offset `at` on.
  struct Vector {
    uint32_t at = 0, count = 0;
  };

  explicit FlatBuffer(std::string_view bytes);

  bool ok() const { return status_.ok(); }
  // Errors: kInvalidFile with the byte of the first error; kLimit if parts are read too often.
  Status take_status() { return std::move(status_); }
  // Reports an error that the caller found.
  void fail(std::string_view message, size_t at);

  Table root();
  Table table(const Table& table, unsigned field) { return table_at(reference(table, field)); }
  std::string_view text(const Table& table, unsigned field) { return text_at(reference(table, field)); }
  // The number in a field, or `fallback` if there is no field: FlatBuffers leaves out fields with the schema's default.
  template <class T>
  T number(const Table& table, unsigned field, T fallback = {}) {
    const uint32_t at = place(table, field, sizeof(T));
    return at ? load<T>(at) : fallback;
  }
  bool has(const Table& table, unsigned field) { return place(table, field, 1) != 0; }

  // Vectors of tables and texts hold references of four bytes each.
  Vector references(const Table& table, unsigned field) { return vector_at(reference(table, field), sizeof(uint32_t)); }
  Table table(const Vector& vector, uint32_t i) { return table_at(follow(vector.at + i * 4)); }
  std::string_view text(const Vector& vector, uint32_t i) { return text_at(follow(vector.at + i * 4)); }
  template <class T>
  Vector numbers(const Table& table, unsigned field) {
    return vector_at(reference(table, field), sizeof(T));
  }
  template <class T>
  T number(const Vector& vector, uint32_t i) const {
    return load<T>(vector.at + i * sizeof(T));
  }
  std::string_view bytes(const Vector& vector) const { return bytes_.substr(vector.at, vector.count); }

 private:
  template <class T>
  T load(size_t at) const {
    T value;
    std::memcpy(&value, bytes_.data() + at, sizeof(T));
    return value;
  }
  bool inside(uint64_t at, uint64_t size) const { return at <= bytes_.size() && size <= bytes_.size() - at; }
  // Subtracts `cost` from the reads that are left. False if there are too few.
  bool charge(uint64_t cost, size_t at);
  uint32_t place(const Table& table, unsigned field, size_t size);  // 0: absent
  uint32_t reference(const Table& table, unsigned field);           // the position that the field refers to; 0: absent
  uint32_t follow(uint32_t at);
  Table table_at(uint32_t at);
  Vector vector_at(uint32_t at, size_t element_size);
  std::string_view text_at(uint32_t at);

  std::string_view bytes_;
  uint64_t budget_;
  Status status_;
};

}  // namespace treadle::wire
