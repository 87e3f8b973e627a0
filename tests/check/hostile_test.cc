// Files made to do harm: a check reports what is wrong with any claim of the file, in little time and memory.
#include "check_test_util.h"
#include "support/mutations.h"
#include "wire/parse.h"

namespace treadle {
namespace {

using namespace onnx_bytes;  // NOLINT(google-build-using-namespace)
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string loop_model() {
  const ProtoBytes body = graph({.nodes = {node("Add", {"h", "x"}, {"h2"}), node("Identity", {"go"}, {"go2"})},
                                 .inputs = {value("i", 7, {}), value("go", 9, {}), value("h")},
                                 .outputs = {value("go2", 9, {}), value("h2")}});
  return model_of({node("Loop", {"iterations", "", "x"}, {"y"}, {graph_attribute("body", body)})},
                  {tensor("iterations", 7, {}, raw_bytes<int64_t>({3}))});
}

TEST(CheckHostile, LengthsBeyondTheFile) {
  EXPECT_THAT(codes(check_bytes("")), ElementsAre("file-invalid"));
  EXPECT_THAT(codes(check_bytes("\x3a\x7f")), ElementsAre("file-invalid"));
  EXPECT_THAT(codes(check_bytes(std::string("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10))),
              ElementsAre("file-invalid"));
}

TEST(CheckHostile, VarintsThatDoNotEnd) {
  EXPECT_THAT(codes(check_bytes("\x08" + std::string(11, '\xff'))), ElementsAre("file-invalid"));
  EXPECT_THAT(codes(check_bytes(std::string(20, '\xff'))), ElementsAre("file-invalid"));
}

TEST(CheckHostile, TenThousandNestedBodies) {
  // Written from the inside out; each level is a graph in an attribute of a node of a graph.
  std::string inner;
  for (int i = 0; i < 10000; ++i) {
    inner = ProtoBytes().message(1, ProtoBytes().bytes(4, "If").message(5, ProtoBytes().bytes(6, inner))).str();
  }
  const Report report = check_bytes(ProtoBytes().varint(1, 8).bytes(7, inner).str());
  ASSERT_THAT(codes(report), ElementsAre("file-limit"));
  EXPECT_THAT(report.diagnostics[0].message, HasSubstr("nested"));
}

TEST(CheckHostile, EveryTruncationAndBitFlip) {
  const std::string bytes = loop_model();
  size_t sound = 0, wrong = 0;
  const auto count = [&](std::string_view variant) {
    const Report report = check_bytes(std::string(variant), {.full = true});
    ++(report.ok() ? sound : wrong);
    for (const Diagnostic& d : report.diagnostics) EXPECT_FALSE(d.message.empty());
  };
  for_each_truncation(bytes, 1, count);
  for_each_bit_flip(bytes, 1, count);
  EXPECT_GT(wrong, bytes.size());
  EXPECT_GT(sound, 0u);
}

TEST(CheckHostile, ProblemsBeyondTheLimitAreCounted) {
  std::vector<ProtoBytes> nodes(500, node("Nothing", {"x"}, {}));
  CheckOptions options;
  options.max_diagnostics = 10;
  const Report report = check_bytes(model_of(nodes), options);
  EXPECT_EQ(report.diagnostics.size(), 10u);
  EXPECT_EQ(report.errors, 501u);
}

TEST(CheckHostile, ManyUsesOfUnknownNamesTakeLinearTime) {
  std::vector<ProtoBytes> nodes;
  std::vector<std::string> names;
  for (int i = 0; i < 20000; ++i) names.push_back("name" + std::to_string(i));
  for (int i = 0; i + 1 < 20000; ++i) {
    nodes.push_back(node("Neg", {names[static_cast<size_t>(i) + 1]}, {names[static_cast<size_t>(i)]}));
  }
  nodes.push_back(node("Neg", {"x"}, {"y"}));
  const Report report = check_bytes(model_of(nodes));
  EXPECT_EQ(report.errors, 19999u);
  EXPECT_EQ(codes(report)[0], "node-order");
}

TEST(CheckHostile, NamesOfAMegabyte) {
  const std::string name(1 << 20, 'n');
  const Report report = check_bytes(model_of({node("Neg", {name}, {"y"}, {}, name)}));
  ASSERT_THAT(codes(report), ElementsAre("name-unknown"));
  EXPECT_LT(report.diagnostics[0].message.size() + report.diagnostics[0].path.size(), 3000u);
}

}  // namespace
}  // namespace treadle
