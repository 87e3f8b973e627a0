// Each form in which src/jit writes a loop, by itself: the bits of the interpreter, for any iteration at which the code
// takes over, in every instruction set, and no call of a kernel that the code can contain.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "support/text_session.h"

namespace treadle::testing_support {
namespace {

constexpr int64_t kIterations = 9;

// A Loop of kIterations iterations over the state s of this type, whose body makes the next state t. `inputs`: more
// inputs of the model, as "float[8] w".
std::string loop_over(const std::string& type, const std::string& body, const std::string& inputs = "") {
  return fmt::format(R"(<ir_version: 10, opset_import: ["" : 22]>
    g ({0} x{1}{2}) => ({0} y) <int64 iterations = {{{3}}}, bool yes = {{1}}> {{
      y = Loop (iterations, yes, x) <body = b (int64 i, bool go, {0} s) => (bool continues, {0} t) {{
        continues = Identity (go)
        {4}
      }}>
    }})",
                     type, inputs.empty() ? "" : ", ", inputs, kIterations, body);
}

void expect_state_of(const Dims& dims, const std::string& body, const Calls& calls = std::vector<std::string>()) {
  std::string sizes;
  for (const int64_t dim : dims) sizes += fmt::format("{}{}", sizes.empty() ? "" : ",", dim);
  SCOPED_TRACE("float[" + sizes + "]");
  expect_native_as_interpreted(loop_over("float[" + sizes + "]", body), {{"x", some_floats(dims)}}, calls);
}

// One lane, less than a vector, vectors and a rest, tiles: src/jit/code_shape.h.
TEST(NativeLoops, ElementwiseStepsOfEveryWidth) {
  for (const int64_t width : {1, 3, 8, 21, 100, 700}) {
    expect_state_of({width}, "a = Tanh (s)  b = Mul (a, s)  c = Sub (b, a)  t = Abs (c)");
  }
}

// src/jit/narrow_lanes.h: operations that the kernels compute in 32 bits and store in fewer.
TEST(NativeLoops, ElementsOf8And16Bits) {
  for (const int64_t width : {1, 3, 8, 21, 100, 700}) {
    SCOPED_TRACE(width);
    const Tensor x = some_floats({width});
    auto run = [&](const std::string& body) {  // code for float16 is long on processors without instructions for it
      expect_native_as_interpreted(loop_over(fmt::format("float[{}]", width), body), {{"x", x}}, std::nullopt);
    };
    for (const int type : {2, 3, 4, 5}) {  // uint8, int8, uint16, int16
      run(fmt::format(R"(c = Constant <value = float {{77}}> ()  m = Mul (s, c)
        a = Cast <to = {0}> (m)  b = Cast <to = {0}> (s)  p = Mul (a, a)  q = Sub (b, p)  l = Less (q, a)
        w = Where (l, p, q)  x = Max (w, a)  k = BitwiseXor (x, p)  n = BitwiseNot (k)  f = Cast <to = 1> (n)
        e = Mul (f, s)  t = Sin (e))",
                      type));
    }
    for (const int type : {10, 16}) {  // float16, bfloat16
      run(fmt::format(R"(a = Cast <to = {0}> (s)  b = Exp (a)  p = Mul (b, a)  q = Add (p, b)  d = Div (q, a)
        l = Less (d, a)  w = Where (l, d, p)  f = Cast <to = 1> (w)  e = Add (f, s)  t = Tanh (e))",
                      type));
    }
  }
}

// States and scan inputs of bytes, and a table of bytes: no kernel is called.
TEST(NativeLoops, StatesThatAreBytes) {
  const std::string text = R"(<ir_version: 10, opset_import: ["" : 22]>
    g (uint8[40] xs, uint8[16] table) => (uint8 last, int16 sum, uint8[40] ys)
    <uint8 first = {1}, int16 none = {0}, uint8 low = {15}> {
      last, sum, ys = Scan <num_scan_inputs = 1, body = b (uint8 s, int16 m, uint8 x) => (uint8 t, int16 n, uint8 y) {
        mixed = BitwiseXor (s, x)  at = BitwiseAnd (mixed, low)  i = Cast <to = 7> (at)
        entry = Gather (table, i)  t = Add (entry, s)  wide = Cast <to = 5> (t)  n = Sub (wide, m)  y = Identity (t)
      }> (first, none, xs)
    })";
  std::vector<uint8_t> bytes(40);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(37 * i * i + 11);
  Tensor xs = *Tensor::allocate(ElementType::kUint8, {40}), table = *Tensor::allocate(ElementType::kUint8, {16});
  std::memcpy(xs.mutable_raw(), bytes.data(), 40);
  std::memcpy(table.mutable_raw(), bytes.data() + 7, 16);
  expect_native_as_interpreted(text, {{"xs", xs}, {"table", table}});
}

