#include "check_test_util.h"
#include "support/temp_dir.h"
#include "wire/parse.h"

namespace treadle {
namespace {

using namespace onnx_bytes;  // NOLINT(google-build-using-namespace)
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kFloat = 1, kInt32 = 6, kInt64 = 7, kString = 8, kUint4 = 21, kFloat6 = 27;

ProtoBytes typed(uint64_t type, const std::vector<int64_t>& dims) {
  ProtoBytes bytes;
  for (const int64_t dim : dims) bytes.varint(1, static_cast<uint64_t>(dim));
  return bytes.varint(2, type).bytes(8, "t");
}
std::string zeros(size_t count) {
  return std::string(count, '\0');
}

std::vector<std::string> codes_of(const ProtoBytes& proto) {
  const std::string bytes = proto.str();
  auto tensor = wire::parse_tensor(bytes);
  EXPECT_TRUE(tensor.ok());
  return codes(check_value(**tensor));
}

TEST(CheckTensors, DataStandInTheFieldOfTheirType) {
  EXPECT_THAT(codes_of(typed(kFloat, {2}).bytes(9, zeros(8))), IsEmpty());
  EXPECT_THAT(codes_of(typed(kFloat, {2}).fixed32(4, 1).fixed32(4, 2)), IsEmpty());
  EXPECT_THAT(codes_of(typed(kInt32, {1}).fixed32(4, 1)), ElementsAre("tensor-data"));
  EXPECT_THAT(codes_of(typed(kFloat, {1}).fixed32(4, 1).bytes(9, zeros(4))), ElementsAre("tensor-data"));
  EXPECT_THAT(codes_of(typed(kFloat, {1})), ElementsAre("tensor-data"));
  EXPECT_THAT(codes_of(typed(kFloat, {0})), IsEmpty());
  EXPECT_THAT(codes_of(typed(kFloat, {0}).fixed32(4, 1)), ElementsAre("tensor-data"));
  EXPECT_THAT(codes_of(typed(kString, {1}).bytes(9, "a")), ElementsAre("tensor-data"));
  EXPECT_THAT(codes_of(typed(kString, {1}).bytes(6, "a")), IsEmpty());
  EXPECT_THAT(codes_of(typed(0, {1})), ElementsAre("tensor-type"));
  EXPECT_THAT(codes_of(typed(77, {1}).bytes(9, zeros(4))), ElementsAre("tensor-type"));
}

TEST(CheckTensors, AreAsLargeAsTheirSizesSay) {
  EXPECT_THAT(codes_of(typed(kFloat, {2}).bytes(9, zeros(7))), ElementsAre("tensor-size"));
  EXPECT_THAT(codes_of(typed(kFloat, {2}).bytes(9, zeros(9))), ElementsAre("tensor-excess"));
  EXPECT_THAT(codes_of(typed(kInt64, {3}).varint(7, 1)), ElementsAre("tensor-size"));
  EXPECT_THAT(codes_of(typed(kUint4, {3}).bytes(9, zeros(2))), IsEmpty());
  EXPECT_THAT(codes_of(typed(kUint4, {3}).bytes(9, zeros(1))), ElementsAre("tensor-size"));
  EXPECT_THAT(codes_of(typed(kUint4, {9}).varint(5, 0)), ElementsAre("tensor-size"));
  EXPECT_THAT(codes_of(typed(kFloat6, {3}).bytes(9, zeros(3))), IsEmpty());
  EXPECT_THAT(codes_of(typed(kFloat6, {1}).bytes(9, "\x40")), ElementsAre("tensor-bits"));
  EXPECT_THAT(codes_of(typed(kFloat6, {3}).bytes(9, std::string_view("\0\0\x04", 3))), ElementsAre("tensor-bits"));
  EXPECT_THAT(codes_of(typed(kFloat6, {1}).varint(5, 64)), ElementsAre("tensor-bits"));
}

TEST(CheckTensors, SizesThatOverflow) {
  EXPECT_THAT(codes_of(typed(kFloat, {-1})), ElementsAre("tensor-dims"));
  EXPECT_THAT(codes_of(typed(kFloat, {int64_t{1} << 40, int64_t{1} << 40}).bytes(9, zeros(8))),
              ElementsAre("tensor-dims"));
  EXPECT_THAT(codes_of(typed(kFloat, {int64_t{1} << 61, 2}).bytes(9, zeros(8))), ElementsAre("tensor-size"));
  EXPECT_THAT(codes_of(typed(kFloat, {int64_t{1} << 40, int64_t{1} << 40, 0})), IsEmpty());
  // A billion elements, none of which is in the file.
  EXPECT_THAT(codes_of(typed(kFloat, {1000, 1000, 1000}).bytes(9, zeros(8))), ElementsAre("tensor-size"));
}

TEST(CheckTensors, PackedIntegersThatAreCutOff) {
  EXPECT_THAT(codes_of(typed(kInt64, {2}).bytes(7, "\x01\xff")), ElementsAre("tensor-data"));
  EXPECT_THAT(codes_of(typed(kInt64, {1}).bytes(7, std::string(11, '\xff'))), ElementsAre("tensor-data"));
}

TEST(CheckTensors, NewTypesInOldFiles) {
  const std::string model = model_bytes(graph({.nodes = {node("Cast", {"t"}, {"y"}, {int_attribute("to", 1)})},
                                               .outputs = {value("y", 1, {"1"})},
                                               .initializers = {typed(kFloat6, {1}).bytes(9, zeros(1))}}),
                                        {}, {opset("", 28)}, 13);
  const Report report = check_bytes(model);
  ASSERT_THAT(codes(report), ElementsAre("ir-feature"));
  EXPECT_EQ(report.diagnostics[0].found, "IR version 13");
}

// ---- External data

ProtoBytes external(const std::vector<std::pair<std::string_view, std::string_view>>& entries) {
  ProtoBytes bytes = typed(kFloat, {4}).varint(14, 1);
  for (const auto& [key, text] : entries) bytes.message(13, ProtoBytes().bytes(1, key).bytes(2, text));
  return bytes;
}

class CheckExternalData : public ::testing::Test {
 protected:
  std::vector<std::string> codes_with(const std::vector<std::pair<std::string_view, std::string_view>>& entries) {
    const std::string path = folder_.write(
        "m/model.onnx", model_of({node("Neg", {"x"}, {"y"}), node("Neg", {"t"}, {"z"})}, {external(entries)}));
    auto file = wire::MappedFile::open(path);
    const Report report = check_model(*file);
    return codes(report);
  }
  TempDir folder_;
};

TEST_F(CheckExternalData, LiesInTheModelsFolder) {
  folder_.write("m/data.bin", zeros(16));
  folder_.write("secret.bin", zeros(16));
  const std::string absolute = (folder_.path() / "m/data.bin").string();
  EXPECT_THAT(codes_with({{"location", "data.bin"}}), IsEmpty());
  EXPECT_THAT(codes_with({{"location", "./data.bin"}}), IsEmpty());
  EXPECT_THAT(codes_with({}), ElementsAre("external-data"));
  for (const std::string_view wrong :
       {std::string_view("../secret.bin"), std::string_view("a/../../secret.bin"), std::string_view(absolute),
        std::string_view(""), std::string_view("nothing.bin"), std::string_view("."),
        std::string_view("data.bin\0x", 10), std::string_view("C:\\x")}) {
    EXPECT_THAT(codes_with({{"location", wrong}}), ElementsAre("external-data")) << wrong;
  }
}

TEST_F(CheckExternalData, IsNoLink) {
  folder_.write("m/data.bin", zeros(16));
  folder_.write("out/data.bin", zeros(16));
  std::filesystem::create_symlink("data.bin", folder_.path() / "m/link.bin");
  std::filesystem::create_directory_symlink("../out", folder_.path() / "m/out");
  std::filesystem::create_hard_link(folder_.path() / "out/data.bin", folder_.path() / "m/hard.bin");
  std::filesystem::create_directory(folder_.path() / "m/folder");
  for (const std::string_view wrong : {"link.bin", "out/data.bin", "hard.bin", "folder"}) {
    EXPECT_THAT(codes_with({{"location", wrong}}), ElementsAre("external-data")) << wrong;
  }
}

TEST_F(CheckExternalData, StaysWithinItsFile) {
  folder_.write("m/data.bin", zeros(16));
  EXPECT_THAT(codes_with({{"location", "data.bin"}, {"offset", "0"}, {"length", "16"}}), IsEmpty());
  EXPECT_THAT(codes_with({{"location", "data.bin"}, {"offset", "4"}}), ElementsAre("external-range"));
  EXPECT_THAT(codes_with({{"location", "data.bin"}, {"offset", "18446744073709551615"}}),
              ElementsAre("external-range"));
  EXPECT_THAT(codes_with({{"location", "data.bin"}, {"offset", "99999999999999999999999"}}),
              ElementsAre("external-data"));
  EXPECT_THAT(codes_with({{"location", "data.bin"}, {"offset", "-4"}}), ElementsAre("external-data"));
  EXPECT_THAT(codes_with({{"location", "data.bin"}, {"length", "12"}}), ElementsAre("tensor-size"));
}

TEST(CheckExternalDataInBytes, LooksAtNamesOnly) {
  const auto with = [](std::string_view location) {
    return codes(check_bytes(
        model_of({node("Neg", {"x"}, {"y"}), node("Neg", {"t"}, {"z"})}, {external({{"location", location}})})));
  };
  EXPECT_THAT(with("somewhere.bin"), IsEmpty());
  EXPECT_THAT(with("/etc/passwd"), ElementsAre("external-data"));
}

// ---- Sparse tensors

std::vector<std::string> sparse_codes(const ProtoBytes& values, const ProtoBytes& indices,
                                      const std::vector<int64_t>& dims) {
  ProtoBytes bytes;
  bytes.message(1, values).message(2, indices);
  for (const int64_t dim : dims) bytes.varint(3, static_cast<uint64_t>(dim));
  const std::string text = bytes.str();
  auto sparse = wire::parse_sparse_tensor(text);
  EXPECT_TRUE(sparse.ok());
  return codes(check_value(**sparse));
}

ProtoBytes floats(int64_t count) {
  return tensor("s", kFloat, {count}, zeros(static_cast<size_t>(count) * 4));
}

TEST(CheckSparseTensors, IndicesAreInsideAndRise) {
  const auto linear = [](std::initializer_list<int64_t> indices) {
    const auto count = static_cast<int64_t>(indices.size());
    return sparse_codes(floats(count), tensor("i", kInt64, {count}, raw_bytes<int64_t>(indices)), {3, 4});
  };
  EXPECT_THAT(linear({0, 5, 11}), IsEmpty());
  EXPECT_THAT(linear({0, 12}), ElementsAre("sparse-tensor"));
  EXPECT_THAT(linear({-1}), ElementsAre("sparse-tensor"));
  EXPECT_THAT(linear({5, 5}), ElementsAre("sparse-tensor"));
  const auto pairs = [](std::initializer_list<int64_t> indices) {
    const auto count = static_cast<int64_t>(indices.size() / 2);
    return sparse_codes(floats(count), tensor("i", kInt64, {count, 2}, raw_bytes<int64_t>(indices)), {3, 4});
  };
  EXPECT_THAT(pairs({0, 3, 1, 0, 2, 3}), IsEmpty());
  EXPECT_THAT(pairs({0, 4}), ElementsAre("sparse-tensor"));
  EXPECT_THAT(pairs({1, 0, 0, 3}), ElementsAre("sparse-tensor"));
}

TEST(CheckSparseTensors, PartsFitEachOther) {
  const ProtoBytes one_index = tensor("i", kInt64, {1}, raw_bytes<int64_t>({0}));
  EXPECT_THAT(sparse_codes(floats(2), one_index, {4}), ElementsAre("sparse-tensor"));
  EXPECT_THAT(sparse_codes(floats(1), one_index, {}), ElementsAre("sparse-tensor"));
  EXPECT_THAT(sparse_codes(floats(1), one_index, {0}), ElementsAre("sparse-tensor"));
  EXPECT_THAT(sparse_codes(floats(1), tensor("i", kInt32, {1}, zeros(4)), {4}), ElementsAre("sparse-tensor"));
  EXPECT_THAT(sparse_codes(tensor("s", kFloat, {1, 1}, zeros(4)), one_index, {4}), ElementsAre("sparse-tensor"));
  EXPECT_THAT(sparse_codes(floats(1), one_index, {int64_t{1} << 40, int64_t{1} << 40}), ElementsAre("tensor-dims"));
}

// ---- Values without a node

TEST(CheckValues, MapsSequencesOptionals) {
  const auto map_codes = [](const ProtoBytes& proto) {
    const std::string bytes = proto.str();
    auto map = wire::parse_map(bytes);
    return codes(check_value(**map));
  };
  const ProtoBytes one = ProtoBytes().varint(2, 1).message(3, floats(1));
  EXPECT_THAT(map_codes(ProtoBytes().varint(2, kString).bytes(4, "k").message(5, one)), IsEmpty());
  EXPECT_THAT(map_codes(ProtoBytes().varint(2, kFloat).varint(3, 1).message(5, one)), ElementsAre("value-invalid"));
  EXPECT_THAT(map_codes(ProtoBytes().varint(2, kInt64).varint(3, 1).varint(3, 2).message(5, one)),
              ElementsAre("value-invalid"));
  EXPECT_THAT(map_codes(ProtoBytes().varint(2, kInt64).varint(3, 1).bytes(4, "k").message(5, one)),
              ElementsAre("value-invalid", "value-invalid"));
  const std::string sequence = ProtoBytes().varint(2, 9).str(), optional = ProtoBytes().varint(2, 0).str();
  EXPECT_THAT(codes(check_value(**wire::parse_sequence(sequence))), ElementsAre("value-invalid"));
  EXPECT_THAT(codes(check_value(**wire::parse_optional(optional))), IsEmpty());
}

// ---- Declared types

TEST(CheckTypes, OfTheModelsInputsAndOutputs) {
  const auto with_input = [](const ProtoBytes& input) {
    return codes(check_bytes(model_bytes(
        graph({.nodes = {node("Identity", {"x"}, {"y"})}, .inputs = {input}, .outputs = {value("y", 1, {"2"})}}))));
  };
  const auto of_type = [](const ProtoBytes& type) { return ProtoBytes().bytes(1, "x").message(2, type); };
  EXPECT_THAT(with_input(value("x", 1, {"N"})), IsEmpty());
  EXPECT_THAT(with_input(ProtoBytes().bytes(1, "x")), ElementsAre("type-missing"));
  EXPECT_THAT(with_input(of_type(ProtoBytes())), ElementsAre("type-missing"));
  EXPECT_THAT(with_input(of_type(ProtoBytes().message(1, ProtoBytes().varint(1, 1)))), ElementsAre("type-missing"));
  EXPECT_THAT(with_input(of_type(ProtoBytes().message(4, ProtoBytes()))), ElementsAre("type-missing"));
  EXPECT_THAT(with_input(value("x", 99, {"N"})), ElementsAre("type-invalid"));
  EXPECT_THAT(with_input(value("x", 1, {"-1"})), ElementsAre("size-negative"));
}

}  // namespace
}  // namespace treadle
