// Loops whose states are linear: which become scans over time in blocks, and from which nodes a and b are made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "op/op_def.h"
#include "support/test_graph.h"

namespace treadle::testing_support {
namespace {

using testing::ElementsAre;

constexpr int64_t kIterations = 700;

std::vector<std::string> nodes_of(const ir::Graph& graph) {
  std::vector<std::string> names;
  for (const auto& node : graph.top().nodes) names.emplace_back(node->op->name);
  return names;
}

std::unique_ptr<ir::Graph> specialized(TestGraph& t, bool associative) {
  std::vector<plan::InputSpec> knowledge;
  for (const Type& type : t.types()) knowledge.push_back({type, {}});
  auto made = session::optimize(t.graph(), knowledge, {.associative = associative});
  EXPECT_TRUE(made.ok()) << made.error().to_string();
  return made.ok() ? std::move(made->graph) : nullptr;
}

// Sums in another order.
void expect_near(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.type(), b.type());
  ASSERT_TRUE(a.dims() == b.dims());
  if (is_integer(a.type())) {
    EXPECT_EQ(std::memcmp(a.raw(), b.raw(), a.byte_size()), 0);
    return;
  }
  for (int64_t k = 0; k < a.element_count(); ++k) {
    if (a.double_at(k) == b.double_at(k)) continue;  // infinities
    ASSERT_NEAR(a.double_at(k), b.double_at(k), 2e-5 * (1 + std::abs(b.double_at(k)))) << k;
  }
}

// A Scan over x[kIterations, lanes] with one state; `body` makes the next state of state and element.
template <class Body>
std::unique_ptr<TestGraph> scan_of(const Type& state, Body&& body, Dim iterations = Dim(kIterations),
                                   bool reverse = false) {
  Shape rows{iterations};
  for (const Dim& d : state.shape) rows.push_back(d);
  auto t = std::make_unique<TestGraph>(std::vector<Type>{state, Type::tensor(state.element, rows), state}, 2);
  const auto inside = t->begin_scan({t->in(0)}, {t->in(1)}, 1, reverse);
  ir::Value* next = body(*t, inside[0], inside[1]);
  const auto after = t->end_scan({next, next});
  if (reverse) {
    t->loop()->attributes.set(ir::Attribute::of("scan_output_directions", std::vector<int64_t>{1}));
  }
  (*t)->set_output(0, after[0]);
  (*t)->set_output(1, after[1]);
  return t;
}

// The graph after the rewrites. Numbers stay the same: to the last bit for integers, otherwise up to rounding.
std::unique_ptr<ir::Graph> solved(TestGraph& t) {
  std::mt19937 engine(11);
  std::vector<AnyValue> inputs;
  for (const Type& type : t.types()) inputs.push_back(random_value(type, engine));
  const kernels::ScopedIsa scope(Isa::kBaseline);
  auto graph = specialized(t, true);
  if (!graph) return std::make_unique<ir::Graph>();
  const auto expected = reference::run_graph(t.graph(), inputs), found = reference::run_graph(*graph, inputs);
  EXPECT_TRUE(expected.ok() && found.ok());
  for (size_t i = 0; expected.ok() && found.ok() && i < expected->size(); ++i) {
    expect_near((*found)[i].tensor(), (*expected)[i].tensor());
  }
  return graph;
}

ir::Value* number(TestGraph& t, float value) {
  return t->constant(Tensor::scalar<float>(ElementType::kFloat, value));
}

TEST(LinearRecurrences, ARunningSumHasNoFactor) {
  const auto t = scan_of(floats({3}), [](TestGraph& g, ir::Value* h, ir::Value* x) { return g->call("Add", {h, x}); });
  const auto after = solved(*t);
  ASSERT_THAT(nodes_of(*after), ElementsAre("LinearRecurrence"));
  const ir::Node& node = *after->top().nodes[0];
  EXPECT_EQ(node.inputs[1], nullptr);
  EXPECT_EQ(node.inputs[2], after->top().inputs[1]);
}

TEST(LinearRecurrences, ARunningProductHasNoSummand) {
  const auto t = scan_of(
      floats({2}), [](TestGraph& g, ir::Value* h, ir::Value* x) { return g->call("Mul", {g->call("Tanh", {x}), h}); });
  const auto after = solved(*t);
  ASSERT_THAT(nodes_of(*after), ElementsAre("Tanh", "LinearRecurrence"));
  EXPECT_EQ(after->top().nodes[1]->inputs[2], nullptr);
}

// h + k (x - h) is (1 - k) h + k x; the factor is the same in all iterations.
TEST(LinearRecurrences, ALeakyIntegratorInAnyWriting) {
  const auto t = scan_of(floats({4}), [](TestGraph& g, ir::Value* h, ir::Value* x) {
    return g->call("Add", {h, g->call("Mul", {g->call("Sub", {x, h}), number(g, 0.25f)})});
  });
  const auto after = solved(*t);
  const auto names = nodes_of(*after);
  ASSERT_THAT(names, testing::Contains("LinearRecurrence"));
  EXPECT_THAT(names, testing::Not(testing::Contains("Scan")));
  const ir::Node& node = *after->top().nodes.back();
  EXPECT_EQ(node.inputs[1]->type.shape.size(), 1u) << "a is the same in all iterations";
  EXPECT_EQ(node.inputs[2]->type.shape.size(), 2u);
}

TEST(LinearRecurrences, SignsAreNumbersAndCostNothing) {
  const auto t = scan_of(floats({1}), [](TestGraph& g, ir::Value* h, ir::Value* x) {
    return g->call("Sub", {x, g->call("Neg", {g->call("Neg", {h})})});
  });
  EXPECT_THAT(nodes_of(*solved(*t)), ElementsAre("LinearRecurrence"));
}

TEST(LinearRecurrences, FromTheLastIterationToTheFirst) {
  const auto t = scan_of(
      floats({2}),
      [](TestGraph& g, ir::Value* h, ir::Value* x) {
        return g->call("Add", {g->call("Mul", {h, number(g, 0.5f)}), x});
      },
      Dim(kIterations), true);
  const auto after = solved(*t);
  ASSERT_THAT(nodes_of(*after), testing::Contains("LinearRecurrence"));
  EXPECT_EQ(after->top().nodes.back()->attributes.get_int("reverse"), 1);
}

TEST(LinearRecurrences, IntegersWrapTheSame) {
  const auto t = scan_of(int64s({3}), [](TestGraph& g, ir::Value* h, ir::Value* x) {
    return g->call("Add", {g->call("Mul", {h, x}), g.in(2)});
  });
  EXPECT_THAT(nodes_of(*solved(*t)), ElementsAre("LinearRecurrence"));
}

// The second state reads the first: they are solved one after the other, with the nodes between them for all
// iterations.
TEST(LinearRecurrences, OneStateFeedsAnother) {
  TestGraph t({floats({2}), floats({2}), floats({kIterations, 2})}, 3);
  const auto body = t.begin_scan({t.in(0), t.in(1)}, {t.in(2)}, 1);
  auto* slow = t->call("Add", {t->call("Mul", {body[1], number(t, 0.5f)}), t->call("Sigmoid", {body[0]})});
  auto* fast = t->call("Add", {t->call("Mul", {body[0], number(t, 0.9f)}), body[2]});
  const auto after = t.end_scan({fast, slow, t->call("Sub", {fast, slow})});
  for (size_t i = 0; i < 3; ++i) t->set_output(i, after[i]);
  const auto names = nodes_of(*solved(t));
  EXPECT_EQ(std::count(names.begin(), names.end(), "LinearRecurrence"), 2);
  EXPECT_THAT(names, testing::Not(testing::Contains("Scan")));
}

TEST(LinearRecurrences, OthersStay) {
  const auto stays = [](const Type& state, auto body, Dim iterations = Dim(kIterations)) {
    const auto t = scan_of(state, body, std::move(iterations));
    return nodes_of(*solved(*t));
  };
  const auto add = [](TestGraph& g, ir::Value* h, ir::Value* x) { return g->call("Add", {h, x}); };
  EXPECT_THAT(stays(floats({5}), add), ElementsAre("Scan")) << "wide";
  EXPECT_THAT(stays(floats({2}), add, Dim(255)), ElementsAre("Scan")) << "short";
  EXPECT_THAT(stays(Type::tensor(ElementType::kInt8, {Dim(2)}), add), ElementsAre("Scan")) << "of another type";
  EXPECT_THAT(stays(floats({2}), [](TestGraph& g, ir::Value* h, ir::Value*) { return g->call("Mul", {h, h}); }),
              ElementsAre("Scan"));
  EXPECT_THAT(stays(floats({2}),
                    [](TestGraph& g, ir::Value* h, ir::Value* x) { return g->call("Add", {g->call("Tanh", {h}), x}); }),
              ElementsAre("Scan"));
  EXPECT_THAT(stays(floats({2}), [](TestGraph& g, ir::Value* h, ir::Value* x) { return g->call("Max", {h, x}); }),
              ElementsAre("Scan"));
}

// Two states that read each other are no recurrence of one.
TEST(LinearRecurrences, StatesThatTurnRoundEachOtherStay) {
  TestGraph t({floats({1}), floats({1}), floats({kIterations, 1})}, 2);
  const auto body = t.begin_scan({t.in(0), t.in(1)}, {t.in(2)}, 0);
  const auto after = t.end_scan({t->call("Add", {body[1], body[2]}), t->call("Neg", {body[0]})});
  for (size_t i = 0; i < 2; ++i) t->set_output(i, after[i]);
  EXPECT_THAT(nodes_of(*solved(t)), ElementsAre("Scan"));
}

TEST(LinearRecurrences, AreSolvedOnlyWhereThatIsAllowed) {
  const auto t = scan_of(floats({2}), [](TestGraph& g, ir::Value* h, ir::Value* x) { return g->call("Add", {h, x}); });
  EXPECT_THAT(nodes_of(*specialized(*t, false)), ElementsAre("Scan"));
  EXPECT_THAT(nodes_of(*specialized(*t, true)), ElementsAre("LinearRecurrence"));
}

}  // namespace
}  // namespace treadle::testing_support
