// The text of explanations of twelve models at three widths, with made-up times, and the lines that a terminal shows
// first. With the variable TREADLE_TEST_BLESS set, the test writes the texts that it expects.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "report/advice.h"
#include "support/source_dir.h"
#include "support/text_session.h"

namespace treadle::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using testing_support::TextSession;

std::string file(const std::string& path) {
  std::ifstream in(std::string(source_dir()) + "/" + path);
  EXPECT_TRUE(in) << path;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// The model of a case of control flow.
std::string case_model(const std::string& name) {
  const std::string text = file("tests/cases/" + name + ".txt");
  const size_t begin = text.find("== model\n") + 9;
  return text.substr(begin, text.find("\n==", begin) - begin);
}

// Paths as exporters make them, and more rewrites than a list shows.
std::string deep_model() {
  const std::string path =
      "/encoder/layers.0/self_attention/feed_forward/intermediate/activation/approximation/gelu_new";
  std::string body;
  for (int i = 0; i < 30; ++i) body += fmt::format("i{} = Identity (t{})\n t{} = Tanh (i{})\n", i, i, i + 1, i);
  return fmt::format(R"(<ir_version: 10, opset_import: ["" : 21]>
    g (int64 m, float[B,64] x) => (float[B,64] y) {{
      yes = Constant <value = bool {{1}}> ()
      ["{0}/Loop"] y = Loop <body = b (int64 i, bool go, float[B,64] t0) => (bool again, float[B,64] last) {{
        again = Identity (go)
        {1}
        ["{0}/reduce_to_one_row/ReduceMax"] top = ReduceMax <keepdims = 1> (t30)
        ["{0}/write_back/Sub"] last = Sub (t30, top)
      }}> (m, yes, x)
    }})",
                     path, body);
}

constexpr const char* kCells = R"(<ir_version: 10, opset_import: ["" : 21]>
  g (float[20,1,16] x, float[1,32,16] w, float[1,32,8] r, float[1,24,8] w2, float[1,24,8] r2) => (float[20,1,1,8] z) {
    axes = Constant <value = int64[1] {1}> ()
    y = LSTM <hidden_size = 8> (x, w, r)
    h = Squeeze (y, axes)
    z = GRU <hidden_size = 8> (h, w2, r2)
  })";
constexpr const char* kNoLoop = R"(<ir_version: 10, opset_import: ["" : 21]>
  g (float[4,64] x) => (float[4,64] z) { zero = Constant<value_int = 0>() y = Softmax(x) z = CumSum(y, zero) })";

struct Model {
  std::string name, text;
  bool native = false;
};
std::vector<Model> models() {
  return {{"growing_cache", case_model("loop/cache_grows_in_place")},
          {"function", case_model("loop/in_a_function"), true},
          {"branch", case_model("loop/branch_by_iteration")},
          {"levels", case_model("loop/captured_through_levels")},
          {"stacked", case_model("loop/stacked_state"), true},
          {"sequence", case_model("loop/sequence_state")},
          {"scan_in_loop", case_model("scan/in_a_loop")},
          {"two_inputs", case_model("scan/two_inputs")},
          {"unlike_ranks", case_model("if/unlike_ranks")},
          {"cells", kCells, true},
          {"no_loop", kNoLoop},
          {"deep", deep_model()}};
}

