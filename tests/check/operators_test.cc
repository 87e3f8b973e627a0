#include "check_test_util.h"

namespace treadle {
namespace {

using namespace onnx_bytes;  // NOLINT(google-build-using-namespace)
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string with_opset(const std::vector<ProtoBytes>& nodes, int64_t version, int64_t ir_version = 8) {
  return model_bytes(graph({.nodes = nodes, .inputs = {value("x", 1, {"2"})}, .outputs = {value("y", 1, {"2"})}}), {},
                     {opset("", version)}, ir_version);
}

TEST(CheckOperators, ByTheImportedVersion) {
  const Report early = check_bytes(with_opset({node("Gelu", {"x"}, {"y"})}, 17));
  ASSERT_THAT(codes(early), ElementsAre("operator-too-new"));
  EXPECT_EQ(early.diagnostics[0].hint, "import operator set 20 or later");
  const Report gone = check_bytes(with_opset({node("Upsample", {"x", "x"}, {"y"})}, 10));
  ASSERT_THAT(codes(gone), ElementsAre("operator-deprecated"));
  EXPECT_EQ(gone.diagnostics[0].hint, "use Resize");
  EXPECT_THAT(codes(check_bytes(with_opset({node("Upsample", {"x", "x"}, {"y"})}, 9))),
              ElementsAre("operator-outdated"));
  const auto normalised = [](int64_t opset) {
    return check_bytes(
        with_opset({node("GroupNormalization", {"x", "x", "x"}, {"y"}, {int_attribute("num_groups", 1)})}, opset));
  };
  const Report replaced = normalised(20);
  ASSERT_THAT(codes(replaced), ElementsAre("operator-replaced"));
  EXPECT_TRUE(replaced.ok());
  EXPECT_THAT(replaced.diagnostics[0].hint, HasSubstr("operator set 21"));
  EXPECT_THAT(codes(normalised(21)), IsEmpty());
  EXPECT_THAT(codes(check_bytes(with_opset({node("GroupNormalization", {"x"}, {"y"})}, 18))),
              ElementsAre("input-count", "attribute-missing", "operator-replaced"));
  EXPECT_THAT(codes(check_bytes(with_opset({node("GRUUnit", {"x"}, {"y"})}, 9))), ElementsAre("operator-experimental"));
  EXPECT_THAT(codes(check_bytes(with_opset({node("Scale", {"x"}, {"y"})}, 9))), ElementsAre("operator-outdated"));
  EXPECT_THAT(codes(check_bytes(with_opset({node("Neg", {"x"}, {"y"})}, 1000))), ElementsAre("opset-unknown"));
}

TEST(CheckOperators, Domains) {
  EXPECT_THAT(codes(check_bytes(with_opset({node("Scaler", {"x"}, {"y"}, {}, "", "ai.onnx.ml")}, 17))),
              ElementsAre("domain-not-imported"));
  const Report lost = check_bytes(with_opset({node("Scaler", {"x"}, {"y"})}, 17));
  ASSERT_THAT(codes(lost), ElementsAre("operator-unknown"));
  EXPECT_THAT(lost.diagnostics[0].hint, HasSubstr("\"ai.onnx.ml\" has one"));
  const std::string custom = model_bytes(graph({.nodes = {node("Foo", {"x"}, {"y"}, {}, "", "some")},
                                                .inputs = {value("x", 1, {"2"})},
                                                .outputs = {value("y", 1, {"2"})}}),
                                         {}, {opset("some", 1)});
  EXPECT_THAT(codes(check_bytes(custom)), ElementsAre("operator-custom"));
  EXPECT_THAT(codes(check_bytes(custom, {.custom_domains = true})), ElementsAre("operator-unknown"));
}

TEST(CheckOperators, Imports) {
  const ProtoBytes g = graph({.inputs = {value("x", 1, {"2"})}, .outputs = {value("x", 1, {"2"})}});
  EXPECT_THAT(codes(check_bytes(model_bytes(g, {}, {}))), ElementsAre("opset-missing"));
  EXPECT_THAT(codes(check_bytes(model_bytes(g, {}, {}, 2))), IsEmpty());
  EXPECT_THAT(codes(check_bytes(model_bytes(g, {}, {opset("", 1)}, 2))), ElementsAre("opset-invalid"));
  EXPECT_THAT(codes(check_bytes(model_bytes(g, {}, {opset("", 0)}))), ElementsAre("opset-invalid"));
  EXPECT_THAT(codes(check_bytes(model_bytes(g, {}, {opset("", 12), opset("ai.onnx", 13)}))),
              ElementsAre("opset-duplicate"));
  EXPECT_THAT(codes(check_bytes(model_bytes(g, {}, {opset("", 12)}, 99))), ElementsAre("ir-version"));
  EXPECT_THAT(codes(check_bytes(ProtoBytes().varint(1, 8).message(8, opset("", 17)).str())),
              ElementsAre("graph-missing"));
}

TEST(CheckOperators, Arguments) {
  const Report clip = check_bytes(with_opset({node("Clip", {"x", "x", "x"}, {"y"})}, 10));
  ASSERT_THAT(codes(clip), ElementsAre("input-count"));
  EXPECT_EQ(clip.diagnostics[0].expected, "1");
  EXPECT_EQ(clip.diagnostics[0].found, "3");
  EXPECT_THAT(clip.diagnostics[0].hint, HasSubstr("takes as many"));
  EXPECT_THAT(codes(check_bytes(model_of({node("Add", {"x", ""}, {"y"})}))), ElementsAre("input-missing"));
  EXPECT_THAT(codes(check_bytes(model_of({node("Neg", {"x"}, {"y", "z"})}))), ElementsAre("output-count"));
  EXPECT_THAT(codes(check_bytes(model_of({node("Neg", {"x"}, {""}), node("Neg", {"x"}, {"y"})}))),
              ElementsAre("output-missing"));
  EXPECT_THAT(codes(check_bytes(model_of({node("Neg", {"x"}, {"y"}), node("Neg", {}, {})}))),
              ElementsAre("node-empty", "input-count", "output-count"));
}

TEST(CheckAttributes, Names) {
  const Report squeeze = check_bytes(with_opset({node("Squeeze", {"x"}, {"y"}, {ints_attribute("axes", {0})})}, 13));
  ASSERT_THAT(codes(squeeze), ElementsAre("attribute-unknown"));
  EXPECT_EQ(squeeze.diagnostics[0].hint, "from Squeeze-13 on it is an input");
  EXPECT_THAT(codes(check_bytes(model_of({node("Neg", {"x"}, {"y"}, {int_attribute("__note", 1)})}))), IsEmpty());
  EXPECT_THAT(codes(check_bytes(
                  model_of({node("Softmax", {"x"}, {"y"}, {int_attribute("axis", 0), int_attribute("axis", 0)})}))),
              ElementsAre("attribute-duplicate"));
}

TEST(CheckAttributes, TypesAndValues) {
  const auto softmax = [](const ProtoBytes& attribute) {
    return codes(check_bytes(model_of({node("Softmax", {"x"}, {"y"}, {attribute})})));
  };
  EXPECT_THAT(softmax(int_attribute("axis", 0)), IsEmpty());
  EXPECT_THAT(softmax(float_attribute("axis", 0)), ElementsAre("attribute-type"));
  EXPECT_THAT(softmax(ProtoBytes().bytes(1, "axis").varint(3, 0)), ElementsAre("attribute-type"));  // states no type
  EXPECT_THAT(softmax(ProtoBytes().bytes(1, "axis").varint(3, 0).varint(20, 99)), ElementsAre("attribute-type"));
  EXPECT_THAT(softmax(int_attribute("axis", 0).fixed32(2, 1.f)), ElementsAre("attribute-type", "attribute-value"));
  EXPECT_THAT(softmax(reference_attribute("axis", "axis", 2)), ElementsAre("attribute-reference"));
  EXPECT_THAT(
      codes(check_bytes(model_of({node("Constant", {}, {"y"}, {ProtoBytes().bytes(1, "value").varint(20, 4)})}))),
      ElementsAre("attribute-value"));
}

// ---- Functions

std::string with_functions(const std::vector<ProtoBytes>& functions, const std::vector<ProtoBytes>& nodes) {
  return model_bytes(graph({.nodes = nodes, .inputs = {value("x", 1, {"2"})}, .outputs = {value("y", 1, {"2"})}}),
                     functions);
}
ProtoBytes call(std::string_view name, const std::vector<ProtoBytes>& attributes = {}, const Names& inputs = {"x"}) {
  return node(name, inputs, {"y"}, attributes, "", "local");
}

TEST(CheckFunctions, BodiesAndCalls) {
  const ProtoBytes twice = function({.name = "Twice",
                                     .inputs = {"a"},
                                     .outputs = {"b"},
                                     .nodes = {node("Add", {"a", "a"}, {"b"})},
                                     .attributes = {"alpha"}});
  EXPECT_THAT(codes(check_bytes(with_functions({twice}, {call("Twice")}))), IsEmpty());
  EXPECT_THAT(codes(check_bytes(with_functions({twice}, {call("Twice", {}, {"x", "x"})}))), ElementsAre("input-count"));
  const Report attribute = check_bytes(with_functions({twice}, {call("Twice", {float_attribute("alhpa", 1)})}));
  ASSERT_THAT(codes(attribute), ElementsAre("attribute-unread"));
  EXPECT_EQ(attribute.diagnostics[0].hint, "did you mean \"alpha\"?");
  EXPECT_THAT(codes(check_bytes(with_functions({twice, twice}, {call("Twice")}))), ElementsAre("function-duplicate"));
}

TEST(CheckFunctions, NamesInside) {
  const ProtoBytes wrong = function({.name = "F",
                                     .inputs = {"a", "a"},
                                     .outputs = {"b", "b", "c"},
                                     .nodes = {node("Add", {"a", "x"}, {"b"}, {reference_attribute("q", "nope", 1)})}});
  const Report report = check_bytes(with_functions({wrong}, {call("F")}));
  EXPECT_THAT(codes(report), ElementsAre("name-duplicate", "name-unknown", "attribute-reference", "attribute-unknown",
                                         "name-duplicate", "output-unknown"));
  EXPECT_EQ(report.diagnostics[1].path, "function local.F/Add_0");
}

TEST(CheckFunctions, OperatorSetsThatDiffer) {
  const auto with = [](int64_t version, const ProtoBytes& body) {
    return with_functions(
        {function({.name = "F", .inputs = {"a"}, .outputs = {"b"}, .nodes = {body}, .opsets = {opset("", version)}})},
        {call("F")});
  };
  EXPECT_THAT(codes(check_bytes(with(12, node("Softmax", {"a"}, {"b"})))), ElementsAre("function-opset"));
  EXPECT_THAT(codes(check_bytes(with(12, node("Softmax", {"a"}, {"b"})), {.skip_opset_compatibility = true})),
              IsEmpty());
  EXPECT_THAT(codes(check_bytes(with(16, node("Softmax", {"a"}, {"b"})))), IsEmpty());
}

TEST(CheckFunctions, Circles) {
  const auto calling = [](std::string_view name, std::string_view other) {
    return function(
        {.name = name, .inputs = {"a"}, .outputs = {"b"}, .nodes = {node(other, {"a"}, {"b"}, {}, "", "local")}});
  };
  EXPECT_THAT(codes(check_bytes(with_functions({calling("F", "F")}, {call("F")}))), ElementsAre("function-cycle"));
  const Report report = check_bytes(with_functions({calling("F", "G"), calling("G", "F")}, {call("F")}));
  ASSERT_THAT(codes(report), ElementsAre("function-cycle"));
  EXPECT_THAT(report.diagnostics[0].message, HasSubstr("local.F -> local.G -> local.F"));
}

TEST(CheckFunctions, ThirtyThatEachCallTheNextTwiceTakeNoTime) {
  std::vector<ProtoBytes> functions;
  std::vector<std::string> names;
  for (int i = 0; i < 31; ++i) names.push_back("F" + std::to_string(i));
  for (size_t i = 0; i < 30; ++i) {
    functions.push_back(function({.name = names[i],
                                  .inputs = {"a"},
                                  .outputs = {"c"},
                                  .nodes = {node(names[i + 1], {"a"}, {"b"}, {}, "", "local"),
                                            node(names[i + 1], {"b"}, {"c"}, {}, "", "local")}}));
  }
  functions.push_back(
      function({.name = names[30], .inputs = {"a"}, .outputs = {"c"}, .nodes = {node("Neg", {"a"}, {"c"})}}));
  EXPECT_THAT(codes(check_bytes(with_functions(functions, {call("F0")}))), IsEmpty());
  const Report full = check_bytes(with_functions(functions, {call("F0")}), {.full = true});
  EXPECT_THAT(codes(full), ElementsAre("not-implemented"));  // a billion nodes
}

TEST(CheckFunctions, ChainsOfCallsEnd) {
  std::vector<ProtoBytes> functions;
  std::vector<std::string> names;
  for (int i = 0; i <= 5000; ++i) names.push_back("F" + std::to_string(i));
  for (size_t i = 0; i < 5000; ++i) {
    functions.push_back(function({.name = names[i],
                                  .inputs = {"a"},
                                  .outputs = {"b"},
                                  .nodes = {node(names[i + 1], {"a"}, {"b"}, {}, "", "local")}}));
  }
  functions.push_back(
      function({.name = names[5000], .inputs = {"a"}, .outputs = {"b"}, .nodes = {node("Neg", {"a"}, {"b"})}}));
  EXPECT_THAT(codes(check_bytes(with_functions(functions, {call("F0")}))), ElementsAre("function-depth"));
}

}  // namespace
}  // namespace treadle
