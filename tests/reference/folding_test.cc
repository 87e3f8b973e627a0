// Evaluation of constants within bounds of bytes and work.
#include "reference/folding.h"

#include <gtest/gtest.h>

#include "base/thread_pool.h"
#include "op/registry.h"

namespace treadle::reference {
namespace {

ir::NodeInfo node_of(const char* name, size_t inputs) {
  const OpDef& op = require_op(name);
  ir::NodeInfo node;
  node.op = &op;
  node.version = op.version_for(22);
  for (const AttributeDef& a : node.version->attributes) {
    if (a.has_default()) node.attributes.set(a.default_value);
  }
  node.name = ir::Name::borrow("node");
  node.input_count = static_cast<uint32_t>(inputs);
  node.output_count = 1;
  return node;
}

AnyValue zeros(Dims dims) {
  Tensor t = Tensor::allocate(ElementType::kFloat, std::move(dims)).value();
  std::fill_n(t.mutable_data<float>(), t.element_count(), 0.0f);
  return t;
}

TEST(Folding, BytesThatResultsHoldAreBounded) {
  Folding folding({.bytes = 1000, .work_ns = 0});
  const AnyValue hundred = zeros({100});
  const AnyValue inputs[] = {hundred};
  const ir::NodeInfo node = node_of("Neg", 1);
  auto first = folding.evaluate(node, inputs);
  ASSERT_TRUE(first);
  auto second = folding.evaluate(node, inputs);
  ASSERT_TRUE(second);
  EXPECT_FALSE(folding.evaluate(node_of("Exp", 1), std::span(&hundred, 1)) && folding.evaluate(node, inputs) &&
               folding.evaluate(node, inputs))
      << "each fits, but not all of them at a time";
  first.reset();
  second.reset();
  EXPECT_TRUE(folding.evaluate(node, inputs)) << "those before are gone";
}

TEST(Folding, TextsAreCounted) {
  Folding folding({.bytes = size_t{64} << 10, .work_ns = 0});
  Tensor text = Tensor::allocate(ElementType::kString, {1}).value();
  *text.mutable_data<String>() = String(1000, 'a');
  AnyValue value = std::move(text);
  int links = 0;
  for (; links < 40; ++links) {
    const AnyValue inputs[] = {value, value};
    auto longer = folding.evaluate(node_of("StringConcat", 2), inputs);
    if (!longer) break;
    value = std::move((*longer)[0]);
  }
  EXPECT_LT(links, 7);
  EXPECT_GT(links, 2);
}

TEST(Folding, WorkIsBounded) {
  Folding folding({.bytes = 0, .work_ns = 50e6});
  const AnyValue matrix = zeros({512, 512});
  const AnyValue inputs[] = {matrix, matrix};
  const ir::NodeInfo node = node_of("MatMul", 2);
  int products = 0;
  while (products < 10'000 && folding.evaluate(node, inputs)) ++products;
  EXPECT_GT(products, 0);
  EXPECT_LT(products, 1000);
  EXPECT_FALSE(folding.evaluate(node, inputs)) << "nothing comes after";
}

TEST(Folding, WithoutABoundAllIsEvaluated) {
  Folding folding(FoldLimits::none());
  const AnyValue matrix = zeros({256, 256});
  const AnyValue inputs[] = {matrix, matrix};
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(folding.evaluate(node_of("MatMul", 2), inputs));
}

TEST(Folding, TheBoundGrowsWithTheModel) {
  const FoldLimits none = FoldLimits::of_model(0), some = FoldLimits::of_model(1 << 20);
  EXPECT_EQ(some.bytes, none.bytes + (size_t{8} << 20));
  EXPECT_GT(some.work_ns, none.work_ns);
  EXPECT_EQ(FoldLimits::of_model(SIZE_MAX).bytes, 0u) << "more than there can be is no bound";
}

TEST(Folding, IsStoppedWithWhatItIsPartOf) {
  std::atomic<bool> stop{true};
  const StopCheck check{[](const void* flag) { return static_cast<const std::atomic<bool>*>(flag)->load(); }, &stop};
  const ThreadScope scope(1, check);
  Folding folding;
  const AnyValue matrix = zeros({512, 512});
  const AnyValue inputs[] = {matrix, matrix};
  EXPECT_FALSE(folding.evaluate(node_of("MatMul", 2), inputs));
  EXPECT_TRUE(scope.stopped());
}

}  // namespace
}  // namespace treadle::reference
