// Rows that replace others in their memory.
#include "run/picked_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace treadle::run {
namespace {

using testing::HasSubstr;

PickedRows picked(const std::vector<int64_t>& list) {
  const auto count = static_cast<int64_t>(list.size());
  auto rows = PickedRows::read(list.data(), true, count, count);
  EXPECT_TRUE(rows.ok());
  return *rows;
}

// The result of the moves for rows that hold their own numbers, and how often the spare row was needed.
std::vector<int64_t> moved(const PickedRows& rows, int* spares = nullptr) {
  std::vector<int64_t> places(rows.rows().size() + 1);
  std::iota(places.begin(), places.end(), int64_t{0});
  for (const auto [to, from] : rows.in_place()) {
    if (spares && to == rows.from()) ++*spares;
    places[static_cast<size_t>(to)] = places[static_cast<size_t>(from)];
  }
  places.pop_back();
  return places;
}

TEST(PickedRows, RowsThatStayAreNotMoved) {
  EXPECT_TRUE(picked({0, 1, 2}).in_place().empty());
  EXPECT_TRUE(picked({-3, -2, -1}).in_place().empty());
  EXPECT_TRUE(picked({}).in_place().empty());
  EXPECT_EQ(picked({0, 0, 2}).in_place().size(), 1u);
}

TEST(PickedRows, CyclesTakeTheSpareRowOnce) {
  int spares = 0;
  EXPECT_EQ(moved(picked({1, 2, 0}), &spares), (std::vector<int64_t>{1, 2, 0}));
  EXPECT_EQ(spares, 1);
  EXPECT_EQ(moved(picked({1, 0, 3, 2, 4}), &spares), (std::vector<int64_t>{1, 0, 3, 2, 4}));
  EXPECT_EQ(spares, 3);
  // A row that is read outside of its cycle as well.
  spares = 0;
  EXPECT_EQ(moved(picked({1, 0, 0}), &spares), (std::vector<int64_t>{1, 0, 0}));
  EXPECT_EQ(spares, 1);
}

TEST(PickedRows, EveryListOfFourRows) {
  for (int64_t code = 0; code < 4 * 4 * 4 * 4; ++code) {
    const std::vector<int64_t> list{code % 4, code / 4 % 4, code / 16 % 4, code / 64};
    EXPECT_EQ(moved(picked(list)), list);
  }
}

TEST(PickedRows, LongLists) {
  std::mt19937 engine(3);
  for (int repeat = 0; repeat < 50; ++repeat) {
    std::vector<int64_t> list(100);
    for (int64_t& row : list) row = static_cast<int64_t>(engine() % 100);
    if (repeat % 2) std::iota(list.begin(), list.end(), int64_t{0}), std::shuffle(list.begin(), list.end(), engine);
    EXPECT_EQ(moved(picked(list)), list);
  }
}

TEST(PickedRows, RowsThatAreNotThere) {
  const int32_t list[] = {0, 3};
  const auto rows = PickedRows::read(list, false, 3, 2);
  ASSERT_FALSE(rows.ok());
  EXPECT_THAT(rows.error().to_string(), HasSubstr("index 3 is out of range, expected -3 to 2"));
  EXPECT_TRUE(PickedRows::read(list, false, 4, 2).ok());
}

}  // namespace
}  // namespace treadle::run
