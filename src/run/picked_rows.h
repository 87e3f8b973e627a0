#pragma once
// A permutation or choice of rows in place: row i of the result is row rows[i] of the old contents.

#include <cstdint>
#include <span>

#include "base/inline_vector.h"
#include "base/status.h"

namespace treadle::run {

class PickedRows {
 public:
  // `list`: int32, or int64 if `wide`; negative indices count from the end. Errors: kRuntime for an index outside of
  // `from` rows.
  static Result<PickedRows> read(const void* list, bool wide, int64_t from, int64_t count);

  int64_t from() const { return from_; }
  std::span<const int64_t> rows() const { return {rows_.data(), rows_.size()}; }

  // The copies to make, in an order in which each row is read before it is overwritten. Rows that stay are left out.
  // Row number from() is a spare row. Only for as many new rows as old ones.
  struct Move {
    int64_t to = 0, from = 0;
  };
  using Moves = InlineVector<Move, 16>;
  Moves in_place() const;

 private:
  int64_t from_ = 0;
  InlineVector<int64_t, 16> rows_;
};

}  // namespace treadle::run
