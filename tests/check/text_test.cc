// Models in text form: problems have line numbers.
#include "check/render.h"
#include "check_test_util.h"

namespace treadle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kHeader = "<ir_version: 10, opset_import: [\"\" : 21]>\n";

std::string rendered(const std::string& text, bool full = false) {
  CheckOptions how;
  how.full = full;
  const Report report = check_bytes(text, how);
  RenderOptions options;
  options.source = text;
  options.file = "model.txt";
  return render_text(report, options);
}

TEST(CheckText, PointsAtTheName) {
  const std::string text = std::string(kHeader) + "f (float[2] x) => (float[2] y) {\n\ty = Add (x, xx)\n}\n";
  EXPECT_THAT(codes(check_bytes(text)), ElementsAre("name-unknown"));
  EXPECT_THAT(rendered(text), HasSubstr("model.txt:3:14: error: /Add_0 (Add-14): input 1 is \"xx\""));
  EXPECT_THAT(rendered(text), HasSubstr("    \ty = Add (x, xx)\n    \t            ^~\n"));
}

TEST(CheckText, PointsAtTheTokenThatCannotBeRead) {
  const std::string text = std::string(kHeader) + "f (float[2] x) => (float[2] y) {\n  y = Neg (x]\n}\n";
  EXPECT_THAT(codes(check_bytes(text)), ElementsAre("file-invalid"));
  EXPECT_THAT(rendered(text), HasSubstr("model.txt:3:13: error: "));
  EXPECT_THAT(rendered(text), HasSubstr("      y = Neg (x]\n                ^\n"));
}

TEST(CheckText, InfersAsBinariesDo) {
  const std::string text = std::string(kHeader) + "f (float[2] x, int64[2] k) => (float[2] y) {\n  y = Add (x, k)\n}\n";
  CheckOptions full;
  full.full = true;
  EXPECT_THAT(codes(check_bytes(text)), ElementsAre());
  EXPECT_THAT(codes(check_bytes(text, full)), ElementsAre("type-constraint"));
}

constexpr std::string_view kLoop = R"(f (int64 n, bool on, float[2] x) => (float[2] y) {
  y = Loop (n, on, x) <body = iteration (int64 i, bool go, float[2] h) => (bool go_out, float[2] h_out) {
    go_out = Identity (go)
    h_out = Mul (h, i)
  }>
}
)";

TEST(CheckText, PointsAtTypesAndWhereTheyComeFrom) {
  const std::string said = rendered(std::string(kHeader) + std::string(kLoop), true);
  EXPECT_THAT(said, HasSubstr("model.txt:5:21: error: /Loop_0:body/Mul_1 (Mul-14): input 1 (B), \"i\": its type"));
  EXPECT_THAT(said, HasSubstr("        h_out = Mul (h, i)\n                        ^\n"));
  EXPECT_THAT(said, HasSubstr("    model.txt:3:48: \"i\" is an input of the body of /Loop_0 (Loop-21)\n"));
}

TEST(CheckText, FindsNodesOfFunctions) {
  const std::string text =
      "<ir_version: 10, opset_import: [\"\" : 21, \"my\" : 1]>\n"
      "f (float[2] x) => (float[2] y) {\n  a = my.twice (x)\n  y = my.twice (a)\n}\n"
      "<domain: \"my\", opset_import: [\"\" : 21]>\ntwice (v) => (w) {\n  k = Constant <value = int64 {2}> ()\n"
      "  w = Mul (v, k)\n}\n";
  EXPECT_THAT(rendered(text, true), HasSubstr("model.txt:9:15: error: /twice_0/Mul_1 (Mul-14): input 1"));
}

TEST(CheckText, ReportsEveryNodeThatFails) {
  const std::string text =
      std::string(kHeader) +
      "f (float[2] x, float[3] z, float[2,2] m, int64 n, bool on) => (float[2] y, float[3] k) {\n"
      "  a = Add (x, z)\n"             // fails
      "  b = Relu (a)\n"               // follows from it
      "  c = MatMul (m, z)\n"          // fails
      "  d = Concat <axis = 3> (m)\n"  // fails
      "  k = Relu (z)\n"
      "  y = Loop (n, on, x) <body = iteration (int64 i, bool go, float[2] h) => (bool g, float[2] o) {\n"
      "    g = Identity (go)\n    e = Add (h, z)\n    q = Add (e, b)\n    o = Sub (h, z)\n  }>\n}\n";
  CheckOptions full;
  full.full = true;
  const Report report = check_bytes(text, full);
  std::vector<std::string> paths;
  for (const Diagnostic& d : report.diagnostics) paths.push_back(d.path);
  EXPECT_THAT(paths, ElementsAre("/Add_0", "/MatMul_2", "/Concat_3", "/Loop_5:body/Add_1", "/Loop_5:body/Sub_3"));
  EXPECT_EQ(report.errors, 3);
  EXPECT_EQ(report.warnings, 2);  // sizes in a body that a run may never reach
}

TEST(CheckText, ReportsWrongTypesAfterOtherErrors) {
  const std::string text = std::string(kHeader) +
                           "f (float[2] x, int64[2] k) => (float[2] y) {\n  a = Add (x, xx)\n  b = Relu (a)\n"
                           "  y = Mul (x, k)\n}\n";
  CheckOptions full;
  full.full = true;
  EXPECT_THAT(codes(check_bytes(text, full)), ElementsAre("name-unknown", "type-constraint"));
}

TEST(CheckText, LooksIntoBodiesOfNodesThatAreWrong) {
  const std::string text =
      std::string(kHeader) +
      "f (int64 n, float on, float[2] x, float[3] z) => (float[2] y) {\n"
      "  y = Loop (n, on, x) <body = iteration (int64 i, bool go, float[2] h) => (bool g, float[2] o) {\n"
      "    g = Identity (go)\n    o = Add (h, z)\n  }>\n}\n";
  CheckOptions full;
  full.full = true;
  EXPECT_THAT(codes(check_bytes(text, full)), ElementsAre("type-constraint", "inference"));
}

TEST(Render, ObeysNoControlCharacters) {
  Report report;
  Diagnostic& d = report.diagnostics.emplace_back();
  d.message = "red \x1b[31m";
  report.errors = 1;
  EXPECT_THAT(render_text(report), HasSubstr("model: error: red \\x1b[31m"));
  EXPECT_THAT(render_json(report), HasSubstr("\\u001b"));
  RenderOptions colour;
  colour.colour = true;
  EXPECT_THAT(render_text(report, colour), HasSubstr("\x1b[1;31merror: "));
}

}  // namespace
}  // namespace treadle
