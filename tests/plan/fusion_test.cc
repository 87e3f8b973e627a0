// Which nodes become one instruction, and that it gives the results of the nodes run one by one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/test_graph.h"

namespace treadle::testing_support {
namespace {

using ir::Attribute;
using testing::ElementsAre;

Attribute to(ElementType type) {
  return Attribute::of("to", static_cast<int64_t>(type));
}

TEST(Fusion, ChainIsOneInstruction) {
  TestGraph t({floats({8, 16}), floats({8, 16})}, 1);
  auto* m = t->call("Mul", {t.in(0), t.in(1)});
  auto* a = t->call("Add", {m, t.in(0)});
  t->set_output(0, t->call("Tanh", {a}));
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("fused Mul Add Tanh"));
  expect_same_as_reference(t, *planned);
}

TEST(Fusion, OneOperationStaysAsItIs) {
  TestGraph t({floats({8})}, 1);
  t->set_output(0, t->call("Tanh", {t.in(0)}));
  EXPECT_THAT(plan_of(t)->listing(), ElementsAre("Tanh"));
}

TEST(Fusion, SingleElements) {
  TestGraph t({floats({}), floats({1})}, 1);
  auto* m = t->call("Mul", {t.in(0), t.in(1)});
  t->set_output(0, t->call("Add", {m, t.in(0)}));
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("fused Mul Add"));
  expect_same_as_reference(t, *planned);
}

// A long group is cut into several instructions; later nodes may view results of the first one.
TEST(Fusion, LateViewsOfEarlyResults) {
  TestGraph t({floats({8})}, 3);
  auto* early = t->call("Tanh", {t.in(0)});
  auto* v = early;
  for (int i = 0; i < 40; ++i) v = t->call(i % 2 ? "Mul" : "Add", {v, t.in(0)});
  auto* view = t->call("Unsqueeze", {early, t->constant_int64s({0})});
  auto* flat = t->call("Squeeze", {view, t->constant_int64s({0})});
  t->set_output(0, t->call("Sub", {v, flat}));
  t->set_output(1, view);
  t->set_output(2, t->call("Unsqueeze", {v, t->constant_int64s({1})}));
  const auto planned = plan_of(t);
  expect_same_as_reference(t, *planned);
}

TEST(Fusion, BroadcastOperandsOfAllKinds) {
  TestGraph t({floats({40, 16}), floats({}), floats({16}), floats({40, 1}), floats({1, 1})}, 1);
  auto* v = t.in(0);
  for (size_t i = 1; i < 5; ++i) v = t->call(i % 2 ? "Mul" : "Add", {v, t.in(i)});
  for (size_t i = 1; i < 5; ++i) v = t->call("Sub", {t.in(i), v});
  t->set_output(0, v);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("fused Mul Add Mul Add Sub Sub Sub Sub"));
  expect_same_as_reference(t, *planned);
}

// Lines that fit no tile, tiles that end within a line, a period of several dimensions.
TEST(Fusion, SpreadsOperandsOverOddShapes) {
  for (const Shape& shape : {Shape{3, 1000}, Shape{1000, 3}, Shape{7, 5, 3, 11}, Shape{1, 513}, Shape{2, 1, 700, 2}}) {
    for (uint32_t mask = 1; mask < 1u << shape.size(); ++mask) {
      Shape smaller = shape;
      for (size_t d = 0; d < shape.size(); ++d) {
        if (mask >> d & 1) smaller[d] = 1;
      }
      TestGraph t({floats(shape), floats(smaller)}, 1);
      auto* m = t->call("Mul", {t.in(0), t.in(1)});
      t->set_output(0, t->call("Sub", {t.in(1), m}));
      const auto planned = plan_of(t);
      expect_same_as_reference(t, *planned);
    }
  }
}

