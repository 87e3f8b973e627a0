#include "model/tensor_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/model_bytes.h"
#include "support/temp_dir.h"
#include "wire/parse.h"

namespace treadle::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<Tensor> read(const ProtoBytes& bytes, std::vector<std::string> folders = {}) {
  auto file = wire::MappedFile::own(bytes.str());
  auto proto = wire::parse_tensor(file->bytes());
  EXPECT_TRUE(proto.ok());
  return TensorReader(file, std::move(folders)).read(**proto);
}

ProtoBytes header(uint64_t type, const std::vector<int64_t>& dims) {
  ProtoBytes bytes;
  for (const int64_t dim : dims) bytes.varint(1, static_cast<uint64_t>(dim));
  return bytes.varint(2, type);
}

ProtoBytes varints(const std::vector<int64_t>& values) {
  ProtoBytes bytes;
  for (const int64_t value : values) bytes.raw(static_cast<uint64_t>(value));
  return bytes;
}

template <class T>
std::vector<T> values(const Result<Tensor>& tensor) {
  EXPECT_TRUE(tensor.ok()) << tensor.error().to_string();
  return {tensor->data<T>(), tensor->data<T>() + tensor->element_count()};
}

TEST(TensorReader, ReadsTypedFields) {
  EXPECT_THAT(values<float>(read(header(1, {2}).bytes(4, raw_bytes<float>({1, 2})))), ElementsAre(1, 2));
  EXPECT_THAT(values<float>(read(header(1, {2}).fixed32(4, 1).fixed32(4, 2))), ElementsAre(1, 2));
  EXPECT_THAT(values<double>(read(header(11, {2}).fixed64(10, 1).fixed64(10, 2))), ElementsAre(1, 2));
  EXPECT_THAT(values<int64_t>(read(header(7, {2}).bytes(7, varints({-1, 1 << 20}).str()))), ElementsAre(-1, 1 << 20));
  EXPECT_THAT(values<uint64_t>(read(header(13, {1}).varint(11, ~uint64_t{0}))), ElementsAre(~uint64_t{0}));
  EXPECT_THAT(values<uint32_t>(read(header(12, {2}).varint(11, 7).varint(11, UINT32_MAX))), ElementsAre(7, UINT32_MAX));
  EXPECT_THAT(values<int32_t>(read(header(6, {1}).varint(5, static_cast<uint64_t>(-5)))), ElementsAre(-5));
  EXPECT_THAT(values<int8_t>(read(header(3, {2}).bytes(5, varints({-128, 127}).str()))), ElementsAre(-128, 127));
  EXPECT_THAT(values<uint16_t>(read(header(10, {1}).varint(5, 0x3c00))), ElementsAre(0x3c00));
  EXPECT_THAT(values<uint8_t>(read(header(17, {1}).varint(5, 0xff))), ElementsAre(0xff));
  EXPECT_THAT(values<uint8_t>(read(header(9, {3}).bytes(5, varints({0, 1, 2}).str()))), ElementsAre(0, 1, 1));
  EXPECT_THAT(values<String>(read(header(8, {2}).bytes(6, "a").bytes(6, std::string("\0b", 2)))),
              ElementsAre("a", std::string_view("\0b", 2)));
}

TEST(TensorReader, ReadsComplexNumbersAsPairs) {
  EXPECT_EQ(read(header(14, {1}).bytes(4, raw_bytes<float>({1, 2})))->data<float>()[1], 2);
  EXPECT_EQ(read(header(15, {1}).bytes(10, raw_bytes<double>({1, 2})))->data<double>()[1], 2);
  EXPECT_FALSE(read(header(14, {2}).bytes(4, raw_bytes<float>({1, 2}))).ok());
}

TEST(TensorReader, UnpacksNarrowElements) {
  EXPECT_THAT(values<int8_t>(read(header(22, {3}).bytes(9, "\x8f\x07"))), ElementsAre(-1, -8, 7));
  EXPECT_THAT(values<uint8_t>(read(header(21, {3}).bytes(9, "\x8f\x07"))), ElementsAre(15, 8, 7));
  EXPECT_THAT(values<int8_t>(read(header(22, {3}).varint(5, 0x8f).varint(5, 7))), ElementsAre(-1, -8, 7));
  EXPECT_THAT(values<uint8_t>(read(header(25, {5}).bytes(9, "\xe4\x03"))), ElementsAre(0, 1, 2, 3, 3));
  EXPECT_THAT(values<int8_t>(read(header(26, {5}).bytes(9, "\xe4\x03"))), ElementsAre(0, 1, -2, -1, -1));
  EXPECT_THAT(values<uint8_t>(read(header(23, {2}).bytes(9, "\x21"))), ElementsAre(1, 2));
  // Six bits: 1, 2, 3, 63 and 5 across bytes.
  EXPECT_THAT(values<uint8_t>(read(header(27, {5}).bytes(9, "\x81\x30\xfc\x05"))), ElementsAre(1, 2, 3, 63, 5));
  EXPECT_THAT(values<uint8_t>(read(header(28, {2}).varint(5, 1).varint(5, 64 + 63))), ElementsAre(1, 63));
  EXPECT_FALSE(read(header(22, {3}).bytes(9, "\x8f")).ok());
  EXPECT_FALSE(read(header(22, {3}).varint(5, 0x8f)).ok());
}

