// Products in the form that suits their operands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/test_graph.h"

namespace treadle::testing_support {
namespace {

using ir::Attribute;
using testing::ElementsAre;

// Sums of whole numbers are the same in any order.
Type ints(Shape shape) {
  return Type::tensor(ElementType::kInt32, std::move(shape));
}

ir::Value* matrix(TestGraph& t, int64_t rows, int64_t columns) {
  Tensor tensor = *Tensor::allocate(ElementType::kInt32, {rows, columns});
  auto* numbers = static_cast<int32_t*>(tensor.mutable_raw());
  for (int64_t i = 0; i < rows * columns; ++i) numbers[i] = static_cast<int32_t>(i * i % 7) - 3;
  return t->constant(std::move(tensor));
}

TEST(Products, AConstantMatrixByAVectorLeavesTheLoop) {
  TestGraph t({ints({16}), ints({7, 8})}, 1);
  auto* w = matrix(t, 16, 8);
  const auto body = t.begin_scan({t.in(0)}, {t.in(1)});
  t->set_output(0, t.end_scan({t->call("Add", {body[0], t->call("MatMul", {w, body[1]})})})[0]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("MatMul", "Scan", "Add", "end"));
  expect_same_as_reference(t, *planned);
}

TEST(Products, AConstantMatrixByAColumn) {
  TestGraph t({ints({16, 1})}, 1);
  t->set_output(0, t->call("MatMul", {matrix(t, 9, 16), t.in(0)}));
  const auto planned = plan_of(t);
  expect_same_as_reference(t, *planned);
}

TEST(Products, AColumnByARowIsElementwise) {
  TestGraph t({ints({3, 8, 1}), ints({1, 5}), ints({3, 8, 5})}, 1);
  t->set_output(0, t->call("Add", {t->call("MatMul", {t.in(0), t.in(1)}), t.in(2)}));
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("fused Mul Add"));
  expect_same_as_reference(t, *planned);
}

TEST(Products, ShortRowsByAVectorInALoop) {
  for (const bool column : {false, true}) {
    TestGraph t({ints({3, 8, 5}), int64s({}), column ? ints({3, 5, 1}) : ints({5})}, 1);
    const auto body = t.begin_loop(t.in(1), {t.in(0)});
    auto* product = t->call("MatMul", {body[2], t.in(2)});
    if (!column) product = t->call("Unsqueeze", {product, t->constant_int64s({2})});
    t->set_output(0, t.end_loop({t->call("Sub", {body[2], product})})[0]);
    const auto planned = plan_of(t);
    EXPECT_THAT(planned->listing(), ElementsAre("Loop", "Mul", "ReduceSum", "Sub", "end"));
    expect_same_as_reference(t, *planned, {{1, AnyValue(Tensor::scalar<int64_t>(ElementType::kInt64, 3))}});
  }
}

struct Equation {
  const char* text;
  Shape a, b, sum;
};

TEST(Products, EinsumInALoop) {
  const Equation equations[] = {
      {"bhpn,bn->bhp", {2, 3, 4, 5}, {2, 5}, {2, 3, 4}},
      {"hp,hn->hpn", {3, 4}, {3, 5}, {3, 4, 5}},
      {"ij,jk->ki", {3, 4}, {4, 5}, {5, 3}},
      {"ijk,j->k", {3, 4, 5}, {4}, {5}},
      {"i,i->", {6}, {6}, {}},
  };
  for (const Equation& e : equations) {
    SCOPED_TRACE(e.text);
    TestGraph t({ints(e.a), int64s({}), ints(e.b), ints(e.sum)}, 1);
    const auto body = t.begin_loop(t.in(1), {t.in(3)});
    auto* factor = t->call("Add", {t.in(0), t->call("Cast", {body[0]}, {Attribute::of("to", 6)})});
    auto* product = t->call("Einsum", {factor, t.in(2)}, {Attribute::of("equation", e.text)});
    t->set_output(0, t.end_loop({t->call("Sub", {body[2], product})})[0]);
    const auto planned = plan_of(t);
    const auto listing = planned->listing();
    EXPECT_EQ(std::count(listing.begin(), listing.end(), "Einsum"), 0);
    expect_same_as_reference(t, *planned, {{1, AnyValue(Tensor::scalar<int64_t>(ElementType::kInt64, 3))}});
  }
}

TEST(Products, EinsumElsewhereAndOfDiagonalsStays) {
  TestGraph t({ints({4, 4}), ints({4, 5}), int64s({}), ints({4})}, 2);
  t->set_output(0, t->call("Einsum", {t.in(0), t.in(1)}, {Attribute::of("equation", "ij,jk->ik")}));
  const auto body = t.begin_loop(t.in(2), {t.in(3)});
  auto* rows = t->call("Add", {t.in(0), body[2]});
  auto* diagonal = t->call("Einsum", {rows}, {Attribute::of("equation", "ii->i")});
  t->set_output(1, t.end_loop({diagonal})[0]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("Einsum", "Loop", "Add", "Einsum", "end"));
  expect_same_as_reference(t, *planned, {{2, AnyValue(Tensor::scalar<int64_t>(ElementType::kInt64, 3))}});
}

}  // namespace
}  // namespace treadle::testing_support