TEST(Fusion, MixesElementTypes) {
  TestGraph t({floats({700}), floats({700}), int64s({700})}, 3);
  auto* less = t->call("Less", {t.in(0), t.in(1)});
  auto* chosen = t->call("Where", {less, t.in(0), t.in(1)});
  auto* wide = t->call("Cast", {t.in(2)}, {to(ElementType::kFloat)});
  auto* sum = t->call("Add", {chosen, wide});
  auto* even = t->call("Equal", {t.in(2), t->constant_int64(2)});
  auto* both = t->call("And", {less, even});
  auto* number = t->call("Cast", {both}, {to(ElementType::kInt64)});
  t->set_output(0, sum);
  t->set_output(1, t->call("Mul", {number, t.in(2)}));
  t->set_output(2, t->call("Cast", {t->call("Not", {both})}, {to(ElementType::kDouble)}));
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("fused Less Where Cast Add Equal And Cast Mul Not Cast"));
  expect_same_as_reference(t, *planned);
}

TEST(Fusion, IntermediatesThatOthersUseAreWrittenAsWell) {
  TestGraph t({floats({16, 16})}, 3);
  auto* a = t->call("Exp", {t.in(0)});
  auto* b = t->call("Add", {a, a});
  auto* c = t->call("Neg", {b});
  t->set_output(0, t->call("MatMul", {a, c}));
  t->set_output(1, b);
  t->set_output(2, c);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("fused Exp Add Neg", "MatMul"));
  expect_same_as_reference(t, *planned);
}

// If `late` were in one group with `early`, it would have to run both before and after MatMul.
TEST(Fusion, PathsOutsideKeepGroupsApart) {
  TestGraph t({floats({16, 16})}, 1);
  auto* early = t->call("Exp", {t.in(0)});
  auto* scaled = t->call("Mul", {early, t.in(0)});
  auto* product = t->call("MatMul", {scaled, t.in(0)});
  auto* late = t->call("Add", {product, early});
  t->set_output(0, t->call("Tanh", {late}));
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("fused Exp Mul", "MatMul", "fused Add Tanh"));
  expect_same_as_reference(t, *planned);
}

TEST(Fusion, SmallerGroupsComeBeforeThoseThatBroadcastThem) {
  TestGraph t({floats({16}), floats({8, 16})}, 1);
  auto* row = t->call("Sigmoid", {t->call("Neg", {t.in(0)})});
  auto* all = t->call("Mul", {t.in(1), row});
  t->set_output(0, t->call("Add", {all, t.in(1)}));
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("fused Neg Sigmoid", "fused Mul Add"));
  expect_same_as_reference(t, *planned);
}

TEST(Fusion, OtherShapesOfTheSameElements) {
  TestGraph t({floats({8, 16}), floats({128})}, 2);
  auto* a = t->call("Neg", {t.in(0)});
  auto* flat = t->call("Reshape", {a, t->constant_int64s({128})});
  t->set_output(0, t->call("Add", {flat, t.in(1)}));
  t->set_output(1, flat);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("fused Neg Reshape Add"));
  expect_same_as_reference(t, *planned);
}

TEST(Fusion, NodesThatCanFailDoNotJoin) {
  TestGraph t({int64s({40}), int64s({40}), int64s({})}, 1);
  auto* a = t->call("Mul", {t.in(0), t.in(0)});
  auto* b = t->call("Add", {a, t.in(1)});
  auto* q = t->call("Div", {b, t.in(2)});
  auto* r = t->call("Sub", {q, a});
  t->set_output(0, t->call("Neg", {r}));
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("fused Mul Add", "Div", "fused Sub Neg"));
  expect_same_as_reference(t, *planned, {{2, AnyValue(Tensor::scalar<int64_t>(ElementType::kInt64, 3))}});
}

