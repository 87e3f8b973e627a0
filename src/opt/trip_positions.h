#pragma once
// What is known about a Loop before the loop runs: the trip count, and which positions of its data the trips pick.

#include <optional>
#include <vector>

#include "infer/inference.h"
#include "op/loop_view.h"

namespace treadle::opt {

// An integer from outside of a loop that only a run knows.
struct Term {
  ir::Value* value = nullptr;  // one element
  bool minus = false;
};

// A number, or a size that is a symbol, and what only a run knows.
struct Sum {
  Dim number = 0;
  std::vector<Term> terms = {};
};

Sum operator+(Sum a, const Sum& b);
Sum operator-(Sum a, Sum b);
bool same(const Sum& a, const Sum& b);

// Positions [low, low + trips) of an axis, one per trip.
struct Picked {
  ir::Value* whole = nullptr;
  int64_t axis = 0;
  Sum low;
  bool reverse = false;  // the last one first
};

// Trips are counted where nothing but M ends the loop, or where the body's condition compares a counter with a number:
// while (k < n) { ...; ++k; }. An index is a counter, a counter plus a number, or a number minus a counter, in whatever
// Cast, Unsqueeze, Squeeze and Reshape make of it. Counters are the trip number and states that each trip makes one
// more, or one less.
class CountedLoop {
 public:
  // What it takes for granted: nothing that does not follow from sizes and constants; or what can be looked at before
  // the loop, when it runs.
  enum class Trust : uint8_t { kProofs, kGuards };

  CountedLoop(const ir::Node& loop, const Inference& known, Trust trust = Trust::kProofs);

  // Unknown: its trips are not counted. With kGuards a symbol, unless it is a number.
  const Dim& trips() const { return trips_; }
  // With kGuards, trips() is true if: the count is at least 1, `limit` (if any) at least the count, and the condition
  // (if any) true.
  const Sum& count() const { return count_; }
  const std::optional<Sum>& limit() const { return limit_; }
  ir::Value* condition() const { return condition_; }
  // The body's condition compares a counter; otherwise it stays true.
  bool asks() const { return asks_; }

  // What a Gather or a Slice picks by the counter. With kProofs, it is inside of the data in all trips.
  std::optional<Picked> picked_by(const ir::Node& node) const;

  // Whether `index` is a position of an axis of `size` in all trips. Wants kProofs.
  bool stays_inside(const ir::Value* index, const Dim& size) const;

  // Whether a state is one more, or one less, in each trip.
  bool is_counter(size_t state) const;

 private:
  // An index in trip i: offset + i, or offset - i.
  struct Index {
    Sum offset;
    bool falls = false;
  };

  void count_trips();
  std::optional<Sum> trips_by_condition(const ir::Value* v) const;
  std::optional<Sum> trips_by_comparing(const ir::Node& node) const;
  std::optional<Sum> number(const ir::Value* v) const;
  std::optional<Index> index_of(const ir::Value* v) const;
  std::optional<Index> index_of_state(const ir::Value* v) const;
  std::optional<Index> sum(const ir::Node& node) const;
  std::optional<Picked> picked(ir::Value* whole, int64_t axis, const std::optional<Index>& index) const;
  Sum lowest(const Index& index) const;
  bool is_inside(const Sum& low, const Dim& size) const;

  const LoopView loop_;
  const ir::Region& body_;
  const Inference& known_;
  const Trust trust_;
  Dim trips_;
  Sum count_;
  std::optional<Sum> limit_;
  ir::Value* condition_ = nullptr;
  bool asks_ = false;
};

}  // namespace treadle::opt
