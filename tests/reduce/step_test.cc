// Each step on a small model: what it makes of it.

#include "reduce/step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/text.h"
#include "reduce/model_of_text.h"
#include "wire/clone.h"

namespace treadle::reduce {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const Step& step_named(std::string_view name) {
  for (const auto& step : steps()) {
    if (step->name() == name) return *step;
  }
  ADD_FAILURE() << "no step " << name;
  return *steps()[0];
}

// A model of ONNX text, without its head.
class Model {
 public:
  explicit Model(const std::string& graph, const std::string& head = kHead) : bytes_(bytes_of(graph, head)) {
    model_ = std::move(wire::parse_model(bytes_).value());
    learn(*model_, bytes_, "", facts_);
  }

  size_t count(const char* step) { return step_named(step).count(*model_); }
  // The text of the graph when a step has been applied to some of its items; empty if it cannot be.
  std::string after(const char* step, size_t first, size_t last, size_t way = 0) {
    Candidate candidate(facts_);
    candidate.model = wire::clone(*model_, candidate.arena);
    if (!step_named(step).apply(candidate, first, last, way)) return "";
    std::string text = ir::print_text(candidate.model);
    // Where some nodes state the domain of ONNX and others do not, the printer tells them apart by a dot.
    for (size_t at = text.find("= ."); at != std::string::npos; at = text.find("= .")) text.erase(at + 2, 1);
    return text;
  }
  const Facts& facts() const { return facts_; }

 private:
  std::string bytes_;
  wire::Parsed<wire::ModelProto> model_;
  Facts facts_;
};

// Lines of text without spaces at their ends and beginnings, so that tests need not know the printer's layout.
std::string packed(const std::string& text) {
  std::string packed;
  for (const char c : text) {
    const bool is_space = c == ' ' || c == '\n';
    if (!is_space || (!packed.empty() && packed.back() != ' ')) packed += is_space ? ' ' : c;
  }
  return packed;
}

constexpr const char* kChain = R"(g (float[2] x) => (float[2] y, float[2] z) {
  a = Neg(x)  b = Abs(a)  y = Exp(b)  z = Log(a) })";

TEST(ReduceStep, OutputsGoWithWhatOnlyTheyNeed) {
  Model model(kChain);
  ASSERT_EQ(model.count("outputs"), 2u);
  const std::string text = model.after("outputs", 0, 1);
  EXPECT_THAT(text, HasSubstr("Log (a)"));
  EXPECT_THAT(text, Not(HasSubstr("Exp")));
  EXPECT_THAT(text, Not(HasSubstr("Abs")));
  EXPECT_EQ(model.after("outputs", 0, 2), "") << "one output stays";
}

TEST(ReduceStep, TheTailGoesAndWhatItReadIsShown) {
  Model model(kChain);
  const std::string text = model.after("nodes at the end", 1, 4);
  EXPECT_THAT(text, HasSubstr("Neg (x)"));
  EXPECT_THAT(packed(text), HasSubstr("=> (float[2] a)"));
  EXPECT_THAT(text, Not(HasSubstr("Log")));
}

TEST(ReduceStep, ANodeGivesWayToZeros) {
  Model model(kChain);
  const std::string text = model.after("nodes", 1, 2);
  EXPECT_THAT(text, HasSubstr("float[2] b = {0, 0}"));
  EXPECT_THAT(text, HasSubstr("y = Exp (b)"));
}

TEST(ReduceStep, ANodeGivesWayToItsInput) {
  Model model(kChain);
  EXPECT_THAT(model.after("nodes", 1, 2, 1), HasSubstr("y = Exp (a)"));
  EXPECT_THAT(model.after("nodes", 0, 2, 1), HasSubstr("y = Exp (x)")) << "a chain of them, to its beginning";
  const std::string text = model.after("nodes", 2, 3, 1);
  EXPECT_THAT(packed(text), HasSubstr("=> (float[2] b, float[2] z)")) << "an output of the model";
}

TEST(ReduceStep, ANodeGivesWayToAnInputOfTheModel) {
  Model model(kChain);
  EXPECT_THAT(packed(model.after("nodes", 1, 2, 2)), HasSubstr("(float[2] x, float[2] b)"));
}

