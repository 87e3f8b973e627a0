#include "run/pipelines.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "session/session.h"

namespace treadle::run {
namespace {

std::string numbers(int64_t count, float scale) {
  std::string list;
  for (int64_t i = 0; i < count; ++i) {
    list += fmt::format("{}{:.4f}", i == 0 ? "" : ", ", scale * static_cast<float>(i * 7 % 13 - 6));
  }
  return list;
}

// A stage for each list of needs; strips of one iteration.
plan::Pipeline pipeline_of(int64_t iterations, std::vector<std::vector<plan::PipelineStage::Need>> needs) {
  plan::Pipeline pipeline;
  pipeline.iterations = iterations;
  pipeline.strip = 1;
  for (auto& list : needs) pipeline.stages.emplace_back().needs = std::move(list);
  return pipeline;
}

TEST(PipelineRun, AStageIsOneStripBehindTheStageThatItReads) {
  const plan::Pipeline pipeline = pipeline_of(3, {{}, {{0, false}}});
  PipelineRun at(pipeline);
  at.begin();
  EXPECT_EQ(at.take(1), 0u);  // the second stage has nothing to work on
  EXPECT_EQ(at.take(PipelineRun::kNone), PipelineRun::kNone);
  at.give_back(0);
  EXPECT_EQ(at.take(1), 1u);
  EXPECT_EQ(at.next_strip(1), 0);
  EXPECT_EQ(at.take(1), 0u);
  EXPECT_EQ(at.next_strip(0), 1);
  at.give_back(1);
  EXPECT_EQ(at.take(1), PipelineRun::kNone);
  at.give_back(0);
  EXPECT_EQ(at.take(1), 1u);
}

TEST(PipelineRun, AStageThatNeedsAllWaitsForTheLastStrip) {
  const plan::Pipeline pipeline = pipeline_of(2, {{}, {{0, true}}});
  PipelineRun at(pipeline);
  at.begin();
  for (int strip = 0; strip < 2; ++strip) {
    ASSERT_EQ(at.take(1), 0u);
    at.give_back(0);
  }
  EXPECT_EQ(at.take(0), 1u);
  at.give_back(1);
  EXPECT_FALSE(at.finished());
  EXPECT_EQ(at.take(0), 1u);
  at.give_back(1);
  EXPECT_TRUE(at.finished());
  at.begin();
  EXPECT_FALSE(at.finished());
}

TEST(PipelineRun, KeepsTheOrderWithAnyNumberOfThreads) {
  constexpr int64_t kIterations = 200;
  const plan::Pipeline pipeline = pipeline_of(kIterations, {{}, {{0, false}}, {{1, false}}, {{0, true}}});
  PipelineRun at(pipeline);
  for (int round = 0; round < 10; ++round) {
    at.begin();
    // The strips that each stage has done; written by the stage's thread, read by the stages that depend on it.
    std::vector<int64_t> done(pipeline.stages.size(), 0);
    std::atomic<int> wrong{0};
    const auto work = [&] {
      size_t stage = PipelineRun::kNone;
      while (!at.finished()) {
        const uint32_t seen = at.events();
        const size_t taken = at.take(stage);
        if (taken == PipelineRun::kNone) {
          if (!at.finished()) at.wait(seen);
          continue;
        }
        stage = taken;
        const int64_t strip = at.next_strip(stage);
        wrong += done[stage] != strip;
        done[stage] = strip + 1;
        at.give_back(stage);
      }
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) threads.emplace_back(work);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    for (const int64_t strips : done) EXPECT_EQ(strips, kIterations);
  }
}

TEST(PipelineRun, WakesWaitingThreadsWhenItIsStopped) {
  const plan::Pipeline pipeline = pipeline_of(5, {{}});
  PipelineRun at(pipeline);
  at.begin();
  ASSERT_EQ(at.take(0), 0u);
  const uint32_t seen = at.events();
  std::thread waits([&] { at.wait(seen); });
  at.stop();
  waits.join();
  EXPECT_TRUE(at.stopped());
}

// Two layers of h' = tanh(x W + h R); the upper one reads the rows of the lower one.
std::string stacked_layers(int64_t steps, int64_t width) {
  const auto layer = [&](std::string_view from, std::string_view to) {
    return fmt::format(R"(
      wide_{1} = MatMul ({0}, w)
      last_{1}, {1} = Scan <body = step_{1} (float[1,{2}] h, float[1,{2}] x) => (float[1,{2}] h2, float[1,{2}] y) {{
        product = MatMul (h, r)
        sum = Add (x, product)
        h2 = Tanh (sum)
        y = Identity (h2)
      }}, num_scan_inputs = 1> (h0, wide_{1})
    )",
                       from, to, width);
  };
  return fmt::format(R"(<ir_version: 8, opset_import: ["" : 17]>
    layers (float[{0},1,{1}] x0, float[1,{1}] h0) => (float[{0},1,{1}] x2)
      <float[{1},{1}] w = {{{2}}}, float[{1},{1}] r = {{{3}}}> {{ {4} {5} }})",
                     steps, width, numbers(width * width, 0.1f), numbers(width * width, -0.07f), layer("x0", "x1"),
                     layer("x1", "x2"));
}

// Under the thread sanitizer, also checks that no stage reads rows that are still being written.
TEST(Pipelines, AllNumbersOfThreadsGiveTheSameBits) {
  constexpr int64_t kSteps = 200, kWidth = 48;
  const std::string text = stacked_layers(kSteps, kWidth);
  Tensor x = *Tensor::allocate(ElementType::kFloat, {kSteps, 1, kWidth});
  for (int64_t i = 0; i < x.element_count(); ++i) x.mutable_data<float>()[i] = static_cast<float>(i % 17) / 8 - 1;
  Tensor h = *Tensor::allocate(ElementType::kFloat, {1, kWidth});
  std::memset(h.mutable_raw(), 0, h.byte_size());
  std::optional<Tensor> expected;
  for (const int threads : {1, 2, 3}) {
    SessionOptions options;
    options.threads = threads;
    options.jit = Jit::kOff;
    auto session = Session::from_bytes(std::as_bytes(std::span(text)), options);
    ASSERT_TRUE(session.ok()) << session.error().to_string();
    const AnyValue fed_x(x), fed_h(h);
    const std::vector<Feed> feeds{{"x0", &fed_x}, {"h0", &fed_h}};
    const auto plan = (*session)->dump_plan(feeds);
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(plan->find(" pipeline ") != std::string::npos, threads > 1);
    int64_t iterations = 0;
    RunOptions watched;
    watched.progress_context = &iterations;
    watched.progress = [](void* context, int64_t done, int64_t) {
      *static_cast<int64_t*>(context) = done;
      return false;
    };
    for (int run = 0; run < 8; ++run) {
      std::vector<AnyValue> results;
      const Status status = (*session)->run(feeds, {}, results, watched);
      ASSERT_TRUE(status.ok()) << status.to_string();
      EXPECT_EQ(iterations, 2 * kSteps) << "of both loops";
      if (!expected) expected = results[0].tensor();
      EXPECT_TRUE(identical(results[0].tensor(), *expected)) << threads << " threads, run " << run;
    }
  }
}

}  // namespace
}  // namespace treadle::run
