// Sizes with numbers in the place of symbols.
#include "type/dim_values.h"

#include <gtest/gtest.h>

#include "type/dim_fractions.h"

namespace treadle {
namespace {

const Dim n = Dim::symbol("n"), t = Dim::symbol("t");

TEST(DimValues, ExpressionsBecomeNumbers) {
  const SymbolSizes sizes = {{"n", 7}, {"t", 3}};
  EXPECT_TRUE(same(with_sizes(n * t + 2, sizes), 23));
  EXPECT_TRUE(same(with_sizes(floor_div(n - 1, 4) + ceil_div(t, 2), sizes), 3));
  EXPECT_TRUE(same(with_sizes(min(n, t) * 10 + max(n, 5), sizes), 37));
  EXPECT_TRUE(same(with_sizes(mod(n, 4), sizes), 3));
  EXPECT_TRUE(same(with_sizes(floor_div(n * t, t), sizes), 7));
}

TEST(DimValues, OtherSymbolsStay) {
  EXPECT_TRUE(same(with_sizes(n * t + 2, {{"n", 4}}), t * 4 + 2));
  EXPECT_TRUE(with_sizes(Dim(), {{"n", 4}}).is_unknown());
  EXPECT_TRUE(same(with_sizes(Shape{n, 5, t}, {{"n", 4}}), Shape{4, 5, t}));
}

}  // namespace
}  // namespace treadle
