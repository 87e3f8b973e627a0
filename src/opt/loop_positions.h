#pragma once
// The facts about a Loop before it runs: the trip count, and the positions of its data that the iterations pick.

#include <optional>
#include <vector>

#include "infer/inference.h"
#include "op/loop_view.h"

namespace treadle::opt {

// An integer from outside of a loop whose value is unknown at planning.
struct Term {
  ir::Value* value = nullptr;  // has one element
  bool minus = false;
};

// A number, or a size that is a symbol, plus integers that are unknown at planning.
struct Sum {
  Dim number = 0;
  std::vector<Term> terms = {};
};

Sum operator+(Sum a, const Sum& b);
Sum operator-(Sum a, Sum b);
bool same(const Sum& a, const Sum& b);

// Positions [low, low + iterations) of an axis, one per iteration.
struct Picked {
  ir::Value* whole = nullptr;
  int64_t axis = 0;
  Sum low;
  bool reverse = false;  // begins with the last position
};

// Iterations are counted if only M ends the loop, or if the body's condition compares a counter with a number: while (k
// < n) { ...; ++k; }. An index is a counter, a counter plus a number, or a number minus a counter, in any form that
// Cast, Unsqueeze, Squeeze and Reshape give it. A counter is the iteration's number, or a state that each iteration
// increments or decrements by one.
class CountedLoop {
 public:
  // The facts that the class may assume. kProofs: facts that follow from sizes and constants. kGuards: also facts that
  // nodes can check in front of the loop during the run.
  enum class Trust : uint8_t { kProofs, kGuards };

  CountedLoop(const ir::Node& loop, const Inference& known, Trust trust = Trust::kProofs);

  // The trip count; unknown if iterations are not counted. With kGuards it is a symbol, unless it is a number.
  const Dim& iterations() const { return iterations_; }
  // With kGuards, iterations() is correct if the count is at least 1, `limit` (if any) is at least the count, and the
  // condition (if any) is true.
  const Sum& count() const { return count_; }
  const std::optional<Sum>& limit() const { return limit_; }
  ir::Value* condition() const { return condition_; }
  // Whether the body's condition compares a counter; otherwise it stays true.
  bool asks() const { return asks_; }

  // The positions that a Gather or a Slice picks by the counter. With kProofs, they are inside of the data in all
  // iterations.
  std::optional<Picked> picked_by(const ir::Node& node) const;

  // Whether `index` is a position of an axis of `size` in all iterations. Only with kProofs.
  bool stays_inside(const ir::Value* index, const Dim& size) const;

  // Whether each iteration increments or decrements the state by one.
  bool is_counter(size_t state) const;

 private:
  // The index in iteration i: offset + i, or offset - i.
  struct Index {
    Sum offset;
    bool falls = false;
  };

  void count_iterations();
  std::optional<Sum> iterations_by_condition(const ir::Value* v) const;
  std::optional<Sum> iterations_by_comparing(const ir::Node& node) const;
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
  Dim iterations_;
  Sum count_;
  std::optional<Sum> limit_;
  ir::Value* condition_ = nullptr;
  bool asks_ = false;
};

}  // namespace treadle::opt
