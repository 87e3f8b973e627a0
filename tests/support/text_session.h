#pragma once
// A model in ONNX text in a test, and a session of it. Shared by tests of running, native code and streams.

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/dispatch.h"
#include "report/explain.h"
#include "session/session.h"

namespace treadle::testing_support {

using Feeds = std::vector<std::pair<std::string, AnyValue>>;

// A float tensor of these sizes whose elements are small, of both signs, and differ from their neighbours.
inline Tensor some_floats(Dims dims, int seed = 0) {
  Tensor t = *Tensor::allocate(ElementType::kFloat, std::move(dims));
  for (int64_t i = 0; i < t.element_count(); ++i) {
    t.mutable_data<float>()[i] = static_cast<float>((i * 7 + seed * 5) % 13 - 6) / 8;
  }
  return t;
}

template <class T>
AnyValue scalar(ElementType type, T value) {
  return Tensor::scalar<T>(type, value);
}
inline AnyValue count_of(int64_t value) {
  return scalar<int64_t>(ElementType::kInt64, value);
}

inline std::vector<float> floats_of(const AnyValue& value) {
  const Tensor& t = value.tensor();
  return {t.data<float>(), t.data<float>() + t.element_count()};
}

// Interpreted on one thread, unless a test asks for something else.
inline SessionOptions interpreted() {
  SessionOptions options;
  options.threads = 1;
  options.jit = Jit::kOff;
  return options;
}
// Every loop is native code from this iteration on.
inline SessionOptions compiled(int64_t from_iteration = 0) {
  SessionOptions options = interpreted();
  options.jit = Jit::kAlways;
  options.jit_iteration = from_iteration;
  return options;
}
inline SessionOptions by_reference() {
  SessionOptions options = interpreted();
  options.tier = Tier::kReference;
  return options;
}

inline std::vector<Feed> feeds_of(const Feeds& feeds) {
  std::vector<Feed> list;
  for (const auto& [name, value] : feeds) list.push_back({name, &value});
  return list;
}

class TextSession {
 public:
  explicit TextSession(const std::string& text, const SessionOptions& options = interpreted()) {
    auto opened = Session::from_bytes(std::as_bytes(std::span(text)), options);
    if (!opened.ok()) ADD_FAILURE() << opened.error().to_string();
    if (opened.ok()) session_ = std::move(opened).value();
  }

  const Session& operator*() const { return *session_; }
  const Session* operator->() const { return session_.get(); }
  const std::shared_ptr<const Session>& shared() const { return session_; }

  // A run that should end within a second; the limits keep a faulty one from using up the machine's time and memory.
  Status run(const Feeds& feeds, std::vector<AnyValue>& results, RunOptions options = {}) const {
    if (options.time_limit_s == 0) options.time_limit_s = 60;
    if (options.memory_limit == 0) options.memory_limit = size_t{1} << 30;
    return session_->run(feeds_of(feeds), {}, results, options);
  }
  // All outputs of a run that must succeed.
  std::vector<AnyValue> results(const Feeds& feeds) const {
    std::vector<AnyValue> results;
    const Status status = run(feeds, results);
    EXPECT_TRUE(status.ok()) << status.to_string();
    return results;
  }
  // Texts about the loops of the plan for these feeds, outer ones first.
  std::vector<report::LoopReport> loops(const Feeds& feeds) const {
    auto explanation = report::explain(*session_, feeds_of(feeds));
    EXPECT_TRUE(explanation.ok()) << explanation.error().to_string();
    return explanation.ok() ? std::move(explanation->loops) : std::vector<report::LoopReport>();
  }

 private:
  std::shared_ptr<const Session> session_;
};

inline void expect_identical(const std::vector<AnyValue>& found, const std::vector<AnyValue>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(identical(found[i], expected[i])) << "output " << i;
}

// The operators whose kernels native code calls instead of inlining them, and the ones that it leaves to the engine.
inline std::vector<std::string> calls_of(const report::LoopReport& loop) {
  std::vector<std::string> ops;
  for (const auto& list : {loop.calls, loop.obstacles}) {
    for (const report::NodeRemark& remark : list) ops.push_back(remark.op);
  }
  return ops;
}

// Runs the model interpreted and as native code that takes over at several iterations, in every instruction set: the
// same bits in all of them, and with the kernels of the reference interpreter those of the reference interpreter.
// Native code calls exactly the kernels `calls`, all loops of the model counted; nullopt: any.
using Calls = std::optional<std::vector<std::string>>;
inline void expect_native_as_interpreted(const std::string& text, const Feeds& feeds,
                                         const Calls& calls = std::vector<std::string>()) {
  using LoopTier = report::LoopReport::Tier;
  for (const Isa isa : usable_isas()) {
    SCOPED_TRACE(name(isa));
    const kernels::ScopedIsa scope(isa);
    const std::vector<AnyValue> expected = TextSession(text).results(feeds);
    if (isa == Isa::kBaseline) expect_identical(TextSession(text, by_reference()).results(feeds), expected);
    for (const int64_t iteration : {0, 1, 3}) {
      SCOPED_TRACE("from iteration " + std::to_string(iteration));
      const TextSession native(text, compiled(iteration));
      expect_identical(native.results(feeds), expected);
      expect_identical(native.results(feeds), expected);
      std::vector<std::string> called;
      for (const report::LoopReport& loop : native.loops(feeds)) {
        EXPECT_TRUE(loop.tier == LoopTier::kNative || loop.tier == LoopTier::kInside) << loop.why_not_native;
        for (std::string& op : calls_of(loop)) called.push_back(std::move(op));
      }
      if (calls) {
        EXPECT_EQ(called, *calls);
      }
    }
  }
}

}  // namespace treadle::testing_support