TEST(TensorReader, LeavesAlignedDataInTheFileAndCopiesTheRest) {
  // Fields before raw_data shift its first byte.
  int views = 0;
  for (size_t shift = 0; shift < 4; ++shift) {
    ProtoBytes bytes = header(1, {2}).bytes(8, std::string(shift, 'n')).bytes(9, raw_bytes<float>({1, 2}));
    auto file = wire::MappedFile::own(bytes.str());
    auto proto = wire::parse_tensor(file->bytes());
    ASSERT_TRUE(proto.ok());
    auto tensor = TensorReader(file, {}).read(**proto);
    EXPECT_THAT(values<float>(tensor), ElementsAre(1, 2));
    const bool view = tensor->raw() == (*proto)->raw_data->data();
    views += view;
    EXPECT_EQ(view, reinterpret_cast<uintptr_t>((*proto)->raw_data->data()) % 4 == 0);
    EXPECT_FALSE(tensor->buffer()->writable()) << "small copies share memory";
  }
  EXPECT_EQ(views, 1);
}

TEST(TensorReader, LeavesComplexNumbersInTheFileWhereWordsAreAligned) {
  for (size_t shift = 0; shift < 8; ++shift) {
    auto file = wire::MappedFile::own(
        header(14, {1}).bytes(8, std::string(shift, 'n')).bytes(9, raw_bytes<float>({1, 2})).str());
    auto proto = wire::parse_tensor(file->bytes());
    ASSERT_TRUE(proto.ok());
    auto tensor = TensorReader(file, {}).read(**proto);
    ASSERT_TRUE(tensor.ok());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor->raw()) % 8, 0u);
  }
}

TEST(TensorReader, MakesBoolsOfRawBytes) {
  EXPECT_THAT(values<uint8_t>(read(header(9, {3}).bytes(9, std::string("\0\x02\x01", 3)))), ElementsAre(0, 1, 1));
}

TEST(TensorReader, ReadsTensorsWithoutElements) {
  auto tensor = read(header(1, {0, 3}));
  ASSERT_TRUE(tensor.ok()) << tensor.error().to_string();
  EXPECT_EQ(tensor->element_count(), 0);
  EXPECT_TRUE(read(header(7, {0}).bytes(9, "")).ok());
}

TEST(TensorReader, RefusesDataThatDoesNotFitTheShape) {
  const struct {
    ProtoBytes bytes;
    std::string expected;
  } cases[] = {
      {header(1, {3}).bytes(9, raw_bytes<float>({1})), "expected 12 bytes for float[3], found 4"},
      {header(1, {3}).bytes(4, raw_bytes<float>({1})), "expected 3 values in float_data for float[3], found 1"},
      {header(1, {3}).bytes(10, raw_bytes<double>({1, 2, 3})), "in float_data for float[3], found 0"},
      {header(8, {1}).bytes(9, "a"), "strings cannot be stored as raw data"},
      {header(1, {-2}), "sizes of 0 or more"},
      {header(1, {int64_t{1} << 32, int64_t{1} << 32}), ""},
      {header(1, {int64_t{1} << 50}), "found 0"},
      {header(1, {int64_t{1} << 40, int64_t{1} << 40, 0}), "more elements than can be addressed"},
      {header(1, std::vector<int64_t>(65, 1)), "at most 64 dimensions"},
      {header(0, {1}), "expected an element type, found number 0"},
      {header(29, {1}), "found number 29"},
      {header(7, {2}).bytes(7, "\x01\xff"), "are cut off"},
      {header(1, {1}).bytes(3, "").bytes(9, raw_bytes<float>({1})), "segments"},
  };
  for (const auto& [bytes, expected] : cases) {
    auto tensor = read(bytes);
    ASSERT_FALSE(tensor.ok()) << expected;
    EXPECT_THAT(tensor.error().message(), HasSubstr(expected));
  }
}

class ExternalTensor : public ::testing::Test {
 protected:
  ExternalTensor() { dir_.write("w.bin", std::string(8, 'p') + raw_bytes<float>({1, 2, 3})); }

