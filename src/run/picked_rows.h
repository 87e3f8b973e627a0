#pragma once
// Rows that take the places of others where they lie: row i of the result is row rows[i] of what was there.

#include <cstdint>
#include <span>

#include "base/inline_vector.h"
#include "base/status.h"

namespace treadle::run {

class PickedRows {
 public:
  // `list`: int32 or int64, negative ones counted from the end; one outside of `from` rows is an error.
  static Result<PickedRows> read(const void* list, bool wide, int64_t from, int64_t count);

  int64_t from() const { return from_; }
  std::span<const int64_t> rows() const { return {rows_.data(), rows_.size()}; }

  // What has to be copied where, one after the other, so that each row is read before another takes its place: rows
  // that stay are not among it. The spare row is row from(). Only where there are as many rows as before.
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
