// Deeply nested models on threads with small stacks: they run or are refused, at any depth. A level takes at most
// base/stack.h's kStackPerLevel, or a thread here overflows its stack.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <functional>

#include "base/stack.h"
#include "check/checker.h"
#include "report/explain.h"
#include "session/session.h"
#include "stream/stream.h"

namespace treadle {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kHeader = "<ir_version: 10, opset_import: [\"\" : 21, \"l\" : 1]>\n";

void on_stack(size_t bytes, const std::function<void()>& work) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, bytes), 0);
  pthread_t thread;
  const auto run = [](void* given) -> void* {
    (*static_cast<const std::function<void()>*>(given))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, const_cast<std::function<void()>*>(&work)), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

std::string loops(int depth) {
  std::string text = fmt::format("o{0} = Sin(s{0})", depth);
  for (int i = depth; i > 0; --i) {
    text = fmt::format(
        "o{0} = Loop(m, , s{0}) <body = b{1} (int64 i{1}, bool c{1}, s{1}) => (d{1}, p{1}) {{ d{1} = Identity(c{1}) "
        "{2} p{1} = Identity(o{1}) }}>",
        i - 1, i, text);
  }
  return fmt::format("{}g (int64 m, bool k, float s0) => (y) {{ {} y = Identity(o0) }}", kHeader, text);
}

std::string scans(int depth) {
  std::string text = fmt::format("o{0} = Sin(s{0})", depth);
  for (int i = depth; i > 0; --i) {
    text = fmt::format(
        "o{0}, r{0} = Scan <num_scan_inputs = 1, body = b{1} (s{1}, e{1}) => (p{1}, e{1}x) {{ {2} p{1} = "
        "Identity(o{1}) "
        "e{1}x = Identity(e{1}) }}> (s{0}, xs)",
        i - 1, i, text);
  }
  return fmt::format(
      "{}g (int64 m, bool k, float s0) => (y) {{ xs = Constant<value_floats = [1.0]>() {} y = Identity(o0) }}", kHeader,
      text);
}

std::string branches(int depth) {
  std::string text = fmt::format("o{0} = Sin(s0)", depth);
  for (int i = depth; i > 0; --i) {
    text = fmt::format(
        "o{0} = If(k) <then_branch = t{1} () => (p{1}) {{ {2} p{1} = Identity(o{1}) }}, else_branch = e{1} () => "
        "(q{1}) "
        "{{ q{1} = Cos(s0) }}>",
        i - 1, i, text);
  }
  return fmt::format("{}g (int64 m, bool k, float s0) => (y) {{ {} y = Identity(o0) }}", kHeader, text);
}

// Loops and branches alternate, with conditions and trip counts for which rewrites put branches around loops.
std::string mixed(int depth) {
  std::string text = fmt::format("o{0} = Sin(s{0})", depth);
  for (int i = depth; i > 0; --i) {
    text = fmt::format(
        "o{0} = Loop(m, , s{0}) <body = b{1} (int64 i{1}, bool c{1}, s{1}) => (d{1}, p{1}) {{ d{1} = Identity(c{1}) "
        "p{1} = If(k) <then_branch = t{1} () => (x{1}) {{ {2} x{1} = Identity(o{1}) }}, "
        "else_branch = e{1} () => (z{1}) {{ z{1} = Cos(s{1}) }}> }}>",
        i - 1, i, text);
  }
  return fmt::format("{}g (int64 m, bool k, float s0) => (y) {{ {} y = Identity(o0) }}", kHeader, text);
}

std::string functions(int depth) {
  std::string text = fmt::format("{}g (int64 m, bool k, float s0) => (y) {{ y = l.f0(s0) }}\n", kHeader);
  for (int i = 0; i < depth; ++i) {
    text += fmt::format(
        "<domain: \"l\", opset_import: [\"\" : 21, \"l\" : 1]>\nf{0} (a) => (b) {{ m = Constant<value_int = 1>() "
        "b = Loop(m, , a) <body = q (int64 i, bool c, float s) => (bool d, float o) {{ d = Identity(c) o = l.f{1}(s) "
        "}}> "
        "}}\n",
        i, i + 1);
  }
  return text + fmt::format("<domain: \"l\", opset_import: [\"\" : 21]>\nf{} (a) => (b) {{ b = Sin(a) }}\n", depth);
}

