#include "opt/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "op/loop_view.h"
#include "op/print.h"
#include "session/session.h"
#include "support/source_dir.h"
#include "support/test_graph.h"

namespace treadle::opt {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using namespace testing_support;  // NOLINT(google-build-using-namespace)

TEST(Pipeline, EveryPassHasANameOfItsOwnAndAReason) {
  std::set<std::string_view> names;
  for (const Pass& pass : passes()) {
    EXPECT_TRUE(names.insert(pass.name).second) << pass.name;
    EXPECT_FALSE(pass.reason.empty()) << pass.name;
    EXPECT_EQ(&passes()[pass_named(pass.name).value()], &pass);
  }
}

TEST(Pipeline, AnUnknownNameIsAnErrorWithTheNamesThatThereAre) {
  const auto set = PassSet::named("hoist-invariants,nonsense");
  ASSERT_FALSE(set.ok());
  EXPECT_EQ(set.error().code(), Code::kInvalidArgument);
  EXPECT_THAT(set.error().message(), HasSubstr("there is no pass 'nonsense'"));
  for (const Pass& pass : passes()) EXPECT_THAT(set.error().message(), HasSubstr(std::string(pass.name)));
}

TEST(Pipeline, ASetHoldsWhatItWasGiven) {
  EXPECT_TRUE(PassSet::named("")->empty());
  const auto set = PassSet::named("sink-outputs,read-sequences");
  ASSERT_TRUE(set.ok());
  EXPECT_TRUE(set->contains(pass_named("sink-outputs").value()));
  EXPECT_FALSE(set->contains(pass_named("unstack-states").value()));
  const PipelineOptions options{.off = *set};
  EXPECT_FALSE(is_on("read-sequences", options));
  EXPECT_TRUE(is_on("unstack-states", options));
  EXPECT_FALSE(is_on("solve-recurrences", options));
  EXPECT_TRUE(is_on("solve-recurrences", {.associative = true}));
  EXPECT_FALSE(is_on("hoist-invariants", {.optimize = false}));
  EXPECT_TRUE(is_on("narrow-weights", {.optimize = false, .half_weights = true}));
}

// The nodes in the body of a Loop that contains an Exp of an invariant value.
std::vector<std::string> body_of_a_loop(const PipelineOptions& options) {
  TestGraph t({int64s({}), floats({2}), floats({2})}, 1);
  const auto in = t.begin_loop(t.in(0), {t.in(1)});
  ir::Value* sum = t->call("Mul", {in[2], t->call("Exp", {t.in(2)})});
  t->set_output(0, t.end_loop({sum})[0]);
  std::vector<plan::InputSpec> knowledge;
  for (const Type& type : t.types()) knowledge.push_back({type, {}});
  const auto made = session::optimize(t.graph(), knowledge, options);
  EXPECT_TRUE(made.ok());
  std::vector<std::string> ops;
  ir::for_each_node(std::as_const(*made->graph).top(), [&](const ir::Node& node) {
    if (node.parent->parent_node) ops.push_back(node.op->name);
  });
  return ops;
}

TEST(Pipeline, APassThatIsOffChangesNothing) {
  EXPECT_THAT(body_of_a_loop({}), ElementsAre("Mul"));
  EXPECT_THAT(body_of_a_loop({.off = PassSet::named("hoist-invariants").value()}), ElementsAre("Exp", "Mul"));
}

TEST(Pipeline, TheGraphIsShownBehindEachPassInTheirOrder) {
  std::vector<std::string_view> seen, expected;
  PipelineOptions options;
  options.after = [&](const Pass& pass, const ir::Graph& graph) {
    seen.push_back(pass.name);
    EXPECT_TRUE(ir::verify(graph).ok()) << pass.name;
  };
  body_of_a_loop(options);
  for (const Pass& pass : passes()) {
    if (pass.stage >= Stage::kLowering && is_on(pass, options)) expected.push_back(pass.name);
  }
  EXPECT_EQ(seen, expected);
}

// --- The models of tests/cases.

struct Case {
  std::string name, model;

  // Null if it does not load.
  std::unique_ptr<Session> open(const SessionOptions& options) const {
    auto session = Session::from_bytes(std::as_bytes(std::span(model)), options);
    EXPECT_TRUE(session.ok()) << name << ": " << session.error().to_string();
    return session.ok() ? std::move(session).value() : nullptr;
  }
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const auto& file :
       std::filesystem::recursive_directory_iterator(std::filesystem::path(source_dir()) / "tests" / "cases")) {
    if (file.path().extension() != ".txt") continue;
    std::stringstream read;
    read << std::ifstream(file.path()).rdbuf();
    const std::string text = read.str();
    const std::string mark = "== model\n";
    const size_t begin = text.find(mark) + mark.size();
    cases.push_back({file.path().filename().string(), text.substr(begin, text.find("== run") - begin)});
  }
  return cases;
}

