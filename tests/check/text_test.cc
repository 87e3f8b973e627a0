// Models that are texts: problems have lines.
#include "check/render.h"
#include "check_test_util.h"

namespace treadle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kHeader = "<ir_version: 10, opset_import: [\"\" : 21]>\n";

std::string rendered(const std::string& text) {
  const Report report = check_bytes(text);
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

TEST(CheckText, PointsAtWhatCannotBeRead) {
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