  Result<Tensor> read_external(const std::vector<std::pair<std::string, std::string>>& entries, int64_t size) {
    ProtoBytes bytes = header(1, {size}).varint(14, 1);
    for (const auto& [key, value] : entries) bytes.message(13, ProtoBytes().bytes(1, key).bytes(2, value));
    return read(bytes, {std::filesystem::canonical(dir_.path()).string()});
  }

  TempDir dir_;
};

TEST_F(ExternalTensor, IsMapped) {
  auto tensor = read_external({{"location", "w.bin"}, {"offset", "8"}, {"length", "8"}, {"checksum", "?"}}, 2);
  EXPECT_THAT(values<float>(tensor), ElementsAre(1, 2));
  EXPECT_FALSE(tensor->buffer()->writable());
  EXPECT_THAT(values<float>(read_external({{"location", "w.bin"}, {"offset", "8"}}, 3)), ElementsAre(1, 2, 3));
}

TEST_F(ExternalTensor, IsCheckedAgainstItsFile) {
  const auto message = [&](const std::vector<std::pair<std::string, std::string>>& entries) {
    auto tensor = read_external(entries, 2);
    return tensor.ok() ? "ok" : tensor.error().message();
  };
  EXPECT_THAT(message({{"location", "w.bin"}, {"offset", "21"}}), HasSubstr("starts at byte 21"));
  EXPECT_THAT(message({{"location", "w.bin"}, {"offset", "8"}, {"length", "13"}}), HasSubstr("claims 13 bytes"));
  EXPECT_THAT(message({{"location", "w.bin"}, {"length", "18446744073709551615"}}), HasSubstr("claims"));
  EXPECT_THAT(message({{"location", "w.bin"}, {"length", "18446744073709551616"}}), HasSubstr("expected a number"));
  EXPECT_THAT(message({{"location", "w.bin"}, {"offset", "-8"}}), HasSubstr("expected a number as offset"));
  EXPECT_THAT(message({{"location", "w.bin"}, {"offset", "8"}, {"length", "4"}}), HasSubstr("expected 8 bytes"));
  EXPECT_THAT(message({{"location", "../w.bin"}}), HasSubstr("model's folder"));
  EXPECT_THAT(message({{"location", "none.bin"}}), HasSubstr("does not exist"));
  EXPECT_THAT(message({}), HasSubstr("expected the name of a file"));
}

Result<Tensor> read_sparse(const ProtoBytes& tensor, const ProtoBytes& indices, const std::vector<int64_t>& dims) {
  ProtoBytes bytes;
  bytes.message(1, tensor).message(2, indices);
  for (const int64_t dim : dims) bytes.varint(3, static_cast<uint64_t>(dim));
  auto file = wire::MappedFile::own(bytes.str());
  auto proto = wire::parse_sparse_tensor(file->bytes());
  EXPECT_TRUE(proto.ok());
  return TensorReader(file, {}).read_dense(**proto);
}

TEST(SparseTensors, AreWrittenOut) {
  const ProtoBytes two = header(1, {2}).bytes(9, raw_bytes<float>({5, 7}));
  EXPECT_THAT(values<float>(read_sparse(two, header(7, {2}).bytes(9, raw_bytes<int64_t>({1, 3})), {2, 2})),
              ElementsAre(0, 5, 0, 7));
  EXPECT_THAT(values<float>(read_sparse(two, header(7, {2, 2}).bytes(9, raw_bytes<int64_t>({0, 1, 1, 0})), {2, 2})),
              ElementsAre(0, 5, 7, 0));
}

TEST(SparseTensors, AreChecked) {
  const ProtoBytes two = header(1, {2}).bytes(9, raw_bytes<float>({5, 7}));
  const auto message = [&](const ProtoBytes& indices, const std::vector<int64_t>& dims) {
    auto tensor = read_sparse(two, indices, dims);
    return tensor.ok() ? "ok" : tensor.error().message();
  };
  EXPECT_THAT(message(header(7, {2}).bytes(9, raw_bytes<int64_t>({1, 4})), {2, 2}), HasSubstr("index 4 is outside"));
  EXPECT_THAT(message(header(7, {2}).bytes(9, raw_bytes<int64_t>({1, -1})), {2, 2}), HasSubstr("index -1 is outside"));
  EXPECT_THAT(message(header(7, {2, 2}).bytes(9, raw_bytes<int64_t>({0, 1, 2, 0})), {2, 2}), HasSubstr("axis 0"));
  EXPECT_THAT(message(header(7, {1}).bytes(9, raw_bytes<int64_t>({1})), {2, 2}), HasSubstr("expected n sparse values"));
  EXPECT_THAT(message(header(7, {2}).bytes(9, raw_bytes<int64_t>({1, 2})), {int64_t{1} << 40}), HasSubstr("more than"));
}

}  // namespace
}  // namespace treadle::model