TEST(Fusion, DivisionByConstantsJoinsUnlessOneIsZero) {
  for (const int64_t last : {-1, 0}) {
    TestGraph t({int64s({2})}, 1);
    auto* a = t->call("Mul", {t.in(0), t.in(0)});
    auto* q = t->call("Mod", {a, t->constant_int64s({3, last})});
    t->set_output(0, t->call("Neg", {q}));
    const auto planned = plan_of(t);
    if (last == 0) {
      EXPECT_THAT(planned->listing(), ElementsAre("Mul", "Mod", "Neg"));
    } else {
      EXPECT_THAT(planned->listing(), ElementsAre("fused Mul Mod Neg"));
      expect_same_as_reference(t, *planned);
    }
  }
}

// Tiles, and a chain. Min passes its result on without storing it; the sum rounds.
TEST(Fusion, ElementsOf16BitsAreConvertedInTheGroup) {
  for (const int64_t width : {3, 1000}) {
    TestGraph t({floats({width}), Type::tensor(ElementType::kFloat16, Shape{})}, 2);
    auto* h = t->call("Cast", {t.in(0)}, {to(ElementType::kFloat16)});
    auto* least = t->call("Min", {t->call("Add", {h, t.in(1)}), h});
    t->set_output(0, t->call("Mul", {least, h}));
    t->set_output(1, least);
    const auto planned = plan_of(t);
    EXPECT_THAT(planned->listing(), ElementsAre("fused Cast Add Min Mul"));
    expect_same_as_reference(t, *planned);
  }
}

TEST(Fusion, ElementsOf8BitsAreConvertedInTheGroup) {
  for (const int64_t width : {3, 1000}) {
    TestGraph t({floats({width})}, 1);
    auto* a = t->call("Cast", {t.in(0)}, {to(ElementType::kInt8)});
    auto* sum = t->call("Add", {t->call("Mul", {a, a}), a});
    auto* chosen = t->call("Where", {t->call("Less", {sum, a}), sum, a});
    t->set_output(0, t->call("Cast", {chosen}, {to(ElementType::kDouble)}));
    const auto planned = plan_of(t);
    EXPECT_THAT(planned->listing(), ElementsAre("fused Cast Mul Add Less Where Cast"));
    expect_same_as_reference(t, *planned);
  }
}

TEST(Fusion, FloatsOf8BitsStayAlone) {
  TestGraph t({floats({40})}, 1);
  t->set_output(
      0, t->call("Cast", {t->call("Cast", {t.in(0)}, {to(ElementType::kFloat8e5m2)})}, {to(ElementType::kFloat)}));
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("Cast", "Cast"));
  expect_same_as_reference(t, *planned);
}

TEST(Fusion, LargeGroupsAreCut) {
  TestGraph t({floats({600})}, 1);
  auto* v = t.in(0);
  for (int i = 0; i < 60; ++i) v = t->call(i % 2 ? "Tanh" : "Add", i % 2 ? std::vector{v} : std::vector{v, t.in(0)});
  t->set_output(0, v);
  const auto planned = plan_of(t);
  EXPECT_EQ(planned->listing().size(), 3u);
  expect_same_as_reference(t, *planned);
}

TEST(Fusion, InsideLoops) {
  TestGraph t({int64s({}), floats({64}), floats({64})}, 3);
  const auto body = t.begin_loop(t.in(0), {t.in(1), t.in(2)}, 1);
  auto* p = t->call("Mul", {body[2], body[3]});
  auto* q = t->call("Sin", {t->call("Add", {p, t.in(1)})});
  const auto after = t.end_loop({q, body[2], p});
  for (size_t i = 0; i < 3; ++i) t->set_output(i, after[i]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("Loop", "fused Mul Add Sin", "end"));
  for (const int64_t iterations : {0, 1, 5}) {
    expect_same_as_reference(t, *planned, {{0, AnyValue(Tensor::scalar<int64_t>(ElementType::kInt64, iterations))}});
  }
}

