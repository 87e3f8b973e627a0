// What a run tells its observer: each value of each node in each iteration, as the reference interpreter makes it, and
// nothing that changes results.
#include "run/observer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "plan/roles.h"
#include "reference/interpreter.h"
#include "run/frame.h"
#include "run/loops.h"
#include "support/text_session.h"

namespace treadle::testing_support {
namespace {

using Bytes = std::string;
// What each output of each node was, in the order in which it was written: "/Loop_0:body/Add_1, output 0".
using Written = std::map<std::string, std::vector<Bytes>>;

Bytes bytes_of(const AnyValue& value) {
  if (!value.is_tensor()) return value.type().to_string();
  const Tensor& t = value.tensor();
  return to_string(t.dims()) + Bytes(static_cast<const char*>(t.raw()), t.byte_size());
}

std::string place_of(const ir::Value& value) {
  return std::string(value.producer->name) + ", output " + std::to_string(value.output_index);
}

// Notes what nodes write, and how often each instruction runs.
class Notes final : public run::Observer {
 public:
  void begin(const plan::Program& program, const run::Frame& frame, const run::Loops& loops) override {
    program_ = &program, frame_ = &frame, loops_ = &loops;
    ++begun;
  }
  Status ran(uint32_t pc, uint32_t next) override {
    order.push_back(pc);
    EXPECT_LT(next, program_->code.size());
    const plan::OpCode code = program_->code[pc].code;
    if (const ir::Node* const node = program_->node_of[pc];
        as_written &&
        (code == plan::OpCode::kKernel || code == plan::OpCode::kGuarded || code == plan::OpCode::kCompute)) {
      plan::for_each_slot(*program_, pc, [&](const plan::SlotUse& use) {
        if (plan::writes(use.role)) note(*node->outputs[use.number], use.slot);
      });
    }
    if (order.size() == stops_after) return error(Code::kCancelled, "enough is seen");
    return {};
  }
  void end() override { ++ended; }

  int64_t iteration(uint32_t loop) const { return (*loops_)[loop].iteration; }

  int begun = 0, ended = 0;
  std::vector<uint32_t> order;
  Written written;
  size_t stops_after = SIZE_MAX;
  bool as_written = true;  // each instruction is one node, with all of its outputs

 private:
  void note(const ir::Value& value, uint32_t slot) {
    if (frame_->is_handle(slot)) {
      written[place_of(value)].push_back(bytes_of(frame_->handle(slot)));
    } else {
      const Dims dims = known_dims(value.type.shape);
      Tensor t = *Tensor::allocate(value.type.element, dims);
      std::memcpy(t.mutable_raw(), frame_->address(slot), t.byte_size());
      written[place_of(value)].push_back(bytes_of(AnyValue(std::move(t))));
    }
  }

