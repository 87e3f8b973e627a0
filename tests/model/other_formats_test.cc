#include "model/other_formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "check/checker.h"
#include "model/import.h"
#include "wire/mapped_file.h"

namespace treadle::model {
namespace {

using namespace std::string_literals;
using ::testing::HasSubstr;

const std::pair<std::string, std::string> kOthers[] = {
    {"", "an empty file"},
    {"version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 5\n", "a git-lfs pointer"},
    {"<!DOCTYPE html>\n<html><body>", "an HTML page"},
    {"\xef\xbb\xbf \n<HTML lang=\"en\">", "an HTML page"},
    {"{\"error\": \"no such file\"}", "a JSON text"},
    {"Entry not found", "a text that is no ONNX text"},
    {"404: Not Found\n", "a text that is no ONNX text"},
    {"name: model\nversion: 1\n", "a text that is no ONNX text"},
    {"<?xml version=\"1.0\"?>", "an XML document"},
    {"\x1f\x8b\x08", "a gzip archive"},
    {"PK\3\4" + std::string(26, '\0') + "a.onnx", "a zip archive"},
    {"PK\3\4" + std::string(26, '\0') + "m/data.pklPK\1\2m/data.pklPK\1\2m/constants.pklPK\5\6", "a TorchScript model"},
    {"PK\3\4" + std::string(26, '\0') + "m/data.pklPK\1\2m/data.pklPK\5\6", "a PyTorch checkpoint"},
    {"PK\3\4" + std::string(26, '\0') + "x.npyPK\1\2x.npyPK\5\6", "arrays of numpy (.npz)"},
    {"\x1c\0\0\0TFL3"s, "a TFLite model"},
    {"\x80\2\x8a\nl\xfc\x9c", "a pickle"},
    {"\x02\0\0\0\0\0\0\0{\"}"s, "a safetensors file"},
    {"\x93NUMPY\1\0"s, "an array of numpy"},
    {std::string(5000, '\0'), "zeros"},
};

TEST(OtherFormats, AreNamed) {
  for (const auto& [bytes, name] : kOthers) {
    EXPECT_THAT(std::string(other_format(bytes)), HasSubstr(name)) << testing::PrintToString(bytes);
    const auto imported = import_model(wire::MappedFile::own(bytes, "m.onnx"));
    ASSERT_FALSE(imported.ok());
    EXPECT_EQ(imported.error().code(), Code::kInvalidFile);
    EXPECT_THAT(imported.error().to_string(), HasSubstr("m.onnx: expected an ONNX model, found "));
    const Report report = check_model(wire::MappedFile::own(bytes), {});
    ASSERT_EQ(report.errors, 1u);
    EXPECT_THAT(report.diagnostics[0].message, HasSubstr("found "));
  }
}

TEST(OtherFormats, ModelsAreNone) {
  for (const std::string& bytes : {"\x08\x0a\x12\x02pt"s, "<ir_version: 10, opset_import: [\"\" : 21]>"s,
                                   "# a model\n<ir_version: 10>"s, "f (float x) => (float y) {"s, "\x08"s}) {
    EXPECT_EQ(other_format(bytes), "");
  }
}

}  // namespace
}  // namespace treadle::model