Status run(const Session& session) {
  AnyValue m = Tensor::scalar<int64_t>(ElementType::kInt64, 1), k = Tensor::scalar<bool>(ElementType::kBool, true),
           s = Tensor::scalar<float>(ElementType::kFloat, 1);
  std::vector<Feed> feeds;
  for (const IoInfo& input : session.inputs()) {
    feeds.push_back({input.name, input.name == "m" ? &m : input.name == "k" ? &k : &s});
  }
  std::vector<AnyValue> results;
  return session.run(feeds, {}, results);
}

void expect_ran_or_refused(const Status& status) {
  if (status.ok()) return;
  EXPECT_EQ(status.code(), Code::kLimit) << status.to_string();
  EXPECT_THAT(status.to_string(), ::testing::AnyOf(HasSubstr("deep for the"), HasSubstr("nested more than")));
}

Result<std::unique_ptr<Session>> load(const std::string& text, const SessionOptions& options = {}) {
  return Session::from_bytes(std::as_bytes(std::span(text)), options);
}

using Nest = std::string (*)(int);
class SmallStack : public ::testing::TestWithParam<Nest> {};

TEST_P(SmallStack, LoadsAndRunsModelsThatFitTheStack) {
  for (const int depth : {2, 5, 9, 14, 20, 30, 45, 60, 80}) {
    const std::string text = GetParam()(depth);
    const size_t enough = kStackReserve + static_cast<size_t>(2 * depth + 4) * kStackPerLevel;
    for (const size_t bytes : {kStackReserve + kStackPerLevel, enough / 4, enough / 2, enough}) {
      for (const Tier tier : {Tier::kProgram, Tier::kReference}) {
        on_stack(std::max(bytes, size_t{64} << 10), [&] {
          SessionOptions options;
          options.tier = tier;
          options.threads = 1;
          options.jit = Jit::kOff;
          auto session = load(text, options);
          Status status = session.ok() ? run(**session) : std::move(session).status();
          expect_ran_or_refused(status);
        });
      }
    }
  }
}

TEST_P(SmallStack, PlansAModelThatAnotherThreadHasLoaded) {
  for (const int depth : {5, 20, 45, 80}) {
    auto session = load(GetParam()(depth));
    if (!session.ok()) {
      EXPECT_THAT(session.error().message(), HasSubstr("messages are nested more than"));
      continue;
    }
    for (const size_t kilobytes : {size_t{64}, size_t{128}, size_t{256}}) {
      on_stack(kilobytes << 10, [&] {
        expect_ran_or_refused(run(**session));
        auto explained = report::explain(**session);
        expect_ran_or_refused(explained.ok() ? Status() : std::move(explained).status());
      });
    }
    on_stack(size_t{64} << 10, [&] { session->reset(); });
  }
}

TEST_P(SmallStack, ChecksModelsThatFitTheStack) {
  for (const int depth : {5, 20, 45, 80}) {
    const auto file = wire::MappedFile::own(GetParam()(depth));
    for (const size_t kilobytes : {size_t{128}, size_t{256}, size_t{512}}) {
      on_stack(kilobytes << 10, [&] { EXPECT_FALSE(check_model(file, {.full = true}).diagnostics.empty()); });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Nests, SmallStack, ::testing::Values(loops, scans, branches, mixed, functions));

TEST(Stack, IsThatOfTheThread) {
  constexpr size_t kBytes = size_t{256} << 10;
  on_stack(kBytes, [&] {
    EXPECT_LT(stack_left(), kBytes);
    EXPECT_GT(stack_left(), kBytes / 2);
    EXPECT_FALSE(has_stack_for(kBytes / kStackPerLevel));
    EXPECT_THAT(check_stack(1000).message(), HasSubstr("1000 deep"));
  });
  EXPECT_TRUE(has_stack_for(1)) << "of the first thread";
}

}  // namespace
}  // namespace treadle
