// Iterations of one loop in each of the ways that the interpreter has: the results of the reference interpreter, the
// same limits, and errors of the same iteration.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/test_graph.h"

namespace treadle::testing_support {
namespace {

using testing::HasSubstr;

AnyValue number(int64_t value) {
  return AnyValue(Tensor::scalar<int64_t>(ElementType::kInt64, value));
}

// s' = tanh(s W) + i, and its rows; the body is kernels in sequence.
struct Straight {
  TestGraph t{{int64s({}), floats({1, 8}), floats({8, 8})}, 2};
  std::unique_ptr<Planned> planned;

  Straight() {
    const auto body = t.begin_loop(t.in(0), {t.in(1)}, 1);
    auto* next = t->call("Add", {t->call("Tanh", {t->call("MatMul", {body[2], t.in(2)})}),
                                 t->call("Cast", {body[0]}, {ir::Attribute::of("to", int64_t{1})})});
    const auto results = t.end_loop({next, next});
    t->set_output(0, results[0]);
    t->set_output(1, results[1]);
    planned = plan_of(t);
  }
};

Status run(const Planned& planned, std::vector<AnyValue> inputs, size_t outputs, const RunOptions& options = {}) {
  const kernels::ScopedIsa scope(Isa::kBaseline);
  std::vector<AnyValue> results(outputs);
  run::Context context(planned.program);
  return context.run(places_of(std::as_const(inputs)), places_of(results), options);
}

TEST(LoopRunner, StraightThroughTheBody) {
  Straight made;
  const plan::Loop& loop = made.planned->program->loops[0];
  EXPECT_TRUE(loop.step.straight);
  EXPECT_EQ(loop.schedule.chain, nullptr);
  for (const int64_t iterations : {0, 1, 2, 17, 5000})
    expect_same_as_reference(made.t, *made.planned, {{0, number(iterations)}});
}

TEST(LoopRunner, AreCountedInEveryTier) {
  Straight made;
  std::mt19937 engine(1);
  const std::vector<AnyValue> inputs{number(100), random_value(floats({1, 8}), engine),
                                     random_value(floats({8, 8}), engine)};
  RunOptions options;
  options.iteration_limit = 100;
  EXPECT_TRUE(run(*made.planned, inputs, 2, options).ok());
  options.iteration_limit = 99;
  const Status status = run(*made.planned, inputs, 2, options);
  EXPECT_EQ(status.code(), Code::kLimit);
  EXPECT_THAT(status.to_string(), HasSubstr("body, iteration 99"));
}

// 12 / (3 - i): the fourth iteration fails.
TEST(LoopRunner, AnErrorIsOfItsTrip) {
  TestGraph t({int64s({}), int64s({4})}, 1);
  const auto body = t.begin_loop(t.in(0), {t.in(1)});
  auto* divisor = t->call("Sub", {t->constant_int64(3), body[0]});
  t->set_output(0, t.end_loop({t->call("Div", {body[2], divisor})})[0]);
  const auto planned = plan_of(t, false);
  EXPECT_TRUE(planned->program->loops[0].step.straight);
  std::mt19937 engine(1);
  const AnyValue start = random_value(int64s({4}), engine);
  EXPECT_TRUE(run(*planned, {number(3), start}, 1).ok());
  const Status status = run(*planned, {number(5), start}, 1);
  EXPECT_THAT(status.to_string(), HasSubstr("body, iteration 3: integer division by zero"));
}

// A branch in the body: the interpreter takes turns with the loop's back edge.
TEST(LoopRunner, AroundABranch) {
  TestGraph t({int64s({}), floats({1, 8}), floats({8, 8}), bools({})}, 1);
  const auto body = t.begin_loop(t.in(0), {t.in(1)});
  const std::vector<ir::Value*> condition{t.in(3)};
  ir::Node* branch = t->node("If", condition, 1);
  t->begin_region(branch, "then_branch");
  t->region_output(t->call("MatMul", {body[2], t.in(2)}));
  t->end_region();
  t->begin_region(branch, "else_branch");
  t->region_output(t->call("Softmax", {body[2]}));
  t->end_region();
  t->set_output(0, t.end_loop({branch->outputs[0]})[0]);
  const auto planned = plan_of(t, false);
  EXPECT_FALSE(planned->program->loops[0].step.straight);
  EXPECT_TRUE(planned->program->loops[0].step.simple);
  for (const int64_t iterations : {0, 1, 9}) expect_same_as_reference(t, *planned, {{0, number(iterations)}});
}

// Blocks of time run the same iterations: those before a block ends, and those of the last block.
TEST(LoopRunner, InBlocksOfTime) {
  constexpr int64_t kSteps = 5000, kWidth = 64;
  TestGraph t({floats({1, kWidth}), floats({16, kWidth}), floats({kSteps, 1, 16})}, 2);
  const auto body = t.begin_scan({t.in(0)}, {t.in(2)}, 1);
  auto* next = t->call("Tanh", {t->call("Add", {t->call("MatMul", {body[1], t.in(1)}), body[0]})});
  const auto after = t.end_scan({next, next});
  t->set_output(0, after[0]);
  t->set_output(1, after[1]);
  const auto planned = plan_of(t);
  ASSERT_GT(planned->program->loops[0].schedule.strips.iterations, 0);
  expect_same_as_reference(t, *planned);
  RunOptions options;
  options.iteration_limit = kSteps - 1;
  std::mt19937 engine(1);
  std::vector<AnyValue> inputs;
  for (const Type& type : t.types()) inputs.push_back(random_value(type, engine));
  EXPECT_THAT(run(*planned, inputs, 2, options).to_string(), HasSubstr("body, iteration 4999"));
  options.iteration_limit = kSteps;
  EXPECT_TRUE(run(*planned, inputs, 2, options).ok());
}

}  // namespace
}  // namespace treadle::testing_support