TEST(ReduceStep, WhatNobodyReadBeforeStays) {
  Model model(R"(g (float[2] x) => (float[2] y) { odd = Unheard(x)  a = Neg(x)  y = Exp(a) })");
  EXPECT_TRUE(model.facts().dead_nodes.contains("odd"));
  EXPECT_THAT(model.after("nodes", 1, 2), HasSubstr("Unheard"));
  EXPECT_THAT(model.after("nodes", 0, 1), Not(HasSubstr("Unheard")));
}

TEST(ReduceStep, NamesThatNothingDefinedStayUndefined) {
  Model model(R"(g (float[2] x) => (float[2] y) { a = Neg(x)  y = Add(a, nowhere) })");
  EXPECT_THAT(model.after("nodes", 0, 1), HasSubstr("Add (a, nowhere)"));
  EXPECT_THAT(model.after("nodes", 0, 1), Not(HasSubstr("nowhere =")));
}

TEST(ReduceStep, InputsBecomeZeros) {
  Model model(kChain);
  const std::string text = model.after("inputs", 0, 1);
  EXPECT_THAT(text, HasSubstr("float[2] x = {0, 0}"));
  EXPECT_THAT(packed(text), HasSubstr("g () =>"));
}

TEST(ReduceStep, SequencesBecomeEmpty) {
  Model model(R"(g (float[2] x) => (float[2] y) {
    s = SequenceConstruct(x, x)  i = Constant<value = int64 {0}>()  y = SequenceAt(s, i) })");
  EXPECT_THAT(model.after("nodes", 0, 1), HasSubstr("s = SequenceEmpty <dtype: int = 1>"));
}

TEST(ReduceStep, CallsOfFunctionsBecomeTheirNodes) {
  Model model(R"(g (float[2] x) => (float[2] y) { h = local.f<k = 3>(x)  y = local.f<k = 4>(h) }
    <domain: "local", opset_import: ["" : 17]>
    f <k> (a) => (b) { t = LeakyRelu<alpha = 0.5>(a)  u = Unsqueezed<axis : int = @k>(t)  b = Neg(u) })",
              R"(<ir_version: 8, opset_import: ["" : 17, "local" : 1]>)");
  ASSERT_EQ(model.count("calls of functions"), 2u);
  const std::string text = model.after("calls of functions", 0, 2);
  EXPECT_THAT(text, HasSubstr("t_1 = LeakyRelu"));
  EXPECT_THAT(text, HasSubstr("axis: int = 3"));
  EXPECT_THAT(text, HasSubstr("axis: int = 4"));
  EXPECT_THAT(text, HasSubstr("y = Neg ("));
  EXPECT_THAT(text, Not(HasSubstr("= local.f")));
}

constexpr const char* kBranches = R"(g (bool c, float[2] x) => (float[2] y) {
  p, q = If(c) <then_branch = t () => (float[2] a, float[2] b) { a = Neg(x)  b = Abs(a) },
                else_branch = e () => (float[2] a, float[2] x2) { a = Exp(x)  x2 = Log(x) }>
  y = Add(p, q) })";

TEST(ReduceStep, BranchesTakeThePlaceOfTheirIf) {
  Model model(kBranches);
  const std::string one = model.after("branches", 0, 1, 0);
  EXPECT_THAT(one, HasSubstr("p = Neg (x)"));
  EXPECT_THAT(one, HasSubstr("q = Abs (p)"));
  EXPECT_THAT(one, Not(HasSubstr("If")));
  EXPECT_THAT(model.after("branches", 0, 1, 1), HasSubstr("q = Log (x)"));
}

TEST(ReduceStep, ResultsOfBranchesGo) {
  Model model(kBranches);
  ASSERT_EQ(model.count("states and results of loops"), 2u);
  const std::string text = model.after("states and results of loops", 1, 2);
  EXPECT_THAT(text, HasSubstr("p = If"));
  EXPECT_THAT(text, HasSubstr("float[2] q = {0, 0}"));
  EXPECT_THAT(text, Not(HasSubstr("Abs")));
  EXPECT_EQ(model.after("states and results of loops", 0, 2), "") << "one stays";
}