// A body that is long takes another form than a short one: functions of steps, then calls of kernels.
TEST(NativeLoops, BodiesOfManySteps) {
  for (const int steps : {30, 120}) {
    std::string body = "a0 = Identity (s)\n";
    for (int k = 0; k < steps; ++k) {
      body += fmt::format("b{0} = {1} (a{0})  a{2} = Add (b{0}, s)\n", k, k % 3 == 0 ? "Erf" : "Sigmoid", k + 1);
    }
    body += fmt::format("t = Tanh (a{})", steps);
    expect_state_of({20}, body, std::nullopt);  // which groups are called depends on the instruction set
  }
}

// src/jit/nest.h.
TEST(NativeLoops, OperandsThatAreBroadcast) {
  const Tensor row = some_floats({5}, 1), column = some_floats({4, 1}, 2);
  const std::string text =
      loop_over("float[4,5]", "a = Mul (s, row)  b = Add (a, column)  t = Tanh (b)", "float[5] row, float[4,1] column");
  expect_native_as_interpreted(text, {{"x", some_floats({4, 5})}, {"row", row}, {"column", column}});
}

// src/jit/lane_maths.h: the order of sums is that of the kernels.
TEST(NativeLoops, ReductionsAndExtremes) {
  for (const char* op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2"}) {
    SCOPED_TRACE(op);
    expect_state_of({3, 7}, fmt::format("one = Constant <value = int64[1] {{1}}> ()  r = {} <keepdims = 1> (s, one)  "
                                        "t = Sub (s, r)",
                                        op));
  }
  expect_state_of({3, 7},
                  "k = ArgMax <axis = 1, keepdims = 1> (s)  f = Cast <to = 1> (k)  e = Add (s, f)  t = Tanh (e)");
}

// src/jit/moves.cc: moves of elements are element numbers, without calls of kernels.
TEST(NativeLoops, MovesOfFewElements) {
  expect_state_of({4, 4}, "m = Transpose <perm = [1, 0]> (s)  a = Add (m, s)  t = Tanh (a)");
  expect_state_of({6}, R"(
    zero = Constant <value = int64[1] {0}> ()  two = Constant <value = int64[1] {2}> ()
    six = Constant <value = int64[1] {6}> ()
    head = Slice (s, zero, two)  tail = Slice (s, two, six)  turned = Concat <axis = 0> (tail, head)
    t = Sin (turned))");
}

// src/jit/row_product.h: a row times a matrix, and sums that stay in registers for the next instruction.
TEST(NativeLoops, ARowTimesAMatrix) {
  for (const int64_t width : {5, 16, 33}) {
    const std::string text = loop_over(fmt::format("float[1,{}]", width), "p = MatMul (s, w)  t = Tanh (p)",
                                       fmt::format("float[{0},{0}] w", width));
    expect_native_as_interpreted(text, {{"x", some_floats({1, width})}, {"w", some_floats({width, width}, 3)}});
  }
}

// src/jit/element_strips.cc: long states without other readers stay in registers for many iterations.
TEST(NativeLoops, LongStatesInStrips) {
  for (const int64_t width : {256, 1003}) {
    expect_state_of({width}, "h = Constant <value = float {0.5}> ()  a = Mul (s, h)  b = Add (a, h)  t = Sqrt (b)");
  }
}

// The same with rows of scan inputs and scan outputs: a strip reads and writes its part of them. Wider rows are
// processed in several passes of a few iterations.
constexpr int64_t kRowIterations = 37;

struct RowWidth {
  int64_t width;
  int backwards;
};
class LongRowsInBlocks : public testing::TestWithParam<RowWidth> {
 protected:
  // `{w}`, `{n}` and `{r}` in the text: the width, the number of rows, and the direction.
  void expect_of(const std::string& text, const Feeds& feeds) {
    expect_native_as_interpreted(fmt::format(fmt::runtime(text), fmt::arg("w", GetParam().width),
                                             fmt::arg("n", kRowIterations), fmt::arg("r", GetParam().backwards)),
                                 feeds);
  }
  Tensor state(int seed = 0) const { return some_floats({GetParam().width}, seed); }
  Tensor rows(int seed = 0) const { return some_floats({kRowIterations, GetParam().width}, seed); }
};

TEST_P(LongRowsInBlocks, ExponentialMovingAverageOfScanInputs) {
  expect_of(R"(<ir_version: 10, opset_import: ["" : 22]>
    g (float[{w}] h, float[{n},{w}] x, float[{n},{w}] y) => (float[{w}] last) <float keep = {{0.875}}> {{
      last = Scan <num_scan_inputs = 2, scan_input_directions = [{r}, 0],
                   body = b (float[{w}] s, float[{w}] e, float[{w}] f) => (float[{w}] t) {{
        a = Mul (s, keep)
        d = Sub (e, f)
        t = Add (a, d)
      }}> (h, x, y)
    }})",
            {{"h", state()}, {"x", rows(1)}, {"y", rows(2)}});
}

