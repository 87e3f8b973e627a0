// States that are made of scan inputs alone: which become scan inputs one trip late, and that nothing changes by it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/test_graph.h"

namespace treadle::testing_support {
namespace {

using ir::Attribute;
using testing::ElementsAre;

// The last samples of a window stand before the next one.
TEST(DelayedStates, ContextBeforeAWindow) {
  for (const bool reverse : {false, true}) {
    TestGraph t({floats({1, 8}), floats({1, 1, 4}), floats({5, 1, 1, 12}), floats({8, 1, 9}), floats({8, 8})}, 3);
    const auto body = t.begin_scan({t.in(0), t.in(1)}, {t.in(2)}, 1, reverse);
    auto* window = t->call("Concat", {body[1], body[2]}, {Attribute::of("axis", 2)});
    auto* frame = t->call("ReduceMean", {t->call("Conv", {window, t.in(3)}), t->constant_int64s({2})},
                          {Attribute::of("keepdims", 0)});
    auto* next = t->call("Tanh", {t->call("Add", {frame, t->call("MatMul", {body[0], t.in(4)})})});
    auto* tail =
        t->call("Slice", {body[2], t->constant_int64s({8}), t->constant_int64s({12}), t->constant_int64s({2})});
    const auto after = t.end_scan({next, tail, next});
    for (size_t i = 0; i < 3; ++i) t->set_output(i, after[i]);
    const auto planned = plan_of(t);
    EXPECT_THAT(planned->listing(), ElementsAre("Slice", "Concat", "Slice", "Gather", "Concat", "Conv", "ReduceMean",
                                                "Scan", "MatMul", "fused Add Tanh", "end"));
    expect_same_as_reference(t, *planned);
  }
}

TEST(DelayedStates, LineOfDelaysIsAMap) {
  for (const bool reverse : {false, true}) {
    TestGraph t({floats({3}), floats({3}), floats({6, 3}), floats({3})}, 3);
    const auto body = t.begin_scan({t.in(0), t.in(1)}, {t.in(2)}, 1, reverse);
    if (reverse) t.loop()->attributes.set(Attribute::of("scan_output_directions", std::vector<int64_t>{1}));
    auto* sum = t->call("Add", {t->call("Mul", {body[0], t.in(3)}), t->call("Sub", {body[2], body[1]})});
    const auto after = t.end_scan({body[2], body[0], sum});
    for (size_t i = 0; i < 3; ++i) t->set_output(i, after[i]);
    const auto planned = plan_of(t);
    EXPECT_THAT(planned->listing(), testing::Not(testing::Contains("Scan")));
    expect_same_as_reference(t, *planned);
  }
}

TEST(DelayedStates, StatesThatNothingElseWaitsForStay) {
  TestGraph t({floats({3}), floats({3}), floats({6, 3})}, 2);
  const auto body = t.begin_scan({t.in(0), t.in(1)}, {t.in(2)});
  auto* next = t->call("Mul", {body[0], t->call("Sub", {body[2], body[1]})});
  const auto after = t.end_scan({next, body[2]});
  t->set_output(0, after[0]);
  t->set_output(1, after[1]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("Scan", "fused Sub Mul", "end"));
  expect_same_as_reference(t, *planned);
}

// What leaves the body is read there as before; the other state is one of its own past.
TEST(DelayedStates, WhatTheBodyReadsOn) {
  TestGraph t({floats({1, 8}), floats({1, 8}), floats({6, 1, 8}), floats({8, 8})}, 3);
  const auto body = t.begin_scan({t.in(0), t.in(1)}, {t.in(2)}, 1);
  auto* made = t->call("Exp", {body[2]});
  auto* product = t->call("MatMul", {body[1], t.in(3)});
  auto* next = t->call("Add", {t->call("Mul", {body[0], made}), product});
  const auto after = t.end_scan({next, made, made});
  for (size_t i = 0; i < 3; ++i) t->set_output(i, after[i]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(),
              ElementsAre("Exp", "Concat", "Slice", "Gather", "MatMul", "Scan", "fused Mul Add", "end"));
  expect_same_as_reference(t, *planned);
}

TEST(DelayedStates, AnyNumberOfTrips) {
  TestGraph t({floats({2}), floats({Dim::symbol("T"), 2})}, 2);
  const auto body = t.begin_scan({t.in(0)}, {t.in(1)}, 1);
  const auto after = t.end_scan({body[1], t->call("Sub", {body[1], body[0]})});
  t->set_output(0, after[0]);
  t->set_output(1, after[1]);
  const auto planned = plan_of(t);
  std::mt19937 engine(3);
  for (const int64_t trips : {0, 1, 6}) {
    const std::vector<std::pair<size_t, AnyValue>> given{{1, random_value(floats({trips, 2}), engine)}};
    expect_same_as_reference(t, *planned, given);
  }
}

}  // namespace
}  // namespace treadle::testing_support
