// Errors in models in text form name the position in the text.
#include "model/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/text.h"
#include "model/import.h"
#include "model/node_finder.h"

namespace treadle {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kText = R"TEXT(<ir_version: 10, opset_import: ["" : 21, "my" : 1]>
f (int64 n, bool on, float[2] x) => (float[2] y) {
  [same] a = Relu (x)
  [same] b = Relu (a)
  ["with / and (x)"] c = my.twice (b)
  y = Loop (n, on, c) <body = iteration (int64 i, bool go, float[2] h) => (bool go_out, float[2] h_out) {
    go_out = Identity (go)
    h_out = Add (h, x)
  }>
}
<domain: "my", opset_import: ["" : 21]>
twice (v) => (w) {
  w = Add (v, v)
}
)TEXT";

Status error_at(std::string place) {
  const auto file = wire::MappedFile::own(std::string(kText), "model.txt");
  return model::in_file(error(Code::kInvalidModel, "wrong").in(place), *file);
}

TEST(TextErrors, HaveALine) {
  const Status status = error_at("/Loop_3:body/Add_1 (Add-14)");
  EXPECT_EQ(status.place(), "model.txt:8:13: /Loop_3:body/Add_1 (Add-14)");
  EXPECT_EQ(status.message(), "wrong\n  8 |     h_out = Add (h, x)\n    |             ^~~");
}

TEST(TextErrors, FindNodesOfOneName) {
  EXPECT_THAT(error_at("/same (Relu-14)").place(), HasSubstr("model.txt:3:14: "));
  EXPECT_THAT(error_at("/same#2 (Relu-14)").place(), HasSubstr("model.txt:4:14: "));
}

TEST(TextErrors, FindNodesOfFunctions) {
  EXPECT_THAT(error_at("/with / and (x)/Add_0 (Add-14)").place(), HasSubstr("model.txt:13:7: "));
  EXPECT_THAT(error_at("/with / and (x) (my.twice)").place(), HasSubstr("model.txt:5:29: "));
}

TEST(TextErrors, FindTheInnermostNodeThatWasWritten) {
  EXPECT_THAT(error_at("/Loop_3 (Loop-21) body, iteration 3: /Loop_3:body/Add_1 (Add-14)").place(),
              HasSubstr("model.txt:8:13: /Loop_3 (Loop-21) body, iteration 3: "));
  EXPECT_THAT(error_at("/Loop_3:body/Add_1/lowered (Mul-14)").place(), HasSubstr("model.txt:8:13: "));
  EXPECT_EQ(error_at("/Loop_9 (Loop-21)").place(), "model.txt: /Loop_9 (Loop-21)");
  EXPECT_EQ(error_at("").place(), "model.txt");
}

TEST(TextErrors, AreNamedOnce) {
  EXPECT_EQ(error_at("model.txt: /Loop_9 (Loop-21)").place(), "model.txt: /Loop_9 (Loop-21)");
  const auto binary = wire::MappedFile::own("\x08\x0a", "model.onnx");
  const Status status = model::in_file(error(Code::kInvalidModel, "wrong").in("/same (Relu-14)"), *binary);
  EXPECT_EQ(status.place(), "model.onnx: /same (Relu-14)");
}

TEST(TextErrors, ComeFromImports) {
  std::string text(kText);
  text.replace(text.find("Relu (a)"), 8, "Relu (q)");
  const auto graph = model::import_model(wire::MappedFile::own(text, "model.txt"));
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.error().to_string(),
            "model.txt:4:14: /same#2 (Relu-14): nothing defines the input \"q\"\n"
            "  4 |   [same] b = Relu (q)\n    |              ^~~~");
}

}  // namespace
}  // namespace treadle
