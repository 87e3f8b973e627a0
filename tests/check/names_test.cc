#include "base/spelling.h"
#include "base/utf8.h"
#include "check/name_table.h"
#include "check_test_util.h"

namespace treadle {
namespace {

using namespace onnx_bytes;  // NOLINT(google-build-using-namespace)
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(NameTable, FindsTheInnermostDefinition) {
  NameTable names;
  names.enter();
  names.define("a", DefinedBy::kInput, nullptr);
  names.enter();
  EXPECT_EQ(names.find("a").depth, 0);
  EXPECT_EQ(names.define("a", DefinedBy::kNode, nullptr).depth, 0);
  EXPECT_EQ(names.find("a").depth, 1);
  int left = 0;
  names.leave([&](std::string_view name, const Definition& d) { left += name == "a" && d.depth == 1; });
  EXPECT_EQ(left, 1);
  EXPECT_EQ(names.find("a").by, DefinedBy::kInput);
  EXPECT_FALSE(names.find("b").exists());
}

TEST(NameTable, KeepsManyNames) {
  NameTable names;
  names.enter();
  std::vector<std::string> texts;
  for (int i = 0; i < 5000; ++i) texts.push_back("value_" + std::to_string(i));
  for (const std::string& text : texts) EXPECT_FALSE(names.define(text, DefinedBy::kNode, &text).exists());
  for (const std::string& text : texts) EXPECT_EQ(names.find(text).proto, &text);
}

TEST(Speller, OffersNearNames) {
  Speller speller("Sgimoid");
  for (const char* candidate : {"Sin", "Sign", "Sigmoid", "HardSigmoid"}) speller.offer(candidate);
  EXPECT_EQ(speller.best(), "Sigmoid");
  Speller far("Foo");
  far.offer("Convolution");
  EXPECT_EQ(far.best(), "");
  Speller same_letters("relu");
  same_letters.offer("Relu");
  EXPECT_EQ(same_letters.best(), "Relu");
}

TEST(CheckNames, SaysNothingOfASoundModel) {
  EXPECT_THAT(codes(check_bytes(model_of({node("Neg", {"x"}, {"a"}), node("Add", {"a", "x"}, {"y"})}))), IsEmpty());
}

TEST(CheckNames, ReportsEveryProblemInModelOrder) {
  const Report report = check_bytes(model_of({
      node("Add", {"x", "xx"}, {"a"}, {}, "first"),
      node("Nge", {"a"}, {"b"}),
      node("Neg", {"b"}, {"a"}),
      node("Concat", {"a", "b"}, {"y"}, {int_attribute("axes", 0)}),
  }));
  EXPECT_THAT(codes(report), ElementsAre("name-unknown", "operator-unknown", "name-duplicate", "attribute-unknown",
                                         "attribute-missing"));
  EXPECT_EQ(report.errors, 5u);
  EXPECT_EQ(report.diagnostics[0].path, "/first");
  EXPECT_EQ(report.diagnostics[0].op, "Add-14");
  EXPECT_EQ(report.diagnostics[1].path, "/Nge_1");
  EXPECT_EQ(report.diagnostics[1].hint, "did you mean Neg?");
  EXPECT_THAT(report.diagnostics[2].origin, HasSubstr("/first (Add-14)"));
  EXPECT_EQ(report.diagnostics[3].hint, "did you mean \"axis\"?");
}

TEST(CheckNames, SuggestsNamesThatAreNear) {
  const Report report = check_bytes(model_of({node("Neg", {"x"}, {"hidden"}), node("Neg", {"hiden"}, {"y"})}));
  ASSERT_THAT(codes(report), ElementsAre("name-unknown"));
  EXPECT_EQ(report.diagnostics[0].hint, "did you mean \"hidden\"?");
}

TEST(CheckNames, TellsOrderFromCircles) {
  const Report order = check_bytes(model_of({node("Neg", {"b"}, {"y"}), node("Neg", {"x"}, {"b"})}));
  ASSERT_THAT(codes(order), ElementsAre("node-order"));
  EXPECT_THAT(order.diagnostics[0].origin, HasSubstr("/Neg_1"));
  const Report circle = check_bytes(model_of({
      node("Add", {"x", "c"}, {"a"}),
      node("Neg", {"a"}, {"b"}),
      node("Neg", {"b"}, {"c"}),
      node("Neg", {"c"}, {"y"}),
  }));
  EXPECT_THAT(codes(circle), ElementsAre("node-cycle"));
  EXPECT_THAT(codes(check_bytes(model_of({node("Add", {"x", "y"}, {"y"})}))), ElementsAre("node-cycle"));
}

ProtoBytes loop(const GraphParts& body, const Names& inputs = {"iterations", "", "x"}, const Names& outputs = {"y"}) {
  return node("Loop", inputs, outputs, {graph_attribute("body", graph(body))}, "loop");
}
const std::vector<ProtoBytes> kBodyInputs = {value("i", 7, {}), value("go", 9, {}), value("h", 1, {"2"})};

std::string loop_model(const GraphParts& body, const Names& inputs = {"iterations", "", "x"}) {
  return model_of({loop(body, inputs)}, {tensor("iterations", 7, {}, raw_bytes<int64_t>({3}))});
}

TEST(CheckNames, SeesOuterNamesFromBodiesButNotTheOtherWay) {
  EXPECT_THAT(
      codes(check_bytes(loop_model({.nodes = {node("Add", {"h", "x"}, {"h2"}), node("Identity", {"go"}, {"go2"})},
                                    .inputs = kBodyInputs,
                                    .outputs = {value("go2", 9, {}), value("h2")}}))),
      IsEmpty());
  const std::string inner_used = model_of({loop({.nodes = {node("Neg", {"h"}, {"inner"})},
                                                 .inputs = kBodyInputs,
                                                 .outputs = {value("go", 9, {}), value("inner")}},
                                                {"iterations", "", "x"}, {"a"}),
                                           node("Add", {"a", "inner"}, {"y"})},
                                          {tensor("iterations", 7, {}, raw_bytes<int64_t>({3}))});
  const Report report = check_bytes(inner_used);
  ASSERT_THAT(codes(report), ElementsAre("name-unknown"));
  EXPECT_THAT(report.diagnostics[0].origin, HasSubstr("in /loop:body"));
}

TEST(CheckNames, TakesShadowingForWhatItIs) {
  // A body's input may hide an outer value; a node's output may not.
  const Report hidden = check_bytes(loop_model({.nodes = {node("Neg", {"x"}, {"h2"})},
                                                .inputs = {value("i", 7, {}), value("go", 9, {}), value("x", 1, {"2"})},
                                                .outputs = {value("go", 9, {}), value("h2")}}));
  ASSERT_THAT(codes(hidden), ElementsAre("name-shadowed"));
  EXPECT_TRUE(hidden.ok());
  EXPECT_EQ(hidden.diagnostics[0].path, "/loop:body");
  const Report twice = check_bytes(loop_model(
      {.nodes = {node("Neg", {"h"}, {"x"})}, .inputs = kBodyInputs, .outputs = {value("go", 9, {}), value("x")}}));
  EXPECT_THAT(codes(twice), ElementsAre("name-duplicate"));
}

TEST(CheckNames, WantsOutputsOfBodiesMadeInside) {
  const Report report = check_bytes(loop_model({.inputs = kBodyInputs, .outputs = {value("go", 9, {}), value("x")}}));
  ASSERT_THAT(codes(report), ElementsAre("output-unknown"));
  EXPECT_EQ(report.diagnostics[0].hint, "pass it on by an Identity in the body");
}

TEST(CheckNames, WantsInitializersAmongInputsBeforeIrVersion4) {
  const GraphParts parts = {.nodes = {node("Add", {"x", "w"}, {"y"})},
                            .inputs = {value("x", 1, {"2"})},
                            .outputs = {value("y", 1, {"2"})},
                            .initializers = {tensor("w", 1, {2}, raw_bytes<float>({1, 2}))}};
  EXPECT_THAT(codes(check_bytes(model_bytes(graph(parts), {}, {opset("", 7)}, 3))),
              ElementsAre("initializer-not-input"));
  EXPECT_THAT(codes(check_bytes(model_bytes(graph(parts), {}, {opset("", 7)}, 4))), IsEmpty());
}

TEST(CheckNames, RefusesWhatIsNoText) {
  const Report report = check_bytes(model_of({node("Neg", {"x"}, {"\xff\xfe"}), node("Neg", {"\xff\xfe"}, {"y"})}));
  ASSERT_THAT(codes(report), ElementsAre("text-encoding"));
  EXPECT_THAT(report.diagnostics[0].message, HasSubstr("\\xff\\xfe"));
  for (const char* good : {"", "abc", "\xc3\xa9", "\xe2\x82\xac and more", "\xf0\x9f\x98\x80"})
    EXPECT_TRUE(is_utf8(good));
  for (const char* bad : {"\x80", "\xc0\xaf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "12345678\xc3"}) {
    EXPECT_FALSE(is_utf8(bad)) << bad;
  }
}

// ---- Surprises

TEST(CheckSurprises, LoopWithoutCondition) {
  const std::vector<ProtoBytes> outputs = {value("go2", 9, {}), value("h2")};
  const auto with = [&](const ProtoBytes& condition, const Names& inputs = {"iterations", "", "x"}) {
    return codes(check_bytes(loop_model(
        {.nodes = {node("Neg", {"h"}, {"h2"}), condition}, .inputs = kBodyInputs, .outputs = outputs}, inputs)));
  };
  EXPECT_THAT(with(node("Identity", {"go"}, {"go2"})), IsEmpty());
  EXPECT_THAT(with(node("Not", {"go"}, {"go2"})), ElementsAre("loop-condition-ignored"));
  const ProtoBytes yes = tensor("", 9, {}, std::string_view("\1", 1)),
                   no = tensor("", 9, {}, std::string_view("\0", 1));
  EXPECT_THAT(with(node("Constant", {}, {"go2"}, {tensor_attribute("value", yes)})), IsEmpty());
  EXPECT_THAT(with(node("Constant", {}, {"go2"}, {tensor_attribute("value", no)})),
              ElementsAre("loop-condition-ignored"));
  EXPECT_THAT(with(node("Identity", {"go"}, {"go2"}), {"", "", "x"}),
              ElementsAre("loop-endless", "initializer-unused"));
}

TEST(CheckSurprises, StatesThatChangeTheirShape) {
  const Report report = check_bytes(loop_model(
      {.nodes = {node("Concat", {"h", "h"}, {"h2"}, {int_attribute("axis", 0)}), node("Identity", {"go"}, {"go2"})},
       .inputs = kBodyInputs,
       .outputs = {value("go2", 9, {}), value("h2", 1, {"4"})}}));
  ASSERT_THAT(codes(report), ElementsAre("state-shape"));
  EXPECT_EQ(report.diagnostics[0].expected, "[2]");
  EXPECT_EQ(report.diagnostics[0].found, "[4]");
}

TEST(CheckSurprises, BodiesThatDoNotFitTheirNode) {
  EXPECT_THAT(codes(check_bytes(
                  loop_model({.inputs = {value("i", 7, {}), value("go", 9, {})}, .outputs = {value("go", 9, {})}}))),
              ElementsAre("body-signature", "body-signature"));
}

}  // namespace
}  // namespace treadle
