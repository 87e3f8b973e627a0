#include "run/picked_rows.h"

#include "op/dynamic_kernel.h"
#include "op/kernel.h"

namespace treadle::run {

namespace {

// Orders the moves of one list.
class Order {
 public:
  explicit Order(std::span<const int64_t> rows) : from_(rows.begin(), rows.end()) {
    readers_.resize(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      if (moves(i)) ++readers_[static_cast<size_t>(rows[i])];
    }
  }

  PickedRows::Moves run() {
    for (size_t i = 0; i < from_.size(); ++i) {
      if (moves(i) && readers_[i] == 0) move_chain(i);
    }
    for (size_t i = 0; i < from_.size(); ++i) {
      if (moves(i)) move_cycle(i);
    }
    return std::move(made_);
  }

 private:
  bool moves(size_t i) const { return from_[i] != static_cast<int64_t>(i); }

  // No row reads row i any more, so it can be written. That frees the row that row i reads, and so on.
  void move_chain(size_t i) {
    for (bool free = true; free;) {
      const auto from = static_cast<size_t>(from_[i]);
      move(i, from_[i]);
      free = --readers_[from] == 0 && moves(from);
      i = from;
    }
  }

  // Each row of a cycle is read by exactly one other.
  void move_cycle(size_t i) {
    const auto first = static_cast<int64_t>(i), spare = static_cast<int64_t>(from_.size());
    made_.push_back({spare, first});
    while (from_[i] != first) {
      const auto from = static_cast<size_t>(from_[i]);
      move(i, from_[i]);
      i = from;
    }
    move(i, spare);
  }

  void move(size_t to, int64_t from) {
    made_.push_back({static_cast<int64_t>(to), from});
    from_[to] = static_cast<int64_t>(to);
  }

  InlineVector<int64_t, 16> from_;     // the row that a row reads; itself once it has moved
  InlineVector<int64_t, 16> readers_;  // by row: how many rows that have not moved read it
  PickedRows::Moves made_;
};

}  // namespace

Result<PickedRows> PickedRows::read(const void* list, bool wide, int64_t from, int64_t count) {
  PickedRows made;
  made.from_ = from;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = index_at(list, wide, i), row = index < 0 ? index + from : index;
    if (row < 0 || row >= from) return kernel_status(fail(KernelError::kIndexOutOfRange, index, from));
    made.rows_.push_back(row);
  }
  return made;
}

PickedRows::Moves PickedRows::in_place() const {
  return Order(rows()).run();
}

}  // namespace treadle::run
