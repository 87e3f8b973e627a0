// Products in front of a loop that run in strips of its iterations: which do, how much memory they take, and that
// results do not change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/caches.h"
#include "op/costs.h"
#include "support/test_graph.h"

namespace treadle::testing_support {
namespace {

constexpr int64_t kDepth = 16, kWidth = 64;

// Rows of kWidth elements that a strip holds on this machine, and enough rows for their product to be made in strips.
int64_t strip_rows() {
  return static_cast<int64_t>(caches().second / costs::kStripsInCache / (kWidth * sizeof(float)));
}
int64_t many_rows() {
  return std::max(4 * strip_rows(), static_cast<int64_t>(costs::kLeastStripMinedBytes / (kWidth * sizeof(float))));
}

// h' = tanh(x W + h), rows of it, over `steps` steps of [rows, kDepth].
void write_cell(TestGraph& t, ir::Value* x, int64_t output, bool reverse = false) {
  const auto body = t.begin_scan({t.in(0)}, {x}, 1, reverse);
  auto* next = t->call("Tanh", {t->call("Add", {t->call("MatMul", {body[1], t.in(1)}), body[0]})});
  const auto after = t.end_scan({next, next});
  t->set_output(output, after[0]);
  t->set_output(output + 1, after[1]);
}

std::vector<Type> inputs(int64_t steps, int64_t rows) {
  return {floats({rows, kWidth}), floats({kDepth, kWidth}), floats({steps, rows, kDepth})};
}

// Iterations of a strip, by loop; 0: no strips.
std::vector<int64_t> strips_of(const Planned& planned) {
  std::vector<int64_t> iterations;
  for (const plan::Loop& loop : planned.program->loops) iterations.push_back(loop.schedule.strips.iterations);
  return iterations;
}

TEST(Strips, TakeTheMemoryOfOne) {
  const int64_t many = many_rows();
  for (const int64_t steps : {many, many + 904, 2 * many - 1, 5 * many}) {
    TestGraph t(inputs(steps, 1), 2);
    write_cell(t, t.in(2), 0);
    const auto planned = plan_of(t);
    EXPECT_EQ(strips_of(*planned), std::vector<int64_t>{strip_rows()});
    EXPECT_LE(planned->program->arena_bytes, caches().second / 2) << steps;
    expect_same_as_reference(t, *planned);
  }
}

TEST(Strips, GoBackwardsToo) {
  for (const int64_t steps : {many_rows(), many_rows() + 404}) {
    TestGraph t(inputs(steps, 1), 4);
    auto* x = t.in(2);
    write_cell(t, x, 0);
    write_cell(t, x, 2, true);
    const auto planned = plan_of(t);
    EXPECT_THAT(strips_of(*planned), testing::ElementsAre(strip_rows(), strip_rows()));
    expect_same_as_reference(t, *planned);
  }
}

TEST(Strips, HoldSeveralRowsOfAnIteration) {
  TestGraph t(inputs(many_rows() / 3 + 135, 3), 2);
  write_cell(t, t.in(2), 0);
  const auto planned = plan_of(t);
  EXPECT_EQ(strips_of(*planned), std::vector<int64_t>{strip_rows() / 3});
  expect_same_as_reference(t, *planned);
}

// A product that fits the cache, one with other readers, one of unknown length, an empty batch.
TEST(Strips, OthersRunStacked) {
  {
    TestGraph t(inputs(5000, 0), 2);
    write_cell(t, t.in(2), 0);
    const auto planned = plan_of(t);
    EXPECT_EQ(strips_of(*planned), std::vector<int64_t>{0});
    expect_same_as_reference(t, *planned);
  }
  {
    TestGraph t(inputs(1000, 1), 2);
    write_cell(t, t.in(2), 0);
    EXPECT_EQ(strips_of(*plan_of(t)), std::vector<int64_t>{0});
  }
  {
    TestGraph t(inputs(5000, 1), 3);
    auto* projected = t->call("MatMul", {t.in(2), t.in(1)});
    projected->type = floats({5000, 1, kWidth});
    const auto body = t.begin_scan({t.in(0)}, {projected}, 1);
    auto* next = t->call("Tanh", {t->call("Add", {body[0], body[1]})});
    const auto after = t.end_scan({next, next});
    t->set_output(0, after[0]);
    t->set_output(1, after[1]);
    t->set_output(2, t->call("ReduceMax", {projected}));
    const auto planned = plan_of(t);
    EXPECT_EQ(strips_of(*planned), std::vector<int64_t>{0});
    expect_same_as_reference(t, *planned);
  }
  {
    TestGraph t({floats({1, kWidth}), floats({kDepth, kWidth}), floats({Dim::symbol("T"), 1, kDepth})}, 2);
    write_cell(t, t.in(2), 0);
    EXPECT_EQ(strips_of(*plan_of(t)), std::vector<int64_t>{0});
  }
}

// A product that the loop's own body reads whole, beside its rows.
TEST(Strips, WhatTheBodyReadsWholeStaysWhole) {
  TestGraph t(inputs(4096, 1), 2);
  auto* projected = t->call("MatMul", {t.in(2), t.in(1)});
  projected->type = floats({4096, 1, kWidth});
  const auto body = t.begin_scan({t.in(0)}, {projected}, 1);
  auto* other = t->call("Gather", {projected, t->constant_int64(7)});
  auto* next = t->call("Tanh", {t->call("Add", {t->call("Sub", {body[0], other}), body[1]})});
  const auto after = t.end_scan({next, next});
  t->set_output(0, after[0]);
  t->set_output(1, after[1]);
  const auto planned = plan_of(t);
  EXPECT_EQ(strips_of(*planned), std::vector<int64_t>{0});
  expect_same_as_reference(t, *planned);
}

}  // namespace
}  // namespace treadle::testing_support
