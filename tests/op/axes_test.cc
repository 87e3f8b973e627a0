// Axis rules: every operator has one, and nodes leave loops by them.
#include "op/axes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/test_graph.h"

namespace treadle::testing_support {
namespace {

using ir::Attribute;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

TEST(Axes, EveryOperatorThatRunsHasARuleOrAReason) {
  for (const OpDef* op : all_ops()) {
    if (!op->runs()) continue;
    EXPECT_NE(op->axes != nullptr, op->no_axes != nullptr) << op->domain << "." << op->name;
    EXPECT_TRUE(op->axes || !op->widen) << op->domain << "." << op->name;
  }
}

Tensor int64s_of(std::initializer_list<int64_t> values) {
  return Tensor::of_int64(std::vector<int64_t>(values));
}

// A body over rows of x, and of y if it reads them. Returns the result for a row.
using Body = ir::Value* (*)(TestGraph& t, ir::Value* x, ir::Value* y);

struct Case {
  const char* name;
  Shape x, y;  // of all iterations
  Body body;
};

ir::Value* scale_of(TestGraph& t) {
  return t->constant(Tensor::scalar<float>(ElementType::kFloat, 0.125F));
}

ir::Value* bytes_of(TestGraph& t, ir::Value* x) {
  return t->call("QuantizeLinear", {x, scale_of(t), t->constant(Tensor::scalar<uint8_t>(ElementType::kUint8, 9))});
}

// Nodes that stayed in loops when rules were a table apart from the operators, and operators that had no row in it.
const Case kCases[] = {
    {"QuantizeLinear", {7, 3, 4}, {7}, [](TestGraph& t, ir::Value* x, ir::Value*) { return bytes_of(t, x); }},
    {"DequantizeLinear",
     {7, 3, 4},
     {7},
     [](TestGraph& t, ir::Value* x, ir::Value*) { return t->call("DequantizeLinear", {bytes_of(t, x), scale_of(t)}); }},
    {"MatMulInteger",
     {7, 3, 4},
     {7, 4, 2},
     [](TestGraph& t, ir::Value* x, ir::Value* y) {
       return t->call("MatMulInteger", {bytes_of(t, x), bytes_of(t, y)});
     }},
    {"TopK",
     {7, 3, 4},
     {7},
     [](TestGraph& t, ir::Value* x, ir::Value*) {
       return t->node("TopK", std::vector{x, t->constant(int64s_of({2}))}, 2, {Attribute::of("axis", 0)})->outputs[0];
     }},
    {"Trilu", {7, 3, 4}, {7}, [](TestGraph& t, ir::Value* x, ir::Value*) { return t->call("Trilu", {x}); }},
    {"Expand",
     {7, 1, 4},
     {7},
     [](TestGraph& t, ir::Value* x, ir::Value*) { return t->call("Expand", {x, t->constant(int64s_of({2, 3, 4}))}); }},
    {"Tile",
     {7, 3, 4},
     {7},
     [](TestGraph& t, ir::Value* x, ir::Value*) { return t->call("Tile", {x, t->constant(int64s_of({2, 1}))}); }},
    {"GatherElements",
     {7, 3, 2},
     {7},
     [](TestGraph& t, ir::Value* x, ir::Value*) {
       ir::Value* picks = t->call("Reshape", {t->constant(int64s_of({2, 0, 1, 1})), t->constant(int64s_of({2, 2}))});
       return t->call("GatherElements", {x, picks}, {Attribute::of("axis", 0)});
     }},
    {"Gather",
     {7, 3, 4},
     {7},
     [](TestGraph& t, ir::Value* x, ir::Value*) {
       return t->call("Gather", {x, t->constant(int64s_of({3, 0}))}, {Attribute::of("axis", 1)});
     }},
    {"OneHot",
     {7, 3},
     {7},
     [](TestGraph& t, ir::Value* x, ir::Value*) {
       Tensor values = Tensor::of_int64(std::vector<int64_t>{0, 1});
       return t->call("OneHot", {x, t->constant_int64(4), t->constant(std::move(values))}, {Attribute::of("axis", 0)});
     }},
    {"CumProd",
     {7, 3, 4},
     {7},
     [](TestGraph& t, ir::Value* x, ir::Value*) { return t->call("CumProd", {x, t->constant_int64(1)}); }},
    {"Det", {7, 3, 3}, {7}, [](TestGraph& t, ir::Value* x, ir::Value*) { return t->call("Det", {x}); }},
    {"PRelu", {7, 3, 4}, {7, 4}, [](TestGraph& t, ir::Value* x, ir::Value* y) { return t->call("PRelu", {x, y}); }},
    {"Concat with what is the same",
     {7, 3},
     {7},
     [](TestGraph& t, ir::Value* x, ir::Value*) {
       return t->call("Concat", {x, t->call("Cast", {t->constant(int64s_of({5, 6}))}, {Attribute::of("to", 1)})},
                      {Attribute::of("axis", 0)});
     }},
    {"CenterCropPad",
     {7, 3, 4},
     {7},
     [](TestGraph& t, ir::Value* x, ir::Value*) {
       return t->call("CenterCropPad", {x, t->constant(int64s_of({5, 2}))});
     }},
    {"Attention",
     {7, 2, 3, 4, 5},
     {7},
     [](TestGraph& t, ir::Value* x, ir::Value*) { return t->node("Attention", std::vector{x, x, x}, 1)->outputs[0]; }},
};

class LeavesLoops : public testing::TestWithParam<Case> {};

TEST_P(LeavesLoops, AsInTheLoop) {
  const Case& c = GetParam();
  TestGraph t({floats(c.x), floats(c.y)}, 1);
  const auto rows = t.begin_scan({}, {t.in(0), t.in(1)}, 1);
  t->set_output(0, t.end_scan({c.body(t, rows[0], rows[1])})[0]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), Not(Contains(HasSubstr("Scan"))));
  expect_same_as_reference(t, *planned);
}

INSTANTIATE_TEST_SUITE_P(Operators, LeavesLoops, testing::ValuesIn(kCases), [](const auto& test) {
  std::string name = test.param.name;
  for (char& c : name) {
    if (c == ' ') c = '_';
  }
  return name;
});

// If both operands have the axis, the product reads its weights for each iteration; a rule by ranks only would take B's
// rows for the iterations.
TEST(Axes, AMatrixIsNotTakenForIterations) {
  TestGraph t({floats({7, 4}), floats({7, 4, 2})}, 1);
  const auto rows = t.begin_scan({}, {t.in(0), t.in(1)}, 1);
  t->set_output(0, t.end_scan({t->call("MatMul", {rows[0], rows[1]})})[0]);
  expect_same_as_reference(t, *plan_of(t));
}

TEST(Axes, RowsOfAResult) {
  TestGraph t({floats({6, 4}), floats({4, 4}), floats({6, 1}), floats({4})}, 1);
  const auto node_of = [](ir::Value* v) -> const ir::Node& { return *v->producer; };
  t->set_output(0, t.in(0));
  Inference inference({.fold = false, .keep_declared = false});
  ir::Value* product = t->call("MatMul", {t.in(0), t.in(1)});
  ir::Value* sum = t->call("Add", {t.in(0), t.in(2)});
  ir::Value* row = t->call("Add", {t.in(0), t.in(3)});
  ir::Value* softmax = t->call("Softmax", {t.in(0)}, {Attribute::of("axis", 0)});
  ASSERT_TRUE(inference.infer(t.graph().top()).ok());
  EXPECT_EQ(operands_of_rows(node_of(product)), std::vector({true, false}));
  EXPECT_EQ(operands_of_rows(node_of(sum)), std::vector({true, true}));
  EXPECT_EQ(operands_of_rows(node_of(row)), std::vector({true, false}));
  EXPECT_EQ(operands_of_rows(node_of(softmax)), std::nullopt);
}

}  // namespace
}  // namespace treadle::testing_support
