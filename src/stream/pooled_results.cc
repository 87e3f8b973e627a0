// Joins the results of a pool's push for each stream, or into one array with an entry for each.

#include <fmt/format.h>

#include <algorithm>

#include "stream/entries.h"
#include "stream/pooled_push.h"
#include "stream/tensor_slices.h"

namespace treadle {

Result<AnyValue> PooledPush::result_of(const Row& row, size_t output) const {
  std::vector<AnyValue> parts;
  for (const Piece& piece : cohorts_[row.with].pieces) {
    if (row.position >= piece.rows) continue;
    const AnyValue& result = piece.results[output];
    // Elements of a sequence are not stacked.
    const int64_t axis = result.is_tensor() ? model_.result_axis(output) : model_.outputs[output];
    TREADLE_ASSIGN(parts.emplace_back(), entries::of_result(result, axis, row.position));
  }
  const int64_t axis = layout_.outputs[output].time_axis;
  return Gathered::joined({.name = layout_.output_names[output], .axis = axis, .stacks = layout_.hop > 0},
                          std::move(parts));
}

// The length of a result along the axis on which pushes are joined; 1 if the last result counts.
int64_t PooledPush::length_of(const AnyValue& result, size_t output) const {
  const int64_t axis = model_.joined_axis(output);
  if (!result.is_tensor()) return 0;
  return axis < 0 ? 1 : result.tensor().dims()[static_cast<size_t>(axis)];
}

int64_t PooledPush::length_of(const Row& row, size_t output) const {
  int64_t length = 0;
  for (const Piece& piece : cohorts_[row.with].pieces) {
    if (row.position >= piece.rows) break;
    const int64_t more = length_of(piece.results[output], output);
    length = model_.joined_axis(output) < 0 ? more : length + more;
  }
  return length;
}

Status PooledPush::join_results(std::vector<AnyValue>& outputs, std::span<int64_t> lengths) const {
  const std::vector<Piece>& pieces = cohorts_.front().pieces;
  const bool in_order = cohorts_.size() == 1 && pieces.size() == 1 && pieces.front().rows == rows_.size();
  if (in_order) outputs = pieces.front().results;
  std::vector<int64_t> of_output(rows_.size());
  for (size_t o = 0; o < outputs.size() && !(in_order && lengths.empty()); ++o) {
    for (size_t i = 0; i < rows_.size(); ++i) of_output[i] = length_of(rows_[i], o);
    for (size_t i = 0; i < rows_.size() && !lengths.empty(); ++i) lengths[i * outputs.size() + o] = of_output[i];
    if (in_order) continue;
    if (lengths.empty()) TREADLE_TRY(check_lengths(o, of_output));
    TREADLE_TRY(join_result(o, of_output, outputs[o]));
  }
  return {};
}

Status PooledPush::check_lengths(size_t output, std::span<const int64_t> lengths) const {
  if (model_.result_axis(output) == kNoAxis) return {};
  const auto other = std::find_if(lengths.begin(), lengths.end(), [&](int64_t n) { return n != lengths.front(); });
  if (other == lengths.end()) return {};
  return error(Code::kInvalidArgument,
               "streams {} and {} are not equally far: their results of '{}' have unlike sizes. Ask for their lengths, "
               "or give chunks of their own to the streams",
               rows_.front().member->id, rows_[static_cast<size_t>(other - lengths.begin())].member->id,
               layout_.output_names[output]);
}

// Joins the results of streams of several groups, or of different lengths, into one array.
Status PooledPush::join_result(size_t output, std::span<const int64_t> lengths, AnyValue& joined) const {
  const int64_t axis = model_.result_axis(output), time = model_.joined_axis(output);
  if (axis == kNoAxis) {
    joined = cohorts_.front().pieces.front().results[output];
    return {};
  }
  TREADLE_ASSIGN(const Tensor* like, shape_of_results(output));
  if (!like) return {};
  Dims dims = like->dims();
  const auto [shortest, longest] = std::minmax_element(lengths.begin(), lengths.end());
  dims[static_cast<size_t>(axis)] = static_cast<int64_t>(rows_.size());
  if (time >= 0) dims[static_cast<size_t>(time)] = *longest;
  if (*shortest == *longest) {
    TREADLE_TRY(resize(joined, like->type(), dims));
  } else {
    TREADLE_ASSIGN(joined, zeros(like->type(), std::move(dims)));
  }
  copy_rows(output, joined.tensor());
  return {};
}

// A tensor with the type and sizes of all results, apart from entries and lengths; null: there is no result yet.
Result<const Tensor*> PooledPush::shape_of_results(size_t output) const {
  const int64_t axis = model_.result_axis(output), time = model_.joined_axis(output);
  const Tensor* like = nullptr;
  for (const Cohort& cohort : cohorts_) {
    for (const Piece& piece : cohort.pieces) {
      const AnyValue& result = piece.results[output];
      if (result.is_none()) continue;
      bool fits = result.is_tensor();
      if (fits && !like) like = &result.tensor();
      fits = fits && result.tensor().dims().size() == like->dims().size();
      for (size_t i = 0; fits && i < like->dims().size(); ++i) {
        const bool may_differ = static_cast<int64_t>(i) == axis || static_cast<int64_t>(i) == time;
        fits = may_differ || result.tensor().dims()[i] == like->dims()[i];
      }
      if (fits) continue;
      return error(
          Code::kInvalidArgument,
          "the results of '{}' of streams {} and {} fit into no array. Give chunks of their own to the streams",
          layout_.output_names[output], cohorts_.front().rows.front()->member->id, cohort.rows.front()->member->id);
    }
  }
  return like;
}

// Copies rows together that are contiguous in the same runs.
void PooledPush::copy_rows(size_t output, Tensor& joined) const {
  const int64_t axis = model_.result_axis(output), time = model_.joined_axis(output);
  for (size_t i = 0; i < rows_.size();) {
    const Row& row = rows_[i];
    size_t next = i + 1;
    while (next < rows_.size() && rows_[next].with == row.with && rows_[next].position == row.position + (next - i) &&
           rows_[next].runs == row.runs)
      ++next;
    const auto first = static_cast<int64_t>(row.position), count = static_cast<int64_t>(next - i);
    int64_t at = 0;
    for (const Piece& piece : cohorts_[row.with].pieces) {
      if (row.position >= piece.rows) break;
      const AnyValue& result = piece.results[output];
      if (!result.is_tensor()) continue;
      if (time < 0) {
        copy_along(result.tensor(), first, count, joined, static_cast<int64_t>(i), axis);
        continue;
      }
      const int64_t length = length_of(result, output);
      copy_block(result.tensor(), {{{axis, first, count}, {time, 0, length}}}, joined, {static_cast<int64_t>(i), at});
      at += length;
    }
    i = next;
  }
}

}  // namespace treadle
