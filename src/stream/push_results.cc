// The second half of a push: results are handed out, and the stream takes over its new data.
#include <algorithm>
#include <utility>

#include "stream/layout.h"
#include "stream/push.h"
#include "stream/tensor_slices.h"

namespace treadle {

void Push::expect(size_t count, std::span<AnyValue* const> places) {
  for (size_t i = 0; i < places.size(); ++i) {
    gathered_[i].begin(layout_->context + block_.samples, count, *places[i]);
  }
}

Status Push::give(std::span<AnyValue* const> places) {
  for (size_t i = 0; i < places.size(); ++i) {
    Gathered& made = gathered_[i];
    last_dims_[i].clear();
    if (!last_values_[i].is_none()) last_values_[i] = {};  // left by a push that failed
    if (made.is_empty()) {
      TREADLE_TRY(give_nothing(i, *places[i]));
    } else if (layout_->over_time && layout_->outputs[i].time_axis < 0) {
      TREADLE_TRY(made.finish(*places[i]));
      TREADLE_TRY(keep_value(i, *places[i]));
    } else {
      const Dims* dims = made.row_dims();
      const bool is_known = !dims || *dims == carried_->last_dims[i];
      if (!is_known) last_dims_[i] = *dims;
      TREADLE_TRY(made.finish(*places[i]));
      if (!is_known && lacks_frames(i, *places[i])) {
        last_dims_[i].clear();
        TREADLE_TRY(give_nothing(i, *places[i]));
      }
    }
  }
  return {};
}

// Keeps a copy of the value for the stream, because the caller may let the next push overwrite its place. If the stream
// already has the memory, commit() copies.
Status Push::keep_value(size_t output, const AnyValue& value) {
  const AnyValue& before = carried_->last_values[output];
  if (value.is_tensor() && can_take(before, value.tensor().type(), value.tensor().dims())) return {};
  return copy_into(value, last_values_[output]);
}

// Without frames, a loop may not know its result's sizes; earlier results give them.
bool Push::lacks_frames(size_t output, const AnyValue& value) const {
  const auto axis = static_cast<size_t>(layout_->outputs[output].time_axis);
  if (!layout_->over_time || carried_->last_dims[output].empty()) return false;
  if (!value.is_tensor() || value.tensor().element_count() > 0) return false;
  const Dims& dims = value.tensor().dims();
  return dims.size() <= axis || dims[axis] == 0;
}

// No sample completes a run, or the run has no frames.
Status Push::give_nothing(size_t output, AnyValue& place) {
  const StreamLayout::Output& role = layout_->outputs[output];
  if (layout_->over_time && role.time_axis < 0) {
    return copy_into(carried_->last_values[output], place);
  }
  const Type& type = layout_->session->outputs()[role.index].type;
  if (!type.is_tensor()) {
    place = Sequence(type);
    return {};
  }
  Dims dims = carried_->last_dims[output];
  if (dims.empty() && !type.shape.empty()) dims = first_dims(type.shape, symbols());
  if (role.time_axis >= 0 && role.time_axis < static_cast<int64_t>(dims.size())) {
    dims[static_cast<size_t>(role.time_axis)] = 0;
  } else {
    dims.insert(size_t{0}, 0);
  }
  return resize(place, type.element, dims);
}

// The number of complete hops may alternate between n and n + 1, so results of pushes with an even number and with an
// odd number of hops have places of their own. When the number changes, the contents of the caller's places are swapped
// with the kept ones.
void Push::swap_places(bool odd, std::span<AnyValue* const> places) {
  if (odd_ != odd) {
    for (size_t i = 0; i < places.size(); ++i) std::swap(*places[i], kept_[i]);
  }
  odd_ = odd;
}

Result<size_t> Push::make(const StreamLayout& layout, Carried& carried, std::span<const Feed> feeds, bool last,
                          std::span<AnyValue* const> places, const RunOptions& options) {
  if (!layout.timed.empty()) options.begin_long_work();  // any number of samples is copied and run
  TREADLE_TRY(begin(layout, carried, feeds, last));
  // On any failure, lent memory goes back to its place.
  struct LentPlaces {
    Push& push;
    std::span<AnyValue* const> places;
    const bool was_odd = push.odd_;
    bool stays = false;
    ~LentPlaces() {
      if (stays) return;
      for (size_t i = 0; i < push.gathered_.size(); ++i) push.gathered_[i].give_back(*places[i]);
      push.swap_places(was_odd, places);
    }
  } lent{*this, places};
  swap_places(block_.hops % 2 != 0, places);
  expect(block_.count, places);
  TREADLE_TRY(run(options));
  TREADLE_TRY(give(places));
  lent.stays = true;
  samples_given_ = available_ - carried.pending;
  if (block_.session && !last) samples_pushed_ = samples_given_;
  commit(carried, places);
  commit_states(carried);
  return block_.count;
}

void Push::commit(Carried& carried, std::span<AnyValue* const> places) {
  for (size_t i = 0; new_tails_ && i < samples_.size(); ++i) std::swap(carried.tails[i], tails_[i].tensor());
  if (!samples_.empty()) carried.pending = available_ - static_cast<int64_t>(block_.count) * block_.samples;
  const bool over_time = layout_->over_time != nullptr;
  carried.ended = last_ && over_time;
  if (!block_.session) return;
  carried.begun = over_time;
  std::fill(carried.is_initial.begin(), carried.is_initial.end(), 0);
  for (size_t i = 0; i < last_dims_.size(); ++i) {
    if (!last_dims_[i].empty()) std::swap(carried.last_dims[i], last_dims_[i]);
    if (!over_time || layout_->outputs[i].time_axis >= 0) continue;
    if (last_values_[i].is_none()) {
      static_cast<void>(copy_into(*places[i], carried.last_values[i]));
    } else {
      carried.last_values[i] = std::exchange(last_values_[i], {});
    }
  }
}

void Push::commit_states(Carried& carried) {
  if (!block_.session) return;
  if (block_.gives_found && carried.found.empty()) std::swap(carried.found, found_);
  std::vector<AnyValue>& next = next_[(block_.count - 1) % 2];
  for (size_t i = 0; i < next.size(); ++i) std::swap(next[i], carried.state(i));
}

}  // namespace treadle