constexpr const char* kLoop = R"(g (float[2] x) => (float[2] y, float[N, 2] rows) <int64 n = {8}, bool c = {1}> {
  y, z, rows = Loop(n, c, x, x)
    <body = b (int64 i, bool go, float[2] s, float[2] t) => (bool go2, float[2] s2, float[2] t2, float[2] row) {
      go2 = Identity(go)  s2 = Neg(s)  t2 = Add(s, t)  row = Exp(t) }> })";

TEST(ReduceStep, ALoopBecomesItsFirstIteration) {
  Model model(kLoop);
  const std::string text = model.after("loops", 0, 1);
  EXPECT_THAT(text, HasSubstr("y = Neg (x)"));
  EXPECT_THAT(text, HasSubstr("rows_1 = Exp (x)"));
  EXPECT_THAT(text, HasSubstr("rows = Unsqueeze (rows_1, axes_1)"));
  EXPECT_THAT(text, Not(HasSubstr("Loop")));
}

TEST(ReduceStep, AStateIsWhatItBeginsWith) {
  Model model(kLoop);
  ASSERT_EQ(model.count("states and results of loops"), 3u);
  const std::string text = model.after("states and results of loops", 1, 2);
  EXPECT_THAT(text, HasSubstr("y, rows = Loop (n, c, x)"));
  EXPECT_THAT(text, HasSubstr("row = Exp (x)"));
  EXPECT_THAT(text, Not(HasSubstr("t2")));
}

TEST(ReduceStep, ABodyReturnsNoValueFromAroundIt) {
  Model model(kLoop);
  const std::string text = model.after("nodes", 4, 5, 1);  // row = Exp(t)
  EXPECT_THAT(text, Not(HasSubstr("Exp")));
  Model delayed(R"(g (float[2] x) => (float[2] y) <int64 n = {8}> {
    y, z = Loop(n, , x, x) <body = b (int64 i, bool go, float[2] s, float[2] t) => (bool go, float[2] t, float[2] t2) {
      t2 = Add(s, t) }> })");
  EXPECT_THAT(delayed.after("states and results of loops", 1, 2), HasSubstr("t = Identity (x)"));
}

TEST(ReduceStep, CollectedRowsGo) {
  Model model(kLoop);
  const std::string text = model.after("states and results of loops", 2, 3);
  EXPECT_THAT(text, HasSubstr("y, z = Loop"));
  EXPECT_THAT(text, Not(HasSubstr("rows")));
}

constexpr const char* kScan = R"(g (float[2] s, float[4, 2] u, float[4, 3] v) => (float[2] y, float[4, 2] rows) {
  y, rows = Scan(s, u, v) <num_scan_inputs = 2, scan_input_axes = [0, 0], body =
    b (float[2] a, float[2] p, float[3] q) => (float[2] a2, float[2] row) { a2 = Add(a, p)  m = ReduceSum(q)  row = Mul(p, m) }> })";

TEST(ReduceStep, AScanBecomesItsFirstIteration) {
  Model model(kScan);
  const std::string text = model.after("scans", 0, 1);
  EXPECT_THAT(text, HasSubstr("p_1 = Gather <axis: int = 0> (u, first_1)"));
  EXPECT_THAT(text, HasSubstr("y = Add (s, p_1)"));
}

TEST(ReduceStep, ScannedInputsGo) {
  Model model(kScan);
  ASSERT_EQ(model.count("states and results of loops"), 4u);
  const std::string text = model.after("states and results of loops", 3, 4);
  EXPECT_THAT(text, HasSubstr("= Scan (s, u)"));
  EXPECT_THAT(text, HasSubstr("num_scan_inputs: int = 1"));
  EXPECT_THAT(text, HasSubstr("scan_input_axes: ints = [0]"));
  EXPECT_THAT(text, HasSubstr("float[3] q = {0, 0, 0}"));
  EXPECT_EQ(model.after("states and results of loops", 2, 4), "") << "a Scan needs one";
}

