// The algebra of sizes: equal expressions are recognised, and comparisons that hold because sizes are not negative.
#include "type/dim.h"

#include <gtest/gtest.h>

#include "type/dim_fractions.h"

namespace treadle {
namespace {

const Dim n = Dim::symbol("n"), t = Dim::symbol("t");

TEST(Dims, EqualExpressionsAreTheSame) {
  EXPECT_TRUE(same((n + 1) * 2, n * 2 + 2));
  EXPECT_TRUE(same(n * t - t * n, 0));
  EXPECT_TRUE(same(floor_div(n * 6 + 3, 3), n * 2 + 1));
  EXPECT_TRUE(same(min(n, t), min(t, n)));
  EXPECT_TRUE(same(ceil_div(n, 2), floor_div(n + 1, 2)));
  EXPECT_FALSE(same(n, t));
  EXPECT_FALSE(same(Dim(), Dim()));
  EXPECT_EQ((n * 2 + 1).to_string(), "2*n+1");
}

TEST(Dims, OrdersThatAlwaysHold) {
  EXPECT_TRUE(same(min(n, n + 1), n));
  EXPECT_TRUE(same(max(n, 0), n));
  EXPECT_TRUE(same(min(n, floor_div(n, 2)), floor_div(n, 2)));
  EXPECT_TRUE(same(max(n - floor_div(n + 1, 2), 0), n - floor_div(n + 1, 2)));
  EXPECT_TRUE(same(max(n - min(n, t), 0), n - min(n, t)));
  EXPECT_TRUE(same(max(max(n, t) - n, 0), max(n, t) - n));
  EXPECT_TRUE(same(min(mod(n, 4), 3), mod(n, 4)));
  EXPECT_EQ((n * 2 - floor_div(n, 3)).lower_bound(), 0);
  EXPECT_EQ((floor_div(n, 2) + 3).lower_bound(), 3);
}

TEST(DimFractions, RoundAsIntegersDivide) {
  const Dim half = dim_of_real(0.5);
  EXPECT_TRUE(has_fraction(half) && !has_fraction(dim_of_real(-3.0)));
  EXPECT_TRUE(same(rounded_down(n * half), floor_div(n, 2)));
  EXPECT_TRUE(same(rounded_up(n * half), ceil_div(n, 2)));
  EXPECT_TRUE(same(rounded_down((n - 1) * dim_of_real(0.75) + 1), floor_div(n * 3 + 1, 4)));
  EXPECT_TRUE(same(rounded_down(n * half * half), floor_div(n, 4)));
  EXPECT_TRUE(same(n * 2 * half, n)) << "no rounding is needed";
  EXPECT_TRUE(same(rounded_down(dim_of_real(2.5)), 2));
  EXPECT_TRUE(same(rounded_up(dim_of_real(-2.5)), -2));
  EXPECT_TRUE(same(rounded_down(real_quotient(n * 2 + 1, -2)), floor_div(Dim(-1) - n * 2, 2)));
}

TEST(DimFractions, CancelSizes) {
  const Dim scale = real_quotient(n * 2 + 1, t);
  EXPECT_TRUE(same(scale * t, n * 2 + 1));
  EXPECT_TRUE(same(rounded_down(scale * n), floor_div((n * 2 + 1) * n, t)));
  EXPECT_TRUE(same(real_quotient(n, n), 1));
}

TEST(DimFractions, AreUnknownWhereTheValueIsNotCertain) {
  EXPECT_TRUE(dim_of_real(0.1).is_unknown()) << "no float is a tenth";
  EXPECT_TRUE(dim_of_real(1e30).is_unknown());
  EXPECT_TRUE(rounded_down(real_quotient(n, t) + 1 + real_quotient(t, n)).is_unknown());
  EXPECT_TRUE(rounded_to_zero(n * dim_of_real(0.5) - 1).is_unknown()) << "it may be below zero";
  EXPECT_TRUE(same(rounded_to_zero(n * dim_of_real(0.5)), floor_div(n, 2)));
  EXPECT_TRUE(real_quotient(n, 0).is_unknown());
}

TEST(Dims, OrdersThatNeedNotHoldAreNotAssumed) {
  EXPECT_EQ((n - t).lower_bound(), std::nullopt);
  EXPECT_EQ((floor_div(n, 2) * 2 - n).lower_bound(), -1);
  EXPECT_EQ((floor_div(n, 2) * 3 - n * 2).lower_bound(), std::nullopt);
  EXPECT_EQ(min(n, t).to_string(), "min(n,t)");
  EXPECT_EQ((n - mod(t, 4)).lower_bound(), -3);
}

TEST(Dims, AnUnknownMayHaveALeastValue) {
  const Dim some = Dim::at_least(3), unknown = Dim::unknown();
  EXPECT_TRUE(some.is_unknown());
  EXPECT_TRUE(identical(some, unknown));
  EXPECT_FALSE(same(some, some));
  EXPECT_EQ(unknown.lower_bound(), std::nullopt);
  EXPECT_EQ((some + 2).lower_bound(), 5);
  EXPECT_EQ((some + Dim::at_least(-5)).lower_bound(), -2);
  EXPECT_EQ((some + unknown).lower_bound(), std::nullopt);
  EXPECT_EQ((some - 4).lower_bound(), -1);
  EXPECT_EQ((Dim(4) - some).lower_bound(), std::nullopt);
  EXPECT_EQ((some * Dim::at_least(2)).lower_bound(), 6);
  EXPECT_EQ((some * Dim(-1)).lower_bound(), std::nullopt);
  EXPECT_EQ(floor_div(some, 2).lower_bound(), 1);
  EXPECT_EQ(floor_div(some - 9, 2).lower_bound(), std::nullopt);
  EXPECT_TRUE(min(some, 3).is_known(3)) << "it is never smaller";
  EXPECT_EQ(min(some, 7).lower_bound(), 3);
  EXPECT_EQ(max(unknown, 2).lower_bound(), 2);
  EXPECT_EQ((Dim::at_least(INT64_MAX) + 1).lower_bound(), std::nullopt);
  Dim moved = some;
  const Dim taken = std::move(moved);
  EXPECT_EQ(taken.lower_bound(), 3);
}

TEST(Dims, NamesThatReadLikeExpressionsStayApart) {
  const Dim odd = Dim::symbol("n+t");
  EXPECT_FALSE(same(odd * 2, n * 2 + t));
  EXPECT_EQ((odd * 2).to_string(), "2*(n+t)");
  EXPECT_EQ(odd.symbol_name(), "n+t");
}

}  // namespace
}  // namespace treadle