// A value that waits outside of a body is computed before the body that captures it.
TEST(Fusion, CapturedGroupsRunBeforeTheLoop) {
  TestGraph t({int64s({}), floats({64})}, 2);
  auto* a = t->call("Exp", {t.in(1)});
  auto* b = t->call("Neg", {a});
  auto* other = t->call("Abs", {t->call("Cos", {t.in(1)})});
  const auto body = t.begin_loop(t.in(0), {t.in(1)});
  const auto after = t.end_loop({t->call("Tanh", {t->call("Add", {body[2], b})})});
  t->set_output(0, after[0]);
  t->set_output(1, other);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("fused Exp Neg", "Loop", "fused Add Tanh", "end", "fused Cos Abs"));
  expect_same_as_reference(t, *planned, {{0, AnyValue(Tensor::scalar<int64_t>(ElementType::kInt64, 4))}});
}

Attribute keepdims(int64_t keeps) {
  return Attribute::of("keepdims", keeps);
}

// The operand of a reduction is made where it is reduced; the result is that of the kernels run one by one.
TEST(Fusion, ReductionsOfPairs) {
  const std::pair<int64_t, int64_t> sizes[] = {{30, 40}, {7, 1300}, {1300, 7}, {200, 3}, {3, 200}};
  for (const auto& [rows, columns] : sizes) {
    for (const int64_t axis : {0, 1}) {
      TestGraph t({floats({rows, 1}), floats({1, columns})}, 2);
      auto* far = t->call("Sub", {t.in(0), t.in(1)});
      auto* square = t->call("Mul", {far, far});
      auto* axes = t->constant_int64s({axis});
      t->set_output(0, t->call("ReduceSum", {square, axes}, {keepdims(0)}));
      t->set_output(1, t->call("ReduceMax", {square, axes}, {keepdims(1)}));
      const auto planned = plan_of(t);
      EXPECT_THAT(planned->listing(), ElementsAre("fused Sub Mul ReduceSum ReduceMax"));
      expect_same_as_reference(t, *planned);
    }
  }
}

TEST(Fusion, ReductionsOfWhatIsWantedToo) {
  TestGraph t({floats({20, 33})}, 2);
  auto* e = t->call("Exp", {t.in(0)});
  auto* sum = t->call("ReduceSum", {e, t->constant_int64s({1})}, {keepdims(1)});
  t->set_output(0, t->call("Div", {e, sum}));
  t->set_output(1, sum);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("fused Exp ReduceSum", "Div"));
  expect_same_as_reference(t, *planned);
}

// Over few elements, over all axes in two parts, and of values that no group makes.
TEST(Fusion, ReductionsThatStayAlone) {
  TestGraph t({floats({8, 16}), floats({20, 30})}, 3);
  auto* few = t->call("Exp", {t.in(0)});
  auto* other = t->call("Sin", {t.in(1)});
  auto* axis = t->constant_int64s({1});
  t->set_output(0, t->call("ReduceSum", {few, axis}, {keepdims(0)}));
  t->set_output(1, t->call("ReduceLogSumExp", {other, axis}, {keepdims(0)}));
  t->set_output(2, t->call("ReduceSum", {t.in(1), axis}, {keepdims(0)}));
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(),
              testing::UnorderedElementsAre("Exp", "Sin", "ReduceSum", "ReduceLogSumExp", "ReduceSum"));
  expect_same_as_reference(t, *planned);
}

// The group is too long for one instruction, and the reduced value is an alias of a result of its first part.
TEST(Fusion, ReductionsOfEarlyResultsUnderAnotherName) {
  TestGraph t({floats({20, 30})}, 3);
  auto* early = t->call("Tanh", {t.in(0)});
  auto* v = early;
  for (int i = 0; i < 40; ++i) v = t->call(i % 2 ? "Mul" : "Add", {v, t.in(0)});
  auto* axes = t->constant_int64s({1});
  auto* flat = t->call("Reshape", {early, t->constant_int64s({30, 20})});
  t->set_output(0, t->call("ReduceSum", {flat, axes}));
  t->set_output(1, t->call("ReduceMax", {early, axes}));
  t->set_output(2, t->call("ReduceMean", {v, axes}));
  const auto planned = plan_of(t);
  expect_same_as_reference(t, *planned);
}