  const plan::Program* program_ = nullptr;
  const run::Frame* frame_ = nullptr;
  const run::Loops* loops_ = nullptr;
};

class ReferenceNotes final : public reference::Guard {
 public:
  Status iteration() override { return {}; }
  Status step() override { return {}; }
  void made(const ir::Value& value, const AnyValue& contents) override {
    if (value.producer != nullptr) written[place_of(value)].push_back(bytes_of(contents));
  }
  Written written;
};

// A Loop whose body has an If and a Scan backwards over a captured value; its rows and a state with sizes of the run.
constexpr char kNested[] = R"(<ir_version: 10, opset_import: ["" : 22]>
  g (int64 m, float[3,2] x, float[n] v) => (float[2] last, float[k,2] rows, float[p] long) <
      float half = {0.5}, float zero = {0}, bool go = {1}, int64[1] axis = {0}> {
    none = Slice (v, axis, axis)
    start = ReduceSum <keepdims = 0> (x, axis)
    last, long, rows = Loop (m, go, start, none) <body = b (int64 i, bool c, float[2] s, float[q] list)
        => (bool d, float[2] t, float[r] longer, float[2] row) {
      total = ReduceSum <keepdims = 0> (s)
      positive = Greater (total, zero)
      u = If (positive) <then_branch = yes () => (float[2] y) { y = Mul (s, half) },
                         else_branch = no () => (float[2] z) { w = Neg (s)  z = Add (w, half) }>
      t, all = Scan <num_scan_inputs = 1, scan_input_directions = [1], body = e (float[2] a, float[2] r)
          => (float[2] next, float[2] kept) {
        next = Add (a, r)
        kept = Mul (next, half)
      }> (u, x)
      row = ReduceMax <keepdims = 0> (all, axis)
      longer = Concat <axis = 0> (list, v)
      d = Identity (go)
    }>
  })";

SessionOptions as_written() {
  SessionOptions options = interpreted();
  options.optimize = false;
  return options;
}

Feeds feeds(int64_t iterations) {
  return {{"m", count_of(iterations)}, {"x", some_floats({3, 2})}, {"v", some_floats({2}, 1)}};
}

TEST(Observer, IsToldOfEachValueThatTheReferenceInterpreterMakes) {
  const kernels::ScopedIsa scope(Isa::kBaseline);
  const TextSession session(kNested, as_written());
  for (const int64_t iterations : {4, 1, 0, 4}) {
    SCOPED_TRACE(iterations);
    Notes notes;
    RunOptions options;
    options.observer = &notes;
    std::vector<AnyValue> results;
    const Status status = session.run(feeds(iterations), results, options);
    ASSERT_TRUE(status.ok()) << status.to_string();
    expect_identical(results, session.results(feeds(iterations)));
    EXPECT_EQ(notes.begun, 1);
    EXPECT_EQ(notes.ended, 1);

    ReferenceNotes expected;
    std::vector<AnyValue> inputs;
    for (auto& [name, value] : feeds(iterations)) inputs.push_back(value);
    ASSERT_TRUE(reference::run_graph(session->graph(), inputs, &expected).ok());
    for (const auto& [place, values] : notes.written) EXPECT_EQ(values, expected.written[place]) << place;
    EXPECT_GE(notes.written.size(), iterations == 0 ? 1 : 9);
  }
}

// Options that make a run take other ways: native code, threads, rewrites.
TEST(Observer, ChangesNoResult) {
  SessionOptions options = compiled();
  options.threads = 4;
  const TextSession session(kNested, options);
  const std::vector<AnyValue> expected = session.results(feeds(6));
  for (int round = 0; round < 3; ++round) {
    Notes notes;
    notes.as_written = false;
    RunOptions told;
    told.observer = &notes;
    std::vector<AnyValue> results;
    ASSERT_TRUE(session.run(feeds(6), results, told).ok());
    expect_identical(results, expected);
    EXPECT_GT(notes.order.size(), 30u);
    expect_identical(session.results(feeds(6)), expected);
  }
}

TEST(Observer, EndsARunByAnErrorThatSaysWhere) {
  const TextSession session(kNested, as_written());
  Notes whole;
  RunOptions options;
  options.observer = &whole;
  std::vector<AnyValue> results;
  ASSERT_TRUE(session.run(feeds(3), results, options).ok());
  for (size_t at = 1; at < whole.order.size(); ++at) {
    Notes part;
    part.stops_after = at;
    options.observer = &part;
    const Status status = session.run(feeds(3), results, options);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.code(), Code::kCancelled);
    EXPECT_NE(status.to_string().find("enough is seen"), std::string::npos);
    EXPECT_EQ(part.ended, 1);
    EXPECT_TRUE(std::equal(part.order.begin(), part.order.end(), whole.order.begin()));
    EXPECT_EQ(part.order.size(), at);
  }
  options.observer = nullptr;
  EXPECT_TRUE(session.run(feeds(3), results, options).ok());
}

// Each iteration begins with its number in the loop's position.
TEST(Observer, KnowsTheIterationOfALoop) {
  class Counts final : public run::Observer {
   public:
    void begin(const plan::Program& program, const run::Frame& frame, const run::Loops& loops) override {
      program_ = &program, frame_ = &frame, loops_ = &loops;
    }
    Status ran(uint32_t, uint32_t next) override {
      for (uint32_t i = 0; i < program_->loops.size(); ++i) {
        const plan::Loop& loop = program_->loops[i];
        if (next != loop.first + 1 || loop.counter == plan::kNoSlot) continue;
        iterations.push_back((*loops_)[i].iteration);
        EXPECT_EQ(*static_cast<const int64_t*>(frame_->address(loop.counter)), iterations.back());
      }
      return {};
    }
    void end() override {}
    std::vector<int64_t> iterations;

   private:
    const plan::Program* program_ = nullptr;
    const run::Frame* frame_ = nullptr;
    const run::Loops* loops_ = nullptr;
  };
  const TextSession session(R"(<ir_version: 10, opset_import: ["" : 22]>
    g (int64 m) => (int64 last) <int64 none = {0}, bool go = {1}> {
      last = Loop (m, go, none) <body = b (int64 i, bool c, int64 s) => (bool d, int64 t) {
        t = Add (s, i)
        d = Identity (go)
      }>
    })",
                            as_written());
  Counts counts;
  RunOptions options;
  options.observer = &counts;
  std::vector<AnyValue> results;
  ASSERT_TRUE(session.run({{"m", count_of(5)}}, results, options).ok());
  EXPECT_EQ(counts.iterations, (std::vector<int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(*results[0].tensor().data<int64_t>(), 10);
}

}  // namespace
}  // namespace treadle::testing_support
