// What a recorded run holds: planned values that are live at each node, values of run-time size, and who holds the
// peak.
#include "report/memory_use.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "session/session.h"

namespace treadle::report {
namespace {

AnyValue zeros(const Dims& dims) {
  Tensor t = *Tensor::allocate(ElementType::kFloat, dims);
  std::fill_n(t.mutable_data<float>(), t.element_count(), 0.0F);
  return t;
}

using ::testing::Ge;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

MemoryUse use_of(const std::string& text, std::span<const Feed> feeds) {
  const auto session = Session::from_bytes(std::as_bytes(std::span(text))).value();
  run::Profile profile;
  RunOptions options;
  options.profile = &profile;
  std::vector<AnyValue> results;
  EXPECT_TRUE(session->run(feeds, {}, results, options).ok());
  return memory_use_of(*profile.runs().back());
}

size_t peak_of(const MemoryUse& use) {
  return use.steps.at(use.peak).planned + use.steps.at(use.peak).held;
}

TEST(MemoryUse, ThePeakIsWhereMostPlannedValuesAreLive) {
  // `wide` and its Softmax are live at once; `x` and `y` belong to the caller.
  const AnyValue x = zeros({4, 8});
  const MemoryUse use = use_of(R"(<ir_version: 10, opset_import: ["" : 21]>
    g (float[4,8] x) => (float[1,8] y) <int64[2] by = {64, 8}, int64[1] axis = {0}, int64 zero = {0}> {
      wide = Tile (x, by) soft = Softmax (wide) run = CumSum (soft, zero) y = ReduceMean <keepdims = 1> (run, axis)
    })",
                               std::array{Feed{"x", &x}});
  ASSERT_THAT(use.steps, SizeIs(4));
  EXPECT_GE(peak_of(use), 2U * 4 * 64 * 8 * 8 * 4);
  EXPECT_LE(peak_of(use), use.arena_bytes);
  EXPECT_EQ(use.steps.at(use.peak).op, "Softmax");
  ASSERT_THAT(use.holders, SizeIs(Ge(2U)));
  EXPECT_THAT((std::array{use.holders[0].name, use.holders[1].name}), UnorderedElementsAre("wide", "soft"));
  EXPECT_TRUE(use.holders[0].planned);
}

TEST(MemoryUse, AGrowingStateIsSeenAtItsLargest) {
  const AnyValue times = Tensor::scalar(ElementType::kInt64, int64_t{100});
  const AnyValue x = zeros({1, 256});
  const MemoryUse use = use_of(R"(<ir_version: 10, opset_import: ["" : 21]>
    g (int64 n, float[1,256] x) => (float[k,256] y) <bool go = {1}> {
      y = Loop (n, go, x) <body = b (int64 i, bool c, float[m,256] s) => (bool d, float[l,256] t) {
        t = Concat <axis = 0> (s, x) d = Identity (c)
      }>
    })",
                               std::array{Feed{"n", &times}, Feed{"x", &x}});
  EXPECT_GE(use.steps.at(use.peak).held, 101U * 256 * 4);
  ASSERT_THAT(use.holders, SizeIs(Ge(2U)));
  EXPECT_EQ(use.holders[0].what, "scratch and spare memory") << "room for it to grow";
  EXPECT_EQ(use.holders[1].bytes, 101U * 256 * 4);
  EXPECT_FALSE(use.holders[1].planned);
}

TEST(MemoryUse, ScratchOfANodeIsOneEntry) {
  std::string text = "<ir_version: 10, opset_import: [\"\" : 21]> g (float[4,8] v0) => (float[4,8] v30) {\n";
  for (int i = 0; i < 30; ++i) text += fmt::format("v{} = {} (v{})\n", i + 1, i % 2 ? "Tanh" : "Neg", i);
  const AnyValue x = zeros({4, 8});
  const MemoryUse use = use_of(text + "}", std::array{Feed{"v0", &x}});
  ASSERT_THAT(use.holders, SizeIs(2));
  EXPECT_EQ(use.holders[0].what, "scratch") << "a group keeps its parts there";
  EXPECT_EQ(use.holders[1].what, "output");
}

TEST(MemoryUse, LongProgramsAreThinned) {
  std::string text = "<ir_version: 10, opset_import: [\"\" : 21]> g (float[4,8] v0) => (float[4,8] y) {\n";
  for (int i = 0; i < 3000; ++i) text += fmt::format("v{} = Softmax (v{})\n", i + 1, i);
  const AnyValue x = zeros({4, 8});
  const MemoryUse use = use_of(text + "y = Softmax (v3000) }", std::array{Feed{"v0", &x}});
  EXPECT_LE(use.steps.size(), 1000U);
  EXPECT_LT(use.peak, use.steps.size());
}

TEST(MemoryUse, JsonHasAllOfIt) {
  MemoryUse use;
  use.arena_bytes = 64;
  use.steps = {{.node = "/A", .op = "Softmax", .planned = 64, .held = 3}};
  use.holders = {{.name = "a", .what = "output", .node = "/A", .bytes = 64}};
  EXPECT_EQ(to_json(use), R"({"arena_bytes":64,"steps":[{"node":"/A","op":"Softmax","planned":64,"held":3}],"peak":0,)"
                          R"("holders":[{"name":"a","what":"output","node":"/A","bytes":64,"planned":true}]})");
}

}  // namespace
}  // namespace treadle::report
