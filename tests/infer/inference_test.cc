// Inference by treadle's own rules for models in text form.
#include "infer/inference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "model/import.h"
#include "model/text_file.h"

namespace treadle {
namespace {

using Types = std::map<std::string, std::string>;

Types types_of(const std::string& signature, const std::string& body) {
  const std::string text = "<ir_version: 10, opset_import: [\"\" : 21]>\nmodel " + signature + " {\n" +
                           "  zero = Constant <value = int64[1] {0}> ()\n  one = Constant <value = int64[1] {1}> ()\n"
                           "  two = Constant <value = int64[1] {2}> ()\n  three = Constant <value = int64[1] {3}> ()\n "
                           " yes = Constant <value = bool {1}> ()\n" +
                           body + "\n}\n";
  auto file = model::binary_model(wire::MappedFile::own(text));
  if (!file.ok()) return {{"error", file.error().to_string()}};
  auto graph = model::import_model(*file);
  if (!graph.ok()) return {{"error", graph.error().to_string()}};
  Inference inference;
  if (const Status status = inference.infer((*graph)->top()); !status.ok()) return {{"error", status.to_string()}};
  Types types;
  ir::for_each_node((*graph)->top(), [&](const ir::Node& node) {
    for (const ir::Value* value : node.outputs) {
      if (value) types[value->name] = value->type.has_shape ? to_string(value->type.shape) : "no shape";
    }
  });
  return types;
}

// The size that shape arithmetic over x[N,M] computes as `d`.
std::string size_of(const std::string& arithmetic) {
  Types types = types_of("(float[N,M] x, float[T] s, int64 n, bool c) => (float[?] y)",
                         "  sh = Shape (x)\n  n0 = Gather <axis = 0> (sh, zero)\n  t0 = Shape (s)\n" + arithmetic +
                             "\n  y = ConstantOfShape (d)");
  return types.contains("error") ? types["error"] : types["y"];
}

TEST(InferContents, RunThroughArithmetic) {
  EXPECT_EQ(size_of("a = Mul (n0, two) d = Add (a, one)"), "[2*N+1]");
  EXPECT_EQ(size_of("a = Add (n0, one) d = Div (a, two)"), "[floordiv(N+1,2)]");
  EXPECT_EQ(size_of("d = Mod (n0, two)"), "[mod(N,2)]");
  EXPECT_EQ(size_of("d = Min (n0, t0)"), "[min(N,T)]");
  EXPECT_EQ(size_of("a = Sub (n0, one) d = Abs (a)"), "[max(-N+1,N-1)]");
  EXPECT_EQ(size_of("d = Abs (n0)"), "[N]");
  EXPECT_EQ(size_of("d = ReduceProd <keepdims = 1> (sh)"), "[M*N]");
}

TEST(InferContents, RunThroughMovement) {
  EXPECT_EQ(size_of("d = Slice (sh, one, two)"), "[M]");
  EXPECT_EQ(size_of("p, d = Split <num_outputs = 2> (sh)"), "[M]");
  EXPECT_EQ(size_of("a = Concat <axis = 0> (n0, two, t0) d = ReduceProd <keepdims = 1> (a)"), "[2*N*T]");
  EXPECT_EQ(size_of("a = Cast <to = 6> (n0) b = Squeeze (a) e = Unsqueeze (b, zero) d = Cast <to = 7> (e)"), "[N]");
  EXPECT_EQ(size_of("a = Tile (n0, two) d = ReduceProd <keepdims = 1> (a)"), "[N*N]");
  EXPECT_EQ(size_of("a = Expand (n0, two) d = ReduceProd <keepdims = 1> (a)"), "[N*N]");
}

TEST(InferContents, RunThroughFloats) {
  const std::string cast = "f = Cast <to = 1> (n0) half = Constant <value = float[1] {0.5}> () ";
  EXPECT_EQ(size_of(cast + "m = Mul (f, half) r = Floor (m) d = Cast <to = 7> (r)"), "[floordiv(N,2)]");
  EXPECT_EQ(size_of(cast + "m = Mul (f, half) r = Ceil (m) d = Cast <to = 7> (r)"), "[floordiv(N+1,2)]");
  EXPECT_EQ(size_of(cast + "m = Div (f, half) d = Cast <to = 7> (m)"), "[?]") << "no division by a fraction";
  EXPECT_EQ(size_of(cast + "e = Cast <to = 1> (two) q = Div (f, e) m = Add (q, half) d = Cast <to = 7> (m)"),
            "[floordiv(N+1,2)]");
  EXPECT_EQ(size_of(cast + "g = Squeeze (f) h = Unsqueeze (g, zero) c2 = Concat <axis = 0> (h, half) "
                           "i = Gather (c2, zero) d = Cast <to = 7> (i)"),
            "[N]");
  EXPECT_EQ(size_of(cast + "tenth = Constant <value = float[1] {0.1}> () m = Mul (f, tenth) d = Cast <to = 7> (m)"),
            "[?]");
}

TEST(InferContents, RunThroughIndices) {
  const std::string lists = "l = Concat <axis = 0> (n0, two, t0) ";
  EXPECT_EQ(size_of(lists + "i = Constant <value = int64[1] {-1}> () d = GatherElements (l, i)"), "[T]");
  EXPECT_EQ(size_of(lists + "i = Constant <value = int64[1,1] {2}> () d = GatherND (l, i)"), "[T]");
  EXPECT_EQ(size_of(lists + "u = ScatterElements (l, zero, one) d = ReduceProd (u)"), "[2*T]");
  EXPECT_EQ(size_of(lists + "i = Constant <value = int64[1,1] {0}> () u = ScatterND (l, i, one) d = ReduceProd (u)"),
            "[2*T]");
  EXPECT_EQ(size_of(lists + "a = Squeeze (zero) u = CumSum (l, a) d = Slice (u, two, three)"), "[N+T+2]");
  EXPECT_EQ(size_of(lists + "a = Squeeze (zero) u = CumSum <exclusive = 1> (l, a) d = Slice (u, two, three)"), "[N+2]");
  EXPECT_EQ(size_of("d = Pow (n0, two)"), "[N*N]");
}

TEST(InferContents, SizesAreNeverNegative) {
  EXPECT_EQ(size_of("m = Constant <value = int64[1] {-1}> () e = Equal (n0, m) d = Where (e, two, n0)"), "[N]");
  EXPECT_EQ(size_of("a = Add (n0, one) g = Greater (a, n0) d = Where (g, n0, two)"), "[N]");
  EXPECT_EQ(size_of("g = GreaterOrEqual (n0, zero) d = Where (g, n0, two)"), "[N]");
  EXPECT_EQ(size_of("g = Less (n0, two) d = Where (g, n0, two)"), "[?]") << "either may be the smaller one";
}

TEST(InferContents, AreNotThoseOfNumbersBeyondInt64) {
  const std::string numbers =
      "big = Constant <value = uint64[1] {16938609638610135651}> () small = Constant <value = uint64[1] {1}> () ";
  EXPECT_EQ(size_of(numbers + "g = Greater (big, small) d = Where (g, two, three)"), "[2]");
  EXPECT_EQ(size_of(numbers + "g = Greater (small, small) d = Where (g, two, three)"), "[3]");
}

TEST(InferContents, GoIntoBodiesAndComeOut) {
  EXPECT_EQ(size_of("d = If (c) <then_branch = a () => (int64[1] p) { p = Add (n0, one) },"
                    "else_branch = b () => (int64[1] q) { q = Add (one, n0) }>"),
            "[N+1]");
  EXPECT_EQ(size_of("d = If (c) <then_branch = a () => (int64[1] p) { p = Add (n0, one) },"
                    "else_branch = b () => (int64[1] q) { q = Identity (n0) }>"),
            "[?]");
  const std::string loop =
      "d, e = Loop (n, yes, n0, zero) <body = b (int64 i, bool go, int64[1] k, int64[1] l) => "
      "(bool go_out, int64[1] k_out, int64[1] l_out) {"
      "go_out = Identity (go) k_out = Identity (k) l_out = Add (l, k) }>";
  EXPECT_EQ(size_of(loop), "[N]") << "no iteration changes it";
  EXPECT_EQ(size_of("p, q = Loop (n, yes, n0, zero) <body = b (int64 i, bool go, int64[1] k, int64[1] l) => "
                    "(bool go_out, int64[1] k_out, int64[1] l_out) {"
                    "go_out = Identity (go) k_out = Identity (l) l_out = Identity (k) }> d = Identity (p)"),
            "[?]")
      << "the states change places";
  EXPECT_EQ(
      size_of("d, z = Scan <num_scan_inputs = 1, body = b (int64[1] k, float e) => (int64[1] k_out, float e_out) {"
              "k_out = Identity (k) e_out = Add (e, e) }> (n0, s)"),
      "[N]");
}

TEST(InferSizes, PartsOfAnAxisMakeTheWhole) {
  Types types = types_of("(float[4,T] x) => (float[?,?] y)",
                         "sh = Shape (x) t = Gather <axis = 0> (sh, one) h = Div (t, two) "
                         "big = Constant <value = int64[1] {9223372036854775807}> () "
                         "p = Slice (x, zero, h, one) q = Slice (x, h, big, one) y = Concat <axis = 1> (p, q)");
  EXPECT_EQ(types["p"], "[4,floordiv(T,2)]");
  EXPECT_EQ(types["y"], "[4,T]");
}

TEST(InferSizes, ScalesOfAHalf) {
  Types types = types_of("(float[1,3,H,W] x) => (float[?,?,?,?] y)",
                         "s = Constant <value = float[4] {1, 1, 0.5, 2}> () y = Resize (x, , s)");
  EXPECT_EQ(types["y"], "[1,3,floordiv(H,2),2*W]");
}

TEST(InferSizes, ScalesThatAreQuotients) {
  // In the form in which exporters write interpolation to twice the size.
  Types types = types_of(
      "(float[1,3,H,W] x) => (float[?,?,?,?] y)",
      "sh = Shape (x) four = Constant <value = int64[1] {4}> () hw = Slice (sh, two, four) f = Cast <to = 1> (hw) "
      "k = Constant <value = float[2] {2, 1.5}> () m = Mul (f, k) r = Floor (m) q = Div (r, f) "
      "ones = Constant <value = float[2] {1, 1}> () s = Concat <axis = 0> (ones, q) y = Resize (x, , s)");
  EXPECT_EQ(types["y"], "[1,3,2*H,floordiv(3*W,2)]");
}

std::string loop_of(const std::string& state, const std::string& element) {
  return "y, scanned = Loop (n, yes, x) <body = b (int64 i, bool go, " + state + " h) => (bool go_out, " + state +
         " h_out, float[?] row) { go_out = Identity (go) " + element + " row = Identity (h) }>";
}

TEST(InferLoops, IterationsGiveLengths) {
  Types types = types_of("(float[2] x, float[T] s) => (float[?] y, float[?,?] scanned)",
                         "sh = Shape (s) n = Squeeze (sh) " + loop_of("float[2]", "h_out = Add (h, h)"));
  EXPECT_EQ(types["scanned"], "[T,2]");
  EXPECT_EQ(types["y"], "[2]");
}

TEST(InferLoops, AGrowingAxisIsUnknown) {
  Types types = types_of("(float[2] x, int64 n) => (float[?] y, float[?,?] scanned)",
                         loop_of("float[2]", "h_out = Concat <axis = 0> (h, x)"));
  EXPECT_EQ(types["y"], "[?]") << "the declared [2] holds for the first iteration only";
}

TEST(InferLoops, AGrowingAxisIsNeverEmpty) {
  const std::string head =
      "minus = Constant <value = int64[1] {-1}> () far = Constant <value = int64[1] {2147483647}> () ";
  const std::string last = "last = Slice (h, minus, far) c = Cast <to = 7> (last) part = Slice (x, zero, c) ";
  const std::string inputs = "(float[2] x, int64 n) => (float[?] y, float[?,?] scanned)";
  Types grows = types_of(inputs, head + loop_of("float[?]", last + "h_out = Concat <axis = 0> (h, part)"));
  EXPECT_EQ(grows["last"], "[1]");
  EXPECT_EQ(grows["h_out"], "[?]");
  Types shrinks = types_of(inputs, head + loop_of("float[?]", last + "h_out = Slice (h, zero, c)"));
  EXPECT_EQ(shrinks["last"], "[?]") << "a part may be empty";
}

TEST(InferLoops, DeclaredStatesHelpWhereNothingIsKnown) {
  const std::string keep = "u = NonZero (h) v = Squeeze (u, zero) h_out = Gather <axis = 0> (x, v)";
  Types types = types_of("(float[K] x, int64 n) => (float[?] y, float[?,?] scanned)", loop_of("float[S]", keep));
  EXPECT_EQ(types["row"], "[S]");
}

TEST(InferBranches, TheOneNotTakenIsSeenAndMayFail) {
  const std::string branches =
      "never = Constant <value = bool {0}> () y = If (never) <"
      "then_branch = a () => (float[?] p) { w = Neg (x) p = Squeeze (w, zero) },"
      "else_branch = b () => (float[?] q) { q = Neg (x) }>";
  Types types = types_of("(float[2] x) => (float[?] y)", branches);
  EXPECT_EQ(types["y"], "[2]");
  EXPECT_EQ(types["w"], "[2]");
  EXPECT_FALSE(types.contains("error")) << types["error"];
}

TEST(InferNames, AQuestionMarkIsNoName) {
  Types types = types_of("(float[\"?\",\"?\"] x) => (float[?,?] y)", "y = Transpose <perm = [1, 0]> (x)");
  EXPECT_EQ(types["y"], "[?,?]");
}

}  // namespace
}  // namespace treadle
