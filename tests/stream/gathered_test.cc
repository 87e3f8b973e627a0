// The results of several runs for one output, joined along time, stacked, or as a sequence.
#include "stream/gathered.h"

#include <gtest/gtest.h>

#include <cstring>

#include "support/text_session.h"

namespace treadle::testing_support {
namespace {

using Rule = Gathered::Rule;

// Gathers the rows into `place`, with `count` expected rows (0: unknown).
Status gather(Gathered& gathered, const std::vector<AnyValue>& rows, size_t count, AnyValue& place,
              int64_t window = 1) {
  gathered.begin(window, count, place);
  for (const AnyValue& row : rows) {
    gathered.row() = row;
    TREADLE_TRY(gathered.take());
  }
  return gathered.finish(place);
}

AnyValue gather(const Rule& rule, const std::vector<AnyValue>& rows, size_t count, int64_t window = 1) {
  Gathered gathered(rule);
  AnyValue place;
  const Status status = gather(gathered, rows, count, place, window);
  EXPECT_TRUE(status.ok()) << status.to_string();
  return place;
}

AnyValue texts(const std::string& text) {
  return Tensor::scalar(text);
}

const Rule kStacked{.name = "y", .stacks = true}, kJoined{.name = "y", .axis = 1, .stacks = true};

TEST(Gathered, RowsAreStackedAlongANewFirstAxis) {
  const AnyValue a = some_floats({2, 3}), b = some_floats({2, 3}, 1);
  for (const size_t count : {1, 2}) {
    const std::vector<AnyValue> rows = count == 1 ? std::vector{a} : std::vector{a, b};
    const AnyValue result = gather(kStacked, rows, count);
    EXPECT_EQ(result.tensor().dims(), (Dims{static_cast<int64_t>(count), 2, 3}));
    std::vector<float> expected = floats_of(a);
    if (count == 2) expected.insert(expected.end(), rows[1].tensor().data<float>(), rows[1].tensor().data<float>() + 6);
    EXPECT_EQ(floats_of(result), expected);
  }
}

TEST(Gathered, RowsOfUnlikeSizesAreASequence) {
  const std::vector<AnyValue> rows = {some_floats({2}), some_floats({2}, 1), some_floats({3}, 2)};
  const AnyValue result = gather(kStacked, rows, 3);
  ASSERT_EQ(result.kind(), AnyValue::Kind::kSequence);
  ASSERT_EQ(result.sequence().size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(identical(result.sequence()[i], rows[i])) << i;
}

TEST(Gathered, RowsOfTextAreStackedToo) {
  const AnyValue result = gather(kStacked, {texts("a"), texts("b")}, 2);
  ASSERT_EQ(result.tensor().dims(), Dims{2});
  EXPECT_EQ(result.tensor().data<String>()[1], "b");
}

TEST(Gathered, WhatIsNoTensorIsASequenceOverHopsAndElseTheLastOne) {
  const AnyValue list = Sequence(Type::tensor(ElementType::kFloat), {some_floats({1})});
  for (const size_t count : {1, 2}) {
    const AnyValue result = gather(kStacked, std::vector<AnyValue>(count, list), count);
    ASSERT_EQ(result.kind(), AnyValue::Kind::kSequence);
    EXPECT_EQ(result.sequence().size(), count);
    EXPECT_TRUE(identical(result.sequence()[0], list));
  }
  EXPECT_TRUE(identical(gather({.name = "y"}, {list}, 1), list));
}

TEST(Gathered, FramesAreJoinedAlongTime) {
  const AnyValue a = some_floats({2, 2}), b = some_floats({2, 2}, 1), longer = some_floats({2, 3}, 2);
  const auto expect = [](const AnyValue& result, const std::vector<AnyValue>& rows) {
    int64_t at = 0;
    for (const AnyValue& row : rows) {
      const int64_t frames = row.tensor().dims()[1], all = result.tensor().dims()[1];
      for (int64_t i = 0; i < 2 * frames; ++i) {
        EXPECT_EQ(result.tensor().data<float>()[i / frames * all + at + i % frames], row.tensor().data<float>()[i]);
      }
      at += frames;
    }
    EXPECT_EQ(result.tensor().dims(), (Dims{2, at}));
  };
  const std::vector<std::vector<AnyValue>> all{{a}, {a, b}, {a, b, longer}, {longer, a}, {a, longer, b}};
  for (const std::vector<AnyValue>& rows : all) {
    expect(gather(kJoined, rows, rows.size()), rows);
    expect(gather(kJoined, rows, 0), rows);  // any number of rows
  }
}

TEST(Gathered, FramesOfTheContextAreLeftOut) {
  const Rule rule{.name = "y", .axis = 1, .context = 2, .stacks = true};
  const AnyValue row = some_floats({1, 3});  // of a window of 6 samples, so one frame for two
  for (const size_t count : {1, 2}) {
    const AnyValue result = gather(rule, std::vector<AnyValue>(count, row), count, 6);
    EXPECT_EQ(result.tensor().dims(), (Dims{1, static_cast<int64_t>(2 * count)}));
    EXPECT_EQ(floats_of(result)[0], floats_of(row)[1]);
  }
  Gathered gathered(rule);
  AnyValue place;
  EXPECT_EQ(gather(gathered, {some_floats({1, 4})}, 1, place, 6).code(), Code::kInvalidArgument);
  EXPECT_EQ(gather(gathered, {some_floats({4})}, 1, place, 6).code(), Code::kInvalidArgument);
}

TEST(Gathered, OfOutputsWithoutFramesTheLastOneCounts) {
  const AnyValue first = some_floats({3}), last = some_floats({3}, 1);
  EXPECT_TRUE(identical(gather({.name = "y"}, {first, last}, 0), last));
}

// The memory of the place is used if it fits, for the row itself or for a copy of it.
TEST(Gathered, ResultsAreWrittenInTheMemoryOfThePlace) {
  const AnyValue row = some_floats({1, 2});
  for (const Rule& rule : {kStacked, kJoined}) {
    for (const size_t count : {1, 2}) {
      AnyValue place = gather(rule, std::vector<AnyValue>(count, *row.tensor().clone()), count);
      const std::vector<float> expected = floats_of(place);
      const void* const memory = place.tensor().raw();
      Gathered gathered(rule);
      gathered.begin(1, count, place);
      for (size_t i = 0; i < count; ++i) {
        if (gathered.row().is_none()) gathered.row() = *row.tensor().clone();
        std::memcpy(gathered.row().tensor().mutable_raw(), row.tensor().raw(), row.tensor().byte_size());
        ASSERT_TRUE(gathered.take().ok());
      }
      ASSERT_TRUE(gathered.finish(place).ok());
      EXPECT_EQ(place.tensor().raw(), memory);
      EXPECT_EQ(floats_of(place), expected);
      const AnyValue shared = place;  // a second reference
      EXPECT_TRUE(gather(gathered, std::vector<AnyValue>(count, some_floats({1, 2}, 3)), count, place).ok());
      EXPECT_EQ(floats_of(shared), expected);
    }
  }
}

TEST(Gathered, APlaceGetsItsMemoryBackWhenARunFails) {
  for (const Rule& rule : {kStacked, kJoined}) {
    AnyValue place = gather(rule, {some_floats({1, 2})}, 1), none;
    const void* const memory = place.tensor().raw();
    const Dims dims = place.tensor().dims();
    Gathered gathered(rule);
    gathered.begin(1, 1, place);
    gathered.give_back(place);
    EXPECT_EQ(place.tensor().raw(), memory);
    EXPECT_EQ(place.tensor().dims(), dims);
    gathered.begin(1, 1, none);
    gathered.row() = some_floats({1, 2});
    gathered.give_back(none);
    EXPECT_TRUE(none.is_none());
  }
}

}  // namespace
}  // namespace treadle::testing_support