std::vector<plan::InputSpec> knowledge_of(const ir::Graph& graph) {
  std::vector<plan::InputSpec> knowledge;
  for (const ir::Value* input : graph.top().inputs) knowledge.push_back({input->type, {}});
  return knowledge;
}

// --- Only passes rewrite a graph.

std::string every_name() {
  std::string names;
  for (const Pass& pass : passes()) names += (names.empty() ? "" : ",") + std::string(pass.name);
  return names;
}

// The graph after one pass is the graph before the next pass of its stage; the graph after the last one is planned.
TEST(Pipeline, BetweenPassesNothingChangesTheGraphOfACase) {
  for (const Case& c : all_cases()) {
    const auto session = c.open({});
    ASSERT_NE(session, nullptr);
    const Pass* before = nullptr;
    std::string left;
    PipelineOptions options;
    options.before = [&](const Pass& pass, const ir::Graph& graph) {
      if (before && before < &pass && before->stage == pass.stage) {
        EXPECT_EQ(print(graph), left) << c.name << ": between " << before->name << " and " << pass.name;
      }
    };
    options.after = [&](const Pass& pass, const ir::Graph& graph) {
      before = &pass;
      left = print(graph);
    };
    const auto made = session::optimize(session->graph(), knowledge_of(session->graph()), options);
    if (made.ok()) EXPECT_EQ(print(*made->graph), left) << c.name;
  }
}

TEST(Pipeline, WithAllPassesOffACaseIsLoadedAndSpecialisedAsWithoutOptimisation) {
  const PassSet all = PassSet::named(every_name()).value();
  for (const Case& c : all_cases()) {
    SessionOptions off, plain;
    off.passes_off = every_name();
    plain.optimize = false;
    const auto without = c.open(off), expected = c.open(plain);
    ASSERT_TRUE(without && expected);
    EXPECT_EQ(print(without->graph()), print(expected->graph())) << c.name;
    const auto knowledge = knowledge_of(expected->graph());
    const auto a = session::optimize(without->graph(), knowledge, {.off = all});
    const auto b = session::optimize(expected->graph(), knowledge, {.optimize = false, .off = all});
    ASSERT_EQ(a.ok(), b.ok()) << c.name;
    if (a.ok()) EXPECT_EQ(print(*a->graph), print(*b->graph)) << c.name;
  }
}

// A CastLike of the model is a Cast once the model is loaded.
TEST(Pipeline, ARewriteOfATypedModelCanBeSwitchedOff) {
  const Case c{"cast", R"(<ir_version: 10, opset_import: ["" : 22]>
cast (float[2] x, int64[2] y) => (int64[2] z) { z = CastLike (x, y) })"};
  for (const char* const off : {"", "replace-cast-like"}) {
    SessionOptions options;
    options.passes_off = off;
    const auto session = c.open(options);
    ASSERT_NE(session, nullptr);
    EXPECT_EQ(session->graph().top().nodes.front()->op->name, *off ? "CastLike" : "Cast");
  }
}

// Nodes without readers are neither lowered nor planned, unless the passes that remove them are off.
TEST(Pipeline, WhatNothingReadsGoesByPassesThatCanBeSwitchedOff) {
  TestGraph t({floats({2})}, 1);
  t->call("Exp", {t.in(0)});
  t->set_output(0, t->call("Neg", {t.in(0)}));
  const auto count = [&](std::string_view off) {
    const auto made =
        session::optimize(t.graph(), knowledge_of(t.graph()), {.optimize = false, .off = PassSet::named(off).value()});
    return made.ok() ? made->graph->top().nodes.size() : 0;
  };
  EXPECT_EQ(count(""), 1U);
  EXPECT_EQ(count("drop-unread-nodes"), 1U);
  EXPECT_EQ(count("drop-decided-nodes"), 1U);
  EXPECT_EQ(count("drop-unread-nodes,drop-decided-nodes"), 2U);
}

// --- No pass changes a loop without a remark.

// The nodes in the loops of a graph, by name; names of the loops around and inside of each.
struct Loops {
  std::map<std::string, std::multiset<std::string>> bodies;
  std::map<std::string, std::set<std::string>> related;

  explicit Loops(const ir::Graph& graph) {
    std::vector<std::string> around;
    collect(graph.top(), around);
  }

  void collect(const ir::Region& region, std::vector<std::string>& around) {
    for (const auto& node : region.nodes) {
      const bool loops = is_loop(*node);
      if (loops) {
        const std::string name(node->name);
        const LoopView view(*node);
        bodies[name].insert(fmt::format("{} {} {} {}:{}", node->op->name, view.states(), view.scan_inputs(),
                                        view.scan_outputs(), operators(view.body())));
        related[name].insert(name);
        for (const std::string& outer : around) {
          related[name].insert(outer);
          related[outer].insert(name);
        }
        around.push_back(name);
      }
      for (const auto& inner : node->regions) collect(*inner, around);
      if (loops) around.pop_back();
    }
  }

  static std::string operators(const ir::Region& region) {
    std::string text;
    ir::for_each_node(region, [&](const ir::Node& node) { text += " " + node.op->name; });
    return text;
  }
};

