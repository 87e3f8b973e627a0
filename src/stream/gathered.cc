#include "stream/gathered.h"

#include <algorithm>
#include <utility>

#include "stream/tensor_slices.h"

namespace treadle {

namespace {

AnyValue stacked(AnyValue row) {
  Dims dims = row.tensor().dims();
  dims.insert(size_t{0}, 1);
  return row.tensor().reshaped(std::move(dims));
}

bool is_row_of_stack(const AnyValue& value) {
  return value.is_tensor() && value.tensor().rank() > 0 && value.tensor().dims()[0] == 1;
}

AnyValue unstacked(AnyValue value) {
  const Dims& dims = value.tensor().dims();
  return value.tensor().reshaped(Dims(dims.begin() + 1, dims.end()));
}

}  // namespace

void Gathered::begin(int64_t window, size_t count, AnyValue& place) {
  window_ = window;
  count_ = count;
  made_ = 0;
  place_ = &place;
  list_.clear();
  if (!fresh_.is_none()) fresh_ = {};
  if (!is_free(row_)) row_ = {};
  row_at_ = &row_;
  is_lent_ = false;
  was_none_ = place.is_none();
  if (!is_whole() || !is_free(place)) return;
  if (!is_stacked()) {
    row_at_ = &place;
  } else if (is_row_of_stack(place)) {
    row_ = unstacked(std::exchange(place, {}));
    is_lent_ = true;
  }
}

void Gathered::give_back(AnyValue& place) {
  if (row_at_ == &place && was_none_) place = {};
  if (!std::exchange(is_lent_, false)) return;
  AnyValue row = std::exchange(row_, {});
  place = row.is_tensor() ? stacked(std::move(row)) : std::move(row);
}

const Dims* Gathered::row_dims() const {
  const AnyValue& row = list_.empty() ? *row_at_ : list_.back();
  return row.is_tensor() ? &row.tensor().dims() : nullptr;
}

// The part of the row that belongs to new samples.
Result<Gathered::Part> Gathered::new_part() const {
  const Tensor& row = row_at_->tensor();
  if (row.rank() <= rule_.axis) {
    return error(Code::kInvalidArgument, "output '{}' is {} and has no axis {}", rule_.name, to_string(row.dims()),
                 rule_.axis);
  }
  const int64_t frames = row.dims()[static_cast<size_t>(rule_.axis)];
  if (rule_.context == 0) return Part{0, frames};
  if (rule_.context * frames % window_ != 0) {
    return error(Code::kInvalidArgument,
                 "{} frames of output '{}' for a window of {} samples: its context of {} is no whole number of them",
                 frames, rule_.name, window_, rule_.context);
  }
  const int64_t skipped = rule_.context * frames / window_;
  return Part{skipped, frames - skipped};
}

Status Gathered::take() {
  const bool joins = row().is_tensor() && rule_.axis >= 0;
  Part part;
  if (joins) {
    TREADLE_ASSIGN(part, new_part());
  }
  ++made_;
  if (is_whole()) return {};
  if (count_ > 0 && list_.empty() && row_.is_tensor() && (joins || rule_.stacks)) {
    TREADLE_ASSIGN(const bool was_put, put(part));
    if (was_put) return {};
    TREADLE_TRY(list_what_was_put());
  }
  if (!joins) {
    list_.push_back(std::exchange(row_, {}));
    return {};
  }
  TREADLE_ASSIGN(Tensor frames, slice_axis(row_.tensor(), rule_.axis, part.begin, part.length));
  list_.push_back(std::move(frames));
  row_ = {};
  return {};
}

// Copies the row to its position in the result; false if its sizes differ from the first row's.
Result<bool> Gathered::put(const Part& part) {
  const Tensor& row = row_.tensor();
  const auto count = static_cast<int64_t>(count_), at = static_cast<int64_t>(made_) - 1;
  Dims dims = row.dims();
  if (rule_.axis >= 0) {
    dims[static_cast<size_t>(rule_.axis)] = part.length * count;
  } else {
    dims.insert(size_t{0}, count);
  }
  if (at == 0) {
    if (!can_take(*place_, row.type(), dims)) TREADLE_TRY(resize(fresh_, row.type(), dims));
  } else if (result().type() != row.type() || !(result().dims() == dims)) {
    return false;
  }
  if (rule_.axis >= 0) {
    copy_along(row, part.begin, part.length, result(), at * part.length, rule_.axis);
  } else {
    copy_row(row, result(), at);
  }
  return true;
}

// Turns the rows so far into a list, because the new row is the first with other sizes.
Status Gathered::list_what_was_put() {
  const Tensor& put = result();
  const auto count = static_cast<int64_t>(count_), rows = static_cast<int64_t>(made_) - 1;
  if (rule_.axis >= 0) {
    const int64_t frames = put.dims()[static_cast<size_t>(rule_.axis)] / count;
    TREADLE_ASSIGN(Tensor together, slice_axis(put, rule_.axis, 0, rows * frames));
    list_.push_back(std::move(together));
    return {};
  }
  for (int64_t i = 0; i < rows; ++i) {
    TREADLE_ASSIGN(Tensor row, slice_axis(put, 0, i, 1));
    list_.push_back(unstacked(std::move(row)));
  }
  return {};
}

Status Gathered::finish(AnyValue& place) {
  is_lent_ = false;
  if (!list_.empty()) return join_list(place);
  if (!is_whole()) {
    if (!fresh_.is_none()) place = std::exchange(fresh_, {});
  } else if (rule_.stacks && !row().is_tensor()) {
    place = Sequence(row().type(), {row()});
  } else if (is_stacked()) {
    place = stacked(std::exchange(row_, {}));
  } else if (row_at_ != &place) {
    place = std::exchange(row_, {});
  }
  return {};
}

Status Gathered::join_list(AnyValue& place) {
  const bool tensors = std::all_of(list_.begin(), list_.end(), [](const AnyValue& v) { return v.is_tensor(); });
  if (tensors && rule_.axis >= 0) {
    std::vector<const Tensor*> parts;
    for (const AnyValue& value : list_) parts.push_back(&value.tensor());
    AnyValue joined;
    TREADLE_TRY(concat_into(parts, rule_.axis, joined));
    place = std::move(joined);
  } else if (rule_.stacks) {
    const Type element = tensors ? Type::tensor(list_.front().tensor().type()) : list_.front().type();
    place = Sequence(element, list_);
  } else {
    place = list_.back();
  }
  return {};
}

namespace {

// Splits a stacked or listed result into rows.
Status unstack(const AnyValue& part, std::vector<AnyValue>& rows) {
  if (!part.is_tensor()) {
    const std::span<const AnyValue> elements = part.sequence().elements();
    rows.insert(rows.end(), elements.begin(), elements.end());
    return {};
  }
  for (int64_t i = 0; i < part.tensor().dims()[0]; ++i) {
    TREADLE_ASSIGN(Tensor row, slice_axis(part.tensor(), 0, i, 1));
    rows.push_back(unstacked(std::move(row)));
  }
  return {};
}

}  // namespace

Result<AnyValue> Gathered::joined(const Rule& rule, std::vector<AnyValue> parts) {
  if (parts.size() == 1 || (rule.axis < 0 && !rule.stacks)) return std::move(parts.back());
  const bool tensors = std::all_of(parts.begin(), parts.end(), [](const AnyValue& part) { return part.is_tensor(); });
  std::vector<const Tensor*> pointers;
  for (const AnyValue& part : parts) pointers.push_back(&part.tensor());
  AnyValue whole;
  if (tensors) {
    Status status = concat_into(pointers, std::max<int64_t>(rule.axis, 0), whole);
    if (status.ok()) return whole;
    if (rule.axis >= 0) return status;
  }
  std::vector<AnyValue> rows;  // rows of different sizes
  for (const AnyValue& part : parts) TREADLE_TRY(unstack(part, rows));
  Type element = rows.front().type();
  if (tensors) element = Type::tensor(rows.front().tensor().type());
  return AnyValue(Sequence(std::move(element), std::move(rows)));
}

}  // namespace treadle
