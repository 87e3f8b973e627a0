// The order of a sum, written out: an element is its position, a sum a pair of parentheses.

#include "kernels/sum_order.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace treadle::kernels {
namespace {

// A block that is combined in vectors of two lanes.
struct Text : sum_order::KnownLength {
  using Element = std::string;
  using Vector = std::vector<std::string>;

  static size_t lanes() { return 2; }
  static Element element(size_t i) { return std::to_string(i); }
  static Vector vector(size_t i) { return {element(i), element(i + 1)}; }
  static Vector new_vector() { return {}; }
  static Element combine(const Element& x, const Element& y) { return "(" + x + "+" + y + ")"; }
  static Vector combine(const Vector& x, const Vector& y) { return {combine(x[0], y[0]), combine(x[1], y[1])}; }
  template <class Fn>
  static Element split(const Vector& v, const Fn& fn) {
    return fn(v[0], v[1]);
  }
  template <class Fn>
  static Element split(const Element& v, const Fn& /*fn*/) {
    return v;
  }
};

std::string block(size_t n) {
  std::string sum;
  sum_order::combine_block(Text{{n}}, sum);
  return sum;
}

TEST(SumOrder, TakesElementsInOrderWhereTheyFillNoVector) {
  EXPECT_EQ(block(1), "0");
}

TEST(SumOrder, TakesVectorsOneByOneWhereThereAreNotFour) {
  EXPECT_EQ(block(2), "(0+1)");
  EXPECT_EQ(block(7), "((((0+2)+4)+((1+3)+5))+6)");
}

TEST(SumOrder, TakesFourVectorsSideBySide) {
  EXPECT_EQ(block(8), "(((0+2)+(4+6))+((1+3)+(5+7)))");
  EXPECT_EQ(block(17), "(((((0+8)+(2+10))+((4+12)+(6+14)))+(((1+9)+(3+11))+((5+13)+(7+15))))+16)");
  EXPECT_EQ(block(10), "((((0+2)+(4+6))+8)+(((1+3)+(5+7))+9))");
}

TEST(SumOrder, TakesAllElementsInOrderWithoutVectors) {
  std::string sum;
  sum_order::combine_in_order(Text{{4}}, sum);
  EXPECT_EQ(sum, "(((0+1)+2)+3)");
}

}  // namespace
}  // namespace treadle::kernels