void expect_remarks(const ir::Graph& graph, const std::vector<plan::InputSpec>& knowledge, bool native,
                    const std::string& what) {
  auto made = plan::specialize(graph, knowledge, {});
  if (!made.ok()) return;  // does not accept these sizes
  const PipelineOptions options{.native = native, .associative = true};
  for (const Pass& pass : passes()) {
    if (pass.stage != Stage::kPlanning || !is_on(pass, options)) continue;
    const Loops before(*made->graph);
    Remarks remarks;
    pass.run(*made->graph, &remarks, options);
    const Loops after(*made->graph);
    for (const auto& [name, body] : before.bodies) {
      const auto left = after.bodies.find(name);
      if (left != after.bodies.end() && left->second == body) continue;
      const auto& entries = remarks.entries();
      const bool told = std::any_of(entries.begin(), entries.end(),
                                    [&](const Remark& entry) { return before.related.at(name).contains(entry.loop); });
      EXPECT_TRUE(told) << what << ": " << pass.name << " changed " << name << " from\n"
                        << testing::PrintToString(body) << "\nto\n"
                        << (left == after.bodies.end() ? "nothing" : testing::PrintToString(left->second));
    }
  }
}

// The model's sizes, and 5 for all sizes that it leaves open.
void expect_remarks(const ir::Graph& graph, const std::string& what) {
  for (const bool closed : {false, true}) {
    std::vector<plan::InputSpec> knowledge;
    for (const ir::Value* input : graph.top().inputs) {
      Type type = input->type;
      if (type.is_tensor() && type.has_shape && closed) {
        for (Dim& d : type.shape) d = d.value_or(5);
      }
      knowledge.push_back({std::move(type), {}});
    }
    for (const bool native : {false, true}) expect_remarks(graph, knowledge, native, what);
  }
}

TEST(Pipeline, NoPassChangesALoopOfACaseWithoutARemark) {
  const std::vector<Case> cases = all_cases();
  EXPECT_GT(cases.size(), 40U);
  for (const Case& c : cases) {
    const auto session = c.open({});
    ASSERT_NE(session, nullptr);
    expect_remarks(session->graph(), c.name);
  }
}

// One loop with everything for which a pass looks.
TEST(Pipeline, NoPassChangesALoopOfManyKindsWithoutARemark) {
  for (const int64_t iterations : {1, 9, 400}) {
    TestGraph t({floats({2}), floats({Dim(iterations), 2}), floats({3, 2}), floats({2, 2}), bools({})}, 3);
    const auto in = t.begin_scan({t.in(0), t.in(0)}, {t.in(1)}, 2);
    ir::Value* largest = t->call("Max", {in[0], in[2], t.in(0)});
    ir::Value* product = t->call("MatMul", {in[2], t.in(3)});
    ir::Value* clipped = t->call("Clip", {product, t->constant(Tensor::scalar<float>(ElementType::kFloat, -1)),
                                          t->constant(Tensor::scalar<float>(ElementType::kFloat, 1))});
    ir::Value* before = t->call("Add", {in[1], clipped});
    ir::Value* same = t->call("Identity", {t->call("Add", {largest, t->call("Exp", {t.in(0)})})});
    ir::Value* soft = t->call("Softmax", {same});
    const auto out = t.end_scan({same, in[2], soft, before});
    t->set_output(0, out[0]);
    t->set_output(1, out[2]);
    t->set_output(2, out[3]);
    Inference inference({.fold = false});
    ASSERT_TRUE(inference.infer(t.graph().top()).ok());
    expect_remarks(t.graph(), fmt::format("{} iterations", iterations));
  }
}

TEST(Pipeline, NoPassChangesACountedLoopWithoutARemark) {
  for (const Dim& size : {Dim(6), Dim::symbol("n")}) {
    for (const bool carries : {false, true}) {
      TestGraph t({int64s({}), floats({size, 2}), floats({2})}, carries ? 2 : 1);
      ir::Value* iterations = t->call(
          "Squeeze", {t->call("Shape", {t.in(1)}, {ir::Attribute::of("start", 0), ir::Attribute::of("end", 1)})});
      const auto in = t.begin_loop(iterations, carries ? std::vector{t.in(2)} : std::vector<ir::Value*>(), 1);
      ir::Value* row = t->call("Gather", {t.in(1), in[0]});
      ir::Value* last = carries ? t->call("Tanh", {t->call("Add", {row, in[2]})}) : row;
      const auto out = t.end_loop(
          carries ? std::vector{last, last}
                  : std::vector{t->call("Mul", {t->call("Cast", {in[0]}, {ir::Attribute::of("to", 1)}), row})});
      for (size_t i = 0; i < out.size(); ++i) t->set_output(i, out[i]);
      Inference inference({.fold = false});
      ASSERT_TRUE(inference.infer(t.graph().top()).ok());
      expect_remarks(t.graph(), "counted");
    }
  }
}

}  // namespace
}  // namespace treadle::opt