TEST_P(LongRowsInBlocks, IntegratorWithScanOutputs) {
  expect_of(R"(<ir_version: 10, opset_import: ["" : 22]>
    g (float[{w}] p, float[{w}] v, float[{n},{w}] force, float[{n},{w}] wind) =>
      (float[{w}] p_last, float[{w}] v_last, float[{n},{w}] path, float[{n},{w}] before) <float step = {{0.125}}> {{
      p_last, v_last, path, before = Scan <num_scan_inputs = 2, scan_output_directions = [0, {r}],
        body = b (float[{w}] q, float[{w}] u, float[{w}] f, float[{w}] d) =>
                 (float[{w}] q2, float[{w}] u2, float[{w}] o, float[{w}] old) {{
        pull = Mul (q, f)
        slowed = Sub (u, pull)
        u2 = Add (slowed, d)
        move = Mul (u2, step)
        q2 = Add (q, move)
        o = Identity (q2)
        old = Identity (q)
      }}> (p, v, force, wind)
    }})",
            {{"p", state()}, {"v", state(1)}, {"force", rows(2)}, {"wind", rows(3)}});
}

// Loops that only write rows keep them whole.
TEST_P(LongRowsInBlocks, RowsThatAreOnlyWritten) {
  expect_of(R"(<ir_version: 10, opset_import: ["" : 22]>
    g (float[{w}] p) => (float[{w}] last, float[{n},{w}] path)
      <int64 iterations = {{{n}}}, bool yes = {{1}}, float step = {{0.125}}> {{
      last, path = Loop (iterations, yes, p)
        <body = b (int64 i, bool go, float[{w}] q) => (bool continues, float[{w}] q2, float[{w}] o) {{
        continues = Identity (go)
        time = Cast <to = 1> (i)
        move = Mul (q, step)
        later = Sub (q, move)
        q2 = Add (later, time)
        o = Identity (q2)
      }}>
    }})",
            {{"p", state()}});
}

// The state is the row of the iteration before; all elements read one number of each iteration.
TEST_P(LongRowsInBlocks, DifferencesWithAGainForEachIteration) {
  expect_of(R"(<ir_version: 10, opset_import: ["" : 22]>
    g (float[{w}] h, float[{w}] z, float[{n},{w}] x, float[{n}] gain) =>
      (float[{w}] h_last, float[{w}] z_last, float[{n},{w}] y) {{
      h_last, z_last, y = Scan <num_scan_inputs = 2, scan_input_directions = [{r}, {r}],
                                scan_output_directions = [{r}],
                                body = b (float[{w}] s, float[{w}] c, float[{w}] e, float k) =>
                                         (float[{w}] s2, float[{w}] c2, float[{w}] o) {{
        d = Sub (e, c)
        m = Mul (d, k)
        s2 = Add (s, m)
        o = Tanh (s2)
        c2 = Identity (e)
      }}> (h, z, x, gain)
    }})",
            {{"h", state()}, {"z", state(1)}, {"x", rows(2)}, {"gain", some_floats({kRowIterations}, 3)}});
}

// Elements of eight, four and one byte, all in strips of the same length; all elements read the iteration's number.
TEST_P(LongRowsInBlocks, MixedElementTypes) {
  Tensor counts = *Tensor::allocate(ElementType::kInt64, {GetParam().width});
  std::fill_n(counts.mutable_data<int64_t>(), GetParam().width, 0);
  Tensor wide = *Tensor::allocate(ElementType::kDouble, {kRowIterations, GetParam().width});
  for (int64_t i = 0; i < wide.element_count(); ++i) {
    wide.mutable_data<double>()[i] = static_cast<double>(i * 11 % 29 - 14) / 7;
  }
  expect_of(R"(<ir_version: 10, opset_import: ["" : 22]>
    g (float[{w}] h, int64[{w}] c, double[{n},{w}] x) =>
      (float[{w}] h_last, int64[{w}] c_last, bool[{n},{w}] above, float[{n},{w}] y) <int64 one = {{1}}> {{
      h_last, c_last, above, y = Scan <num_scan_inputs = 1, scan_input_directions = [{r}],
                                       scan_output_directions = [{r}, 0],
                                       body = b (float[{w}] s, int64[{w}] k, double[{w}] e) =>
                                                (float[{w}] s2, int64[{w}] k2, bool[{w}] more, float[{w}] o) {{
        f = Cast <to = 1> (e)
        more = Greater (f, s)
        s2 = Max (s, f)
        next = Add (k, one)
        k2 = Where (more, next, k)
        o = Identity (s2)
      }}> (h, c, x)
    }})",
            {{"h", state()}, {"c", counts}, {"x", wide}});
}