TEST(ReduceStep, LoopsMakeFewerIterations) {
  Model model(kLoop);
  EXPECT_THAT(model.after("iterations", 0, 1, 0), HasSubstr("int64 iterations_1 = {1}"));
  EXPECT_THAT(model.after("iterations", 0, 1, 1), HasSubstr("int64 iterations_1 = {4}"));
  EXPECT_THAT(model.after("iterations", 0, 1, 2), HasSubstr("int64 iterations_1 = {7}"));
}

TEST(ReduceStep, ArgumentsAndAttributesGo) {
  Model model(R"(g (float[2] x) => (float[2] y) <float low = {0}, float high = {1}> {
    a = Clip(x, low, high)  y = Softmax<axis = 0>(a) })");
  ASSERT_EQ(model.count("arguments"), 4u);
  EXPECT_THAT(model.after("arguments", 1, 2), HasSubstr("Clip (x, \"\", high)"));
  EXPECT_THAT(model.after("arguments", 1, 3), HasSubstr("Clip (x)"));
  EXPECT_THAT(model.after("arguments", 1, 2, 1), HasSubstr("Clip (x, high)"));
  ASSERT_EQ(model.count("attributes"), 1u);
  EXPECT_THAT(model.after("attributes", 0, 1), HasSubstr("y = Softmax (a)"));
}

constexpr const char* kSizes = R"(g (float[2, 4] x) => (float[2, 12] y) <float[4, 12] w = {
   1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,  1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
   1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,  1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, int64[2] s = {2, 12}> {
  a = MatMul(x, w)  y = Reshape(a, s) })";

TEST(ReduceStep, AxesOfOneSizeShrinkTogether) {
  Model model(kSizes);
  ASSERT_EQ(model.count("sizes"), 3u) << "2, 4 and 12";
  const std::string text = packed(model.after("sizes", 1, 2, 0));  // 4 -> 1, and 12 -> 3
  EXPECT_THAT(text, HasSubstr("float[2,1] x"));
  EXPECT_THAT(text, HasSubstr("float[1,3] w = {1, 2, 3}"));
  EXPECT_THAT(text, HasSubstr("int64[2] s = {2, 3}"));
  EXPECT_THAT(text, HasSubstr("float[2,3] y"));
  EXPECT_THAT(packed(model.after("sizes", 1, 2, 4)), HasSubstr("float[2,12] w")) << "4 alone, halved";
}

TEST(ReduceStep, ConstantsBecomeSimple) {
  Model model(R"(g (float[3] x) => (float[3] y) <float[3] w = {1.234, -5.67, 8000}> { y = Mul(x, w) })");
  ASSERT_EQ(model.count("constants"), 1u);
  EXPECT_THAT(model.after("constants", 0, 1, 0), HasSubstr("w = {0, 0, 0}"));
  EXPECT_THAT(model.after("constants", 0, 1, 1), HasSubstr("float[1] w = {1.234}"));
  EXPECT_THAT(model.after("constants", 0, 1, 2), HasSubstr("w = {1, -6, 8000}"));
}

TEST(ReduceStep, DescriptionsAndUnreadPartsGo) {
  Model model(R"(g (float[3] x) => (float[3] y) <float[3] unread = {1, 2, 3}, float[3] a> {
    [the_node] a = Neg(x)  y = Exp(a) })",
              R"(<ir_version: 8, opset_import: ["" : 17, "other" : 1], producer_name: "me", doc_string: "about">)");
  const std::string text = model.after("descriptions", 0, model.count("descriptions"));
  for (const char* gone : {"unread", "the_node", "other", "me\"", "about", "float[3] a"}) {
    EXPECT_THAT(text, Not(HasSubstr(gone)));
  }
}

TEST(ReduceStep, InnerNamesBecomeShort) {
  Model model(kLoop);
  const std::string text = model.after("names", 0, 1);
  EXPECT_THAT(text, HasSubstr("= Loop (v"));
  EXPECT_THAT(text, Not(HasSubstr("go2")));
  EXPECT_THAT(text, HasSubstr("rows")) << "an output of the model";
}

}  // namespace
}  // namespace treadle::reduce
