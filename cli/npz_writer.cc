#include "npz_writer.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>

#include "arrays.h"

namespace cli {

namespace {

constexpr uint32_t kMost = 0xffffffff;  // from here on numbers need the fields of ZIP64

void put(std::string& out, uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(number >> (8 * i) & 0xff);
}

uint32_t crc_of(std::string_view bytes) {
  static const auto table = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t c = i;
      for (int bit = 0; bit < 8; ++bit) c = (c & 1) != 0 ? 0xedb88320 ^ c >> 1 : c >> 1;
      made[i] = c;
    }
    return made;
  }();
  uint32_t crc = kMost;
  for (const char c : bytes) crc = table[(crc ^ static_cast<uint8_t>(c)) & 0xff] ^ crc >> 8;
  return crc ^ kMost;
}

// A name that programs which unpack archives take for no path out of the folder.
std::string safe(std::string name) {
  for (char& c : name) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f || c == '\\') c = '_';
  }
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    if (name.compare(begin, end - begin, "..") == 0) name.replace(begin, 2, "__");
    begin = end + 1;
  }
  return name;
}

// The extra field with those of the numbers that do not fit 32 bits; empty if all do.
std::string large_numbers(std::initializer_list<uint64_t> numbers) {
  std::string fields;
  for (const uint64_t number : numbers) {
    if (number >= kMost) put(fields, number, 8);
  }
  if (fields.empty()) return "";
  std::string out;
  put(out, 1, 2);
  put(out, fields.size(), 2);
  return out + fields;
}

// What the headers of a member have in common, from the version to the lengths of name and extra field.
void put_common(std::string& out, const std::string& name, uint32_t crc, uint64_t size, size_t extra) {
  put(out, 45, 2);          // version: ZIP64
  put(out, 0x0800, 2);      // names are UTF-8
  put(out, 0, 2);           // stored
  put(out, 0x00210000, 4);  // 1980-01-01
  put(out, crc, 4);
  put(out, std::min<uint64_t>(size, kMost), 4);
  put(out, std::min<uint64_t>(size, kMost), 4);
  put(out, name.size(), 2);
  put(out, extra, 2);
}

}  // namespace

void NpzWriter::add(const std::string& name, const treadle::Value& value) {
  const std::string array = write_npy(value);
  Member member{safe(name) + ".npy", crc_of(array), array.size(), bytes_.size()};
  const std::string large = large_numbers({member.size, member.size});
  bytes_ += "PK\x03\x04";
  put_common(bytes_, member.name, member.crc, member.size, large.size());
  bytes_ += member.name + large + array;
  members_.push_back(std::move(member));
}

std::string NpzWriter::finish() {
  const uint64_t directory = bytes_.size();
  for (const Member& member : members_) {
    const std::string large = large_numbers({member.size, member.size, member.offset});
    bytes_ += "PK\x01\x02";
    put(bytes_, 45, 2);  // made by
    put_common(bytes_, member.name, member.crc, member.size, large.size());
    bytes_.append(2 + 2 + 2 + 4, '\0');  // comment, disk, attributes
    put(bytes_, std::min<uint64_t>(member.offset, kMost), 4);
    bytes_ += member.name + large;
  }
  const uint64_t end = bytes_.size();
  bytes_ += "PK\x06\x06";  // the end of the directory, with fields of 64 bits
  put(bytes_, 44, 8);
  put(bytes_, 45, 2);
  put(bytes_, 45, 2);
  put(bytes_, 0, 8);
  put(bytes_, members_.size(), 8);
  put(bytes_, members_.size(), 8);
  put(bytes_, end - directory, 8);
  put(bytes_, directory, 8);
  bytes_ += "PK\x06\x07";
  put(bytes_, 0, 4);
  put(bytes_, end, 8);
  put(bytes_, 1, 4);
  bytes_ += "PK\x05\x06";
  put(bytes_, 0, 4);
  put(bytes_, std::min<uint64_t>(members_.size(), 0xffff), 2);
  put(bytes_, std::min<uint64_t>(members_.size(), 0xffff), 2);
  put(bytes_, std::min<uint64_t>(end - directory, kMost), 4);
  put(bytes_, std::min<uint64_t>(directory, kMost), 4);
  put(bytes_, 0, 2);
  return std::move(bytes_);
}

}  // namespace cli