// What explain says of a model, with times that are the same on every machine.
Explanation explained(const Model& model) {
  const TextSession session(model.text);
  Explanation e = explain(*session).value();
  e.mode = Jit::kAuto;
  e.methods.clear();
  e.arena_bytes = 4096;
  e.estimated_run_ns = e.outside_ns = 10e3;
  for (size_t i = 0; i < e.loops.size(); ++i) {
    LoopReport& loop = e.loops[i];
    loop.run_ns =
        loop.parent < 0 ? 1e6 / static_cast<double>(i + 1) : e.loops[static_cast<size_t>(loop.parent)].run_ns / 2;
    loop.estimated_ns = loop.run_ns / std::max(loop.iterations_in_run, 1.0);
    loop.measured_ns = loop.outside_ns = 0;
    loop.roof_ns = 50;
    loop.bound = LoopReport::Bound::kStates;
    for (NodeCost& node : loop.nodes) node.ns = 10;
    if (loop.parent < 0) e.estimated_run_ns += loop.run_ns;
    loop.why_not_native = "it will be after about 7 runs of this size";
    loop.runs_until_native = 7;
    if (!model.native) continue;
    loop.tier = LoopReport::Tier::kNative;
    loop.native.compiled = true;
    loop.native.compile_ms = 12.5;
    loop.native.bytes = 4096;
    loop.why_not_native.clear();
    loop.runs_until_native = -1;
  }
  std::ranges::sort(e.nodes, {}, [](const NodeCost& n) { return std::pair(n.loop, n.node); });
  for (size_t i = 0; i < e.nodes.size(); ++i) e.nodes[i].ns = 9e3 / static_cast<double>(i + 1);
  return e;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(ExplainText, IsAsExpectedAtEveryWidth) {
  for (const Model& model : models()) {
    const Explanation e = explained(model);
    std::string found;
    for (const size_t width : {60, 100, 160}) {
      found += fmt::format("== {} columns\n{}", width, to_text(e, {.width = width}));
    }
    found += "== all, 100 columns, ASCII\n" + to_text(e, {.utf8 = false, .all = true});
    const std::string path = "tests/report/texts/" + model.name + ".txt";
    if (std::getenv("TREADLE_TEST_BLESS")) std::ofstream(std::string(source_dir()) + "/" + path) << found;
    EXPECT_EQ(found, file(path)) << model.name;
  }
}

TEST(ExplainText, HasNoLineBeyondTheWidth) {
  for (const Model& model : models()) {
    const Explanation e = explained(model);
    for (const size_t width : {40, 60, 79, 80, 100, 160}) {
      for (const bool all : {false, true}) {
        for (const std::string& line : lines_of(to_text(e, {.width = width, .all = all}))) {
          EXPECT_LE(columns_of(line), width) << model.name << ": " << line;
        }
      }
    }
    const std::string ascii = to_text(e, {.utf8 = false});
    EXPECT_TRUE(std::ranges::all_of(ascii, [](char c) { return static_cast<unsigned char>(c) < 0x80; })) << model.name;
  }
}

TEST(ExplainText, AnswersOnTheFirstScreen) {
  for (const Model& model : models()) {
    for (const size_t width : {80, 100, 160}) {
      std::vector<std::string> lines = lines_of(to_text(explained(model), {.width = width}));
      EXPECT_THAT(lines[0], HasSubstr(" a run")) << model.name;
      lines.resize(std::min<size_t>(lines.size(), 24));
      const auto at = std::ranges::find(lines, "what would help");
      ASSERT_TRUE(at != lines.end() && at + 1 != lines.end()) << model.name;
      EXPECT_THAT(at[1], StartsWith("  "));
    }
  }
}

TEST(ExplainText, AllListsWhatTheFirstTextCounts) {
  const Explanation e = explained(models().back());
  const std::string brief = to_text(e, {.width = 160}), all = to_text(e, {.width = 160, .all = true});
  EXPECT_THAT(brief, HasSubstr("--rewritten, or rewritten=True, lists them."));
  EXPECT_THAT(brief, Not(HasSubstr("its result was its operand")));
  EXPECT_THAT(all, HasSubstr("its result was its operand"));
  EXPECT_GT(lines_of(all).size(), lines_of(brief).size() + 30);
}

TEST(TextLayout, LeavesOutTheMiddleOfPaths) {
  EXPECT_EQ(shortened("/Loop_3:body/vad/encoder/0/Conv", 40, true), "/Loop_3:body/vad/encoder/0/Conv");
  EXPECT_EQ(shortened("/Loop_3:body/vad/encoder/0/reparam_conv/Conv", 30, true), "/Loop_3:b…/0/reparam_conv/Conv");
  EXPECT_EQ(shortened("/Loop_3:body/vad/encoder/0/reparam_conv/Conv", 30, false), "/Loop_3:b.../reparam_conv/Conv");
  EXPECT_EQ(shortened("äöüäöüäöüäöü", 5, true), "ä…äöü");
  EXPECT_EQ(shortened("abc", 1, true), "…");
  EXPECT_EQ(cut_off("Mul+Add+Tanh", 8, true), "Mul+Add…");
}

TEST(TextLayout, DrawsBarsInEighths) {
  EXPECT_EQ(bar(0.5, 4, true), "██  ");
  EXPECT_EQ(bar(0.5, 4, false), "##  ");
  EXPECT_EQ(bar(1.0 / 16, 4, true), "▎   ");
  EXPECT_EQ(bar(2, 3, true), "███");
}

TEST(TextLayout, TellsTimesWithThreeDigits) {
  EXPECT_EQ(duration_text(4.56), "4.56 ns");
  EXPECT_EQ(duration_text(999.6), "1 us");
  EXPECT_EQ(duration_text(17.1e6), "17.1 ms");
  EXPECT_EQ(duration_text(2.5e9), "2.5 s");
}

// --- what would help: an explanation to which exactly one rule applies, for each rule

Explanation one_loop() {
  Explanation e;
  e.estimated_run_ns = 100;
  e.instructions = 9;
  e.loops.resize(1);
  LoopReport& loop = e.loops[0];
  loop.node = "/L";
  loop.op = "Loop";
  loop.run_ns = 90;
  loop.tier = LoopReport::Tier::kNative;
  loop.states = 1;
  return e;
}

NodeCost cost(const std::string& node, const std::string& op, double ns) {
  NodeCost made;
  made.node = node;
  made.op = op;
  made.ns = ns;
  return made;
}

TEST(Advice, SaysNothingOfALoopThatRunsWell) {
  EXPECT_THAT(advice_on(one_loop()), IsEmpty());
}

TEST(Advice, NamesSizesThatAreOpen) {
  Explanation e = one_loop();
  e.guarded = 4;
  e.is_specific = false;
  e.open_sizes = {"batch", "time"};
  EXPECT_THAT(advice_on(e),
              ElementsAre("--dim batch=SIZE --dim time=SIZE: 4 of 9 instructions wait for sizes that only a "
                          "run knows"));
  e.is_specific = true;
  EXPECT_THAT(advice_on(e), IsEmpty()) << "the inputs have said the sizes";
}

TEST(Advice, NamesWhatKeepsLoopsFromNativeCode) {
  Explanation e = one_loop();
  e.loops[0].tier = LoopReport::Tier::kProgram;
  e.mode = Jit::kOff;
  EXPECT_THAT(advice_on(e), ElementsAre(HasSubstr("native code, which is switched off")));
  e.mode = Jit::kAuto;
  e.loops[0].why_not_native = "libtreadle_jit.so is not installed";
  EXPECT_THAT(advice_on(e), ElementsAre(HasSubstr("pip install \"treadle[jit]\"")));
  e.loops[0].why_not_native = "it will be after about 3 runs of this size";
  e.loops[0].runs_until_native = 3;
  EXPECT_THAT(advice_on(e),
              ElementsAre("session.compile(), or jit=always: else /L is native code after about 3 runs of "
                          "this size"));
  e.loops[0].runs_until_native = 12'345;
  EXPECT_THAT(advice_on(e), ElementsAre(HasSubstr("after about 12000 runs")));
  e.loops[0].run_ns = 5;
  EXPECT_THAT(advice_on(e), IsEmpty()) << "a small part of the run";
}

TEST(Advice, NamesTheNodeThatNeedsTheEngine) {
  Explanation e = one_loop();
  e.loops[0].obstacles = {{"/L:body/CumSum", "CumSum", "the size of 'c' is known only at run time"}, {"b", "B", ""}};
  EXPECT_THAT(advice_on(e), ElementsAre("fixed sizes in /L: the size of 'c' is known only at run time (CumSum "
                                        "/L:body/CumSum); so for 1 more node"));
}

TEST(Advice, HalvesWeightsThatMemoryBounds) {
  Explanation e = one_loop();
  e.loops[0].bound = LoopReport::Bound::kMemory;
  e.loops[0].bytes = 1e9;
  EXPECT_THAT(advice_on(e),
              ElementsAre(HasSubstr("weights in float16 (--weights f16): an iteration of /L reads 954 MB")));
  e.loops[0].rewrites.emplace_back().change = opt::Change::kNarrowed;
  EXPECT_THAT(advice_on(e), IsEmpty());
}

TEST(Advice, NamesKernelsThatTakeTheTime) {
  Explanation e = one_loop();
  e.loops[0].calls = {{"/L:body/Conv", "Conv", ""}};
  e.loops[0].nodes = {cost("/L:body/Conv", "Conv", 80), cost("/L:body/Add", "Add", 20)};
  EXPECT_THAT(advice_on(e),
              ElementsAre("less work in the kernels of /L (Conv): they take 80 % of an iteration, and native "
                          "code calls them"));
  e.loops[0].nodes[1].ns = 200;
  EXPECT_THAT(advice_on(e), IsEmpty());
}

TEST(Outlook, ComparesNodesWithTheirWork) {
  Explanation e = one_loop();
  LoopReport& loop = e.loops[0];
  loop.iterations = 300;
  loop.operations = 5;
  loop.estimated_ns = 100;
  EXPECT_EQ(outlook_of(e),
            "will profit: 1 loop carries state, 300 iterations known; an iteration of /L takes about 100 ns, with 5 "
            "operations");
  loop.estimated_ns = 50e3;
  EXPECT_THAT(outlook_of(e), StartsWith("some to gain: "));
  loop.estimated_ns = 5e6;
  EXPECT_THAT(outlook_of(e), StartsWith("little to gain: "));
  e.loops.clear();
  e.nodes = {cost("a", "Conv", 1), cost("b", "Gemm", 1), cost("c", "Conv", 1)};
  EXPECT_EQ(outlook_of(e), "little to gain: no loop; 2 Conv, 1 Gemm");
}

}  // namespace
}  // namespace treadle::report
