#include "wire/flat_buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace treadle::wire {
namespace {

template <class T>
void put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// A root table of one field, which refers to a list of `count` references to one text of `size` bytes.
std::string texts(uint32_t count, uint32_t size) {
  std::string bytes;
  put<uint32_t>(bytes, 12);     // position of the root
  put<uint16_t>(bytes, 6);      // its list of fields: bytes of the list,
  put<uint16_t>(bytes, 8);      // bytes of the table,
  put<uint16_t>(bytes, 4);      // and the field's position
  put<uint16_t>(bytes, 0);      // alignment
  put<int32_t>(bytes, 8);       // the table: distance back to its list of fields
  put<uint32_t>(bytes, 4);      // the field: distance to the list of references
  put<uint32_t>(bytes, count);  // the list
  const uint32_t text = 24 + 4 * count;
  for (uint32_t i = 0; i < count; ++i) put<uint32_t>(bytes, text - (24 + 4 * i));
  put<uint32_t>(bytes, size);
  return bytes + std::string(size, 'x');
}

TEST(FlatBuffer, Reads) {
  const std::string bytes = texts(3, 5);
  FlatBuffer buffer(bytes);
  const FlatBuffer::Table root = buffer.root();
  ASSERT_TRUE(root);
  const FlatBuffer::Vector list = buffer.references(root, 0);
  ASSERT_EQ(list.count, 3u);
  for (uint32_t i = 0; i < list.count; ++i) EXPECT_EQ(buffer.text(list, i), "xxxxx");
  EXPECT_FALSE(buffer.has(root, 1));
  EXPECT_EQ(buffer.number<int64_t>(root, 7, -4), -4);
  EXPECT_EQ(buffer.text(root, 1), "");
  EXPECT_TRUE(buffer.take_status().ok());
}

TEST(FlatBuffer, LimitsHowOftenAPartIsReadAgain) {
  const std::string bytes = texts(100'000, 1'000'000);
  FlatBuffer buffer(bytes);
  const FlatBuffer::Vector list = buffer.references(buffer.root(), 0);
  uint32_t read = 0;
  while (read < list.count && buffer.ok()) buffer.text(list, read++);
  EXPECT_LT(read, 20u);
  EXPECT_EQ(buffer.take_status().code(), Code::kLimit);
}

TEST(FlatBuffer, RefusesOffsetsOutsideOfTheBuffer) {
  const std::string whole = texts(3, 5);
  for (size_t size = 0; size < whole.size(); ++size) {
    FlatBuffer buffer(std::string_view(whole).substr(0, size));
    const FlatBuffer::Vector list = buffer.references(buffer.root(), 0);
    for (uint32_t i = 0; i < list.count; ++i) buffer.text(list, i);
    const Status status = buffer.take_status();
    EXPECT_EQ(status.code(), Code::kInvalidFile) << size;
    EXPECT_THAT(status.place(), testing::StartsWith("byte ")) << size;
  }
}

}  // namespace
}  // namespace treadle::wire
