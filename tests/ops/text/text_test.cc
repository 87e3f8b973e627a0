#include <gtest/gtest.h>

#include "ops/ml/dictionary.h"
#include "ops/text/unicode.h"
#include "reference/interpreter.h"
#include "support/one_node.h"

namespace treadle {
namespace {

using ir::Attribute;
using testing_support::make_node;
using Strings = std::vector<std::string>;

TEST(Unicode, CaseAndSpace) {
  EXPECT_EQ(text::to_lower("ÀB1ß"), "àb1ß");
  EXPECT_EQ(text::to_upper("àb1"), "ÀB1");
  EXPECT_EQ(text::fold_case("STRASSE"), text::fold_case("straße"));
  EXPECT_EQ(text::leading_space("\t a"), 1u);
  EXPECT_EQ(text::leading_space("\u2003a"), 3u);
  EXPECT_EQ(text::leading_space("a "), 0u);
  EXPECT_EQ(text::leading_space(""), 0u);
}

TEST(Unicode, BytesThatAreNoTextStay) {
  const std::string_view broken = "A\xff\xc3";
  EXPECT_EQ(text::to_lower(broken), "a\xff\xc3");
  EXPECT_EQ(text::fold_case(broken), broken);
  EXPECT_EQ(text::leading_character("\xff"), 1u);
}

TEST(Strings, ADictionaryFindsTheFirstOfEqualKeys) {
  const ml::Dictionary words(ml::to_tensor(Strings{"a", "b", "a"}));
  EXPECT_EQ(words.find("a"), 0);
  EXPECT_EQ(words.find("c"), -1);
  for (const std::vector<int64_t>& keys : {std::vector<int64_t>{5, 3, 5}, {5, INT64_MIN, 5}, {INT64_MAX, INT64_MIN}}) {
    const ml::Dictionary numbers(ml::to_tensor(keys));
    EXPECT_EQ(numbers.find(keys[0]), 0);
    EXPECT_EQ(numbers.find(keys[1]), 1);
    EXPECT_EQ(numbers.find(int64_t{4}), -1);
  }
}

Result<std::vector<AnyValue>> run(const char* op, int version, Strings strings, size_t outputs,
                                  std::vector<Attribute> attributes) {
  const ir::NodeInfo node = make_node(op, version, 1, outputs, std::move(attributes));
  const std::vector<AnyValue> inputs = {AnyValue(ml::to_tensor(strings))};
  return reference::run_node(node, inputs);
}

TEST(Strings, SplitPadsWithEmptyStrings) {
  const auto out = run("StringSplit", 20, {"a,b,c", "d"}, 2, {Attribute::of("delimiter", std::string(","))});
  ASSERT_TRUE(out.ok()) << out.error().to_string();
  const auto parts = (*out)[0].tensor().span<String>();
  EXPECT_EQ(Strings(parts.begin(), parts.end()), (Strings{"a", "b", "c", "d", "", ""}));
  EXPECT_EQ((*out)[1].tensor().data<int64_t>()[1], 1);
}

TEST(Strings, APatternIsReadOnceForANodeAndItsCopies) {
  const ir::NodeInfo node = make_node("RegexFullMatch", 20, 1, 1, {Attribute::of("pattern", std::string("a+"))});
  ASSERT_NE(node.parsed, nullptr);
  ir::Graph graph;
  ir::Node* made = graph.new_node(&graph.top(), node.op, node.version, "match");
  made->parsed = node.parsed;
  EXPECT_EQ(graph.clone()->top().nodes[0]->parsed, node.parsed);
}

TEST(Strings, AMistakenPatternIsRefusedWhenTheNodeIsMade) {
  ir::NodeInfo node;
  node.op = &require_op("RegexFullMatch");
  node.version = node.op->version_for(20);
  node.attributes.set(Attribute::of("pattern", std::string("(")));
  const Status status = parse_attributes(node);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("missing"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace treadle