ir::Value* cut(TestGraph& t, ir::Value* from, std::initializer_list<int64_t> starts,
               std::initializer_list<int64_t> ends) {
  return t->call("Slice", {from, t->constant_int64s(starts), t->constant_int64s(ends)});
}

TEST(Fusion, SlicesAreReadWhereTheyComeFrom) {
  TestGraph t({floats({22, 32})}, 1);
  auto* middle = cut(t, t.in(0), {1, 1}, {21, 31});
  auto* sum = t->call("Add", {cut(t, t.in(0), {0, 1}, {20, 31}), cut(t, t.in(0), {2, 1}, {22, 31})});
  t->set_output(0, t->call("Sub", {sum, middle}));
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("fused Add Sub"));
  expect_same_as_reference(t, *planned);
}

TEST(Fusion, SlicesThatAreNeededAsTheyAreRun) {
  TestGraph t({floats({22, 32})}, 2);
  auto* part = cut(t, t.in(0), {1, 1}, {21, 31});
  t->set_output(0, t->call("Mul", {part, part}));
  t->set_output(1, part);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), testing::UnorderedElementsAre("Mul", "Slice"));
  expect_same_as_reference(t, *planned);
}

// Views of single elements, on which an operation or a conversion has no other operand.
TEST(Fusion, OneElementInManyPlaces) {
  TestGraph t({floats({1, 1}), floats({1}), bools({1})}, 5);
  const auto wide = [&](size_t i) { return t->call("Expand", {t.in(i), t->constant_int64s({30, 40})}); };
  t->set_output(0, t->call("Exp", {wide(0)}));
  t->set_output(1, t->call("Sub", {wide(0), wide(1)}));
  t->set_output(2, t->call("Mul", {wide(1), wide(1)}));
  t->set_output(3, t->call("Cast", {wide(0)}, {to(ElementType::kDouble)}));
  t->set_output(4, t->call("Where", {wide(2), wide(0), wide(1)}));
  const auto planned = plan_of(t);
  expect_same_as_reference(t, *planned);
}

// A value that was read as a single element before is a tile of copies from then on.
TEST(Fusion, OneElementThatIsReadInBothWays) {
  TestGraph t({floats({1, 1}), floats({30, 40})}, 1);
  auto* wide = t->call("Expand", {t.in(0), t->constant_int64s({30, 40})});
  auto* scaled = t->call("Mul", {t.in(1), wide});
  t->set_output(0, t->call("Add", {scaled, t->call("Sub", {t->call("Exp", {wide}), wide})}));
  const auto planned = plan_of(t);
  expect_same_as_reference(t, *planned);
}

// A group that views its own result in another order would read elements that are not computed yet.
TEST(Fusion, TransposedResultsAreMadeBefore) {
  TestGraph t({floats({4, 16, 16})}, 1);
  auto* a = t->call("Exp", {t.in(0)});
  auto* turned = t->call("Transpose", {t->call("Reshape", {a, t->constant_int64s({16, 4, 16})})},
                         {Attribute::of("perm", std::vector<int64_t>{1, 0, 2})});
  t->set_output(0, t->call("Add", {a, turned}));
  const auto planned = plan_of(t);
  expect_same_as_reference(t, *planned);
}

TEST(Fusion, RollsAreTwoCopies) {
  TestGraph t({floats({30, 40})}, 1);
  auto* rolled = t->call("Concat", {cut(t, t.in(0), {0, 10}, {30, 40}), cut(t, t.in(0), {0, 0}, {30, 10})},
                         {Attribute::of("axis", int64_t{1})});
  t->set_output(0, t->call("Sub", {rolled, t.in(0)}));
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("Concat", "Sub"));
  expect_same_as_reference(t, *planned);
}

}  // namespace
}  // namespace treadle::testing_support