INSTANTIATE_TEST_SUITE_P(NativeLoops, LongRowsInBlocks,
                         testing::Values(RowWidth{256, 0}, RowWidth{1003, 1}, RowWidth{5000, 0}));

// src/opt/reassociation.cc: the order of minima changes no result.
TEST(NativeLoops, ChainsOfMinimaThatWaitForTheIterationBefore) {
  const std::string inputs = "float[6] p, float[6] q";
  const Tensor p = some_floats({6}, 4), q = some_floats({6}, 5);
  for (const char* op : {"Min", "Max"}) {
    const std::string body = fmt::format("a = {0} (s, p)  b = Neg (q)  t = {0} (a, b)", op);
    expect_native_as_interpreted(loop_over("float[6]", body, inputs), {{"x", some_floats({6})}, {"p", p}, {"q", q}});
  }
}

// src/jit/loops.cc.
TEST(NativeLoops, LoopsInsideAreWrittenOutAsWell) {
  expect_state_of({8}, R"(
    three = Constant <value = int64 {3}> ()  on = Constant <value = bool {1}> ()
    t = Loop (three, on, s) <body = inner (int64 k, bool c, float[8] p) => (bool d, float[8] q) {
      d = Identity (c)
      e = Tanh (p)
      q = Add (e, s)
    }>)");
}

TEST(NativeLoops, AConditionEndsTheLoopAtTheSameIteration) {
  const std::string text = R"(<ir_version: 10, opset_import: ["" : 22]>
    g (float x) => (float y, float[n] all) <int64 iterations = {100}, bool yes = {1}, float limit = {20}> {
      y, all = Loop (iterations, yes, x) <body = b (int64 i, bool go, float s) => (bool continues, float t, float seen) {
        t = Add (s, s)
        seen = Identity (s)
        continues = Less (t, limit)
      }>
    })";
  expect_native_as_interpreted(text, {{"x", scalar<float>(ElementType::kFloat, 0.75f)}});
}

TEST(NativeLoops, RowsAreReadAndWrittenInEitherDirection) {
  for (const int forward : {0, 1}) {
    const std::string text = fmt::format(R"(<ir_version: 10, opset_import: ["" : 22]>
      g (float[3] h, float[7,3] x) => (float[3] last, float[7,3] y) {{
        last, y = Scan <num_scan_inputs = 1, scan_input_directions = [{0}], scan_output_directions = [{1}],
                        body = b (float[3] s, float[3] e) => (float[3] t, float[3] o) {{
          a = Add (s, e)
          t = Tanh (a)
          o = Mul (a, e)
        }}> (h, x)
      }})",
                                         forward, 1 - forward);
    expect_native_as_interpreted(text, {{"h", some_floats({3})}, {"x", some_floats({7, 3}, 1)}});
  }
}

TEST(NativeLoops, WhatHasNoStepIsACallOfItsKernel) {
  expect_state_of({2, 3, 3},
                  "d = Det (s)  one = Constant <value = int64[2] {1, 2}> ()  u = Unsqueeze (d, one)  "
                  "a = Add (s, u)  t = Tanh (a)",
                  std::vector<std::string>{"Det"});
}

// The place of an error names the iteration, which native code knows as well as the interpreter.
TEST(NativeLoops, ErrorsNameTheSameIteration) {
  const std::string text = R"(<ir_version: 10, opset_import: ["" : 22]>
    g (int64[12] x) => (int64[12] y) <int64 iterations = {9}, bool yes = {1}, int64 four = {4}> {
      y = Loop (iterations, yes, x) <body = b (int64 i, bool go, int64[12] s) => (bool continues, int64[12] t) {
        continues = Identity (go)
        left = Sub (four, i)
        t = Div (s, left)
      }>
    })";
  Tensor x = *Tensor::allocate(ElementType::kInt64, {12});
  std::fill_n(x.mutable_data<int64_t>(), 12, 1000);
  std::vector<AnyValue> results;
  const Status expected = TextSession(text).run({{"x", x}}, results);
  EXPECT_EQ(expected.code(), Code::kRuntime);
  EXPECT_NE(expected.place().find("iteration 4"), std::string::npos) << expected.to_string();
  for (const int64_t iteration : {0, 2}) {
    const Status found = TextSession(text, compiled(iteration)).run({{"x", x}}, results);
    EXPECT_EQ(found.to_string(), expected.to_string());
  }
}

}  // namespace
}  // namespace treadle::testing_support
