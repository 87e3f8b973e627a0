#pragma once
// Protobuf bytes by hand, for tests: independent of the reader and the writer under test.

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace treadle {

class ProtoBytes {
 public:
  ProtoBytes& varint(uint32_t field, uint64_t value) {
    tag(field, 0);
    return raw(value);
  }
  ProtoBytes& bytes(uint32_t field, std::string_view value) {
    tag(field, 2);
    raw(value.size());
    bytes_ += value;
    return *this;
  }
  ProtoBytes& message(uint32_t field, const ProtoBytes& value) { return bytes(field, value.str()); }
  ProtoBytes& fixed32(uint32_t field, float value) {
    tag(field, 5);
    return little_endian(std::bit_cast<uint32_t>(value), 4);
  }
  ProtoBytes& fixed64(uint32_t field, double value) {
    tag(field, 1);
    return little_endian(std::bit_cast<uint64_t>(value), 8);
  }
  ProtoBytes& tag(uint32_t field, uint32_t wire_type) { return raw(uint64_t{field} << 3 | wire_type); }
  ProtoBytes& raw(uint64_t value) {  // a varint without a tag
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
    return *this;
  }
  ProtoBytes& append(std::string_view value) {
    bytes_ += value;
    return *this;
  }
  const std::string& str() const { return bytes_; }

 private:
  ProtoBytes& little_endian(uint64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes_ += static_cast<char>(value >> (8 * i));
    return *this;
  }

  std::string bytes_;
};

template <class T>
std::string raw_bytes(std::initializer_list<T> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T)};
}

}  // namespace treadle
