#include "ops/ml/forest.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace treadle::ml {
namespace {

constexpr size_t kFeatures = 3;

// Trees of random comparisons; leaf i weighs i.
struct RandomForest {
  std::mt19937 random;
  std::vector<Split> splits;
  std::vector<Branch> roots;
  uint32_t leaves = 0;

  RandomForest(unsigned seed, int trees, int depth) : random(seed) {
    for (int i = 0; i < trees; ++i) roots.push_back(draw(depth));
  }
  int below(int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }
  double number() { return below(9) - 4; }

  Branch draw(int depth) {
    if (depth == 0 || below(6) == 0) return {true, leaves++};
    const auto index = static_cast<uint32_t>(splits.size());
    splits.emplace_back();
    Split s;
    s.mode = static_cast<Mode>(below(7));
    s.missing_is_yes = below(2) == 0;
    s.feature = static_cast<uint32_t>(below(kFeatures));
    s.threshold = number();
    for (int i = below(5); s.mode == Mode::kMember && i > 0; --i) s.members.push_back(number());
    s.yes = draw(depth - 1);
    s.no = draw(depth - 1);
    splits[index] = s;
    return {false, index};
  }

  Result<Forest> build() const {
    std::vector<Weight> weights;
    std::vector<uint32_t> first = {0};
    for (uint32_t i = 0; i < leaves; ++i) {
      weights.push_back({0, static_cast<double>(i)});
      first.push_back(i + 1);
    }
    Forest forest;
    TREADLE_TRY(forest.build(splits, roots, first, weights, 1));
    return forest;
  }

  static bool holds(const Split& s, double x) {
    if (std::isnan(x)) return s.missing_is_yes;
    switch (s.mode) {
      case Mode::kLessEqual:
        return x <= s.threshold;
      case Mode::kLess:
        return x < s.threshold;
      case Mode::kGreaterEqual:
        return x >= s.threshold;
      case Mode::kGreater:
        return x > s.threshold;
      case Mode::kEqual:
        return x == s.threshold;
      case Mode::kNotEqual:
        return x != s.threshold;
      case Mode::kMember:
        return std::find(s.members.begin(), s.members.end(), x) != s.members.end();
    }
    return false;
  }
  double score(const double* x) const {
    double sum = 0;
    for (Branch at : roots) {
      while (!at.leaf)
        at = holds(splits[at.index], x[splits[at.index].feature]) ? splits[at.index].yes : splits[at.index].no;
      sum += at.index;
    }
    return sum;
  }
};

template <class T>
void expect_scores(const Forest& forest, const RandomForest& model, const std::vector<double>& x, size_t rows) {
  const std::vector<T> features(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(rows * kFeatures));
  std::vector<double> scores(rows * 2, -1);
  forest.evaluate(features.data(), rows, kFeatures, scores.data(), 2);
  for (size_t i = 0; i < rows; ++i)
    EXPECT_EQ(scores[2 * i], model.score(x.data() + i * kFeatures)) << i << " of " << rows;
}

TEST(Forest, ScoresAsAWalkByHand) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    RandomForest model(seed, static_cast<int>(seed % 11) + 1, static_cast<int>(seed % 9));
    const auto forest = model.build();
    ASSERT_TRUE(forest.ok()) << forest.error().to_string();
    std::vector<double> x(Forest::kBlock * kFeatures);
    for (double& v : x) v = model.below(8) == 0 ? std::nan("") : model.number() / (model.below(2) + 1);
    for (const size_t rows : {0, 1, 3, 5, 8, 17, 64}) {
      expect_scores<float>(*forest, model, x, rows);
      expect_scores<double>(*forest, model, x, rows);
    }
  }
}

TEST(Forest, ALongChainIsWrittenWithoutRecursion) {
  constexpr uint32_t kLength = 200'000;
  std::vector<Split> splits(kLength);
  std::vector<Weight> weights;
  std::vector<uint32_t> first = {0};
  for (uint32_t i = 0; i < kLength; ++i) {
    splits[i].threshold = i;
    splits[i].yes = {true, i};
    splits[i].no = i + 1 < kLength ? Branch{false, i + 1} : Branch{true, i};
    weights.push_back({0, static_cast<double>(i)});
    first.push_back(i + 1);
  }
  Forest forest;
  ASSERT_TRUE(forest.build(splits, std::vector<Branch>{{false, 0}}, first, weights, 1).ok());
  const double x[] = {0, 1000.5, 1e9};
  double scores[3];
  forest.evaluate(x, 3, 1, scores, 1);
  EXPECT_EQ(scores[0], 0);
  EXPECT_EQ(scores[1], 1001);
  EXPECT_EQ(scores[2], kLength - 1);
}

TEST(Forest, ANodeOfTwoParentsIsAnError) {
  std::vector<Split> splits(3);
  splits[0].yes = {false, 1};
  splits[0].no = {false, 2};
  splits[1].yes = {false, 2};
  splits[1].no = splits[2].yes = splits[2].no = {true, 0};
  Forest forest;
  const Status status = forest.build(splits, std::vector<Branch>{{false, 0}}, {0, 1}, {{0, 1.0}}, 1);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("two parents"), std::string::npos);
  splits[1].yes = {false, 0};  // a circle
  EXPECT_FALSE(Forest().build(splits, std::vector<Branch>{{false, 0}}, {0, 1}, {{0, 1.0}}, 1).ok());
}

}  // namespace
}  // namespace treadle::ml
