#include "stream/pooled_push.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "stream/entries.h"
#include "stream/tensor_slices.h"

namespace treadle {

namespace {

int64_t size_along(const AnyValue& value, int64_t axis) {
  return value.tensor().dims()[static_cast<size_t>(axis)];
}

std::vector<AnyValue*> places_of(std::vector<AnyValue>& values) {
  std::vector<AnyValue*> places;
  places.reserve(values.size());
  for (AnyValue& value : values) places.push_back(&value);
  return places;
}

}  // namespace

PooledPush::PooledPush(StreamPool& pool, const RunOptions& options)
    : pool_(pool), model_(*pool.model_), layout_(*model_.layout), options_(options), places_(pool) {
  ++pool_.pushes_;
}

Result<std::vector<Stream::Pushed>> PooledPush::each(std::span<const StreamPool::Chunk> chunks) {
  std::vector<int64_t> ids;
  for (const StreamPool::Chunk& chunk : chunks) ids.push_back(chunk.id);
  TREADLE_TRY(admit(ids));
  for (size_t i = 0; i < chunks.size(); ++i) {
    auto taken = take_chunk(*pool_.first_.layout_, chunks[i].feeds, 1);
    if (!taken.ok()) return std::move(taken).status().in(fmt::format("stream {}:", chunks[i].id));
    chunks_.push_back(std::move(*taken));
    rows_[i].chunk = i;
  }
  TREADLE_TRY(run_all());
  std::vector<Stream::Pushed> pushed(chunks.size());
  for (size_t i = 0; i < chunks.size(); ++i) {
    for (size_t o = 0; o < layout_.outputs.size(); ++o) {
      TREADLE_ASSIGN(pushed[i].outputs.emplace_back(), result_of(rows_[i], o));
    }
    for (const Piece& piece : cohorts_[rows_[i].with].pieces)
      pushed[i].runs += rows_[i].position < piece.rows ? piece.runs : 0;
  }
  commit();
  return pushed;
}

Result<Stream::Pushed> PooledPush::batch(std::span<const int64_t> ids, std::span<const Feed> feeds,
                                         std::span<int64_t> lengths) {
  Stream::Pushed pushed;
  pushed.outputs.resize(layout_.outputs.size());
  if (ids.empty()) return error(Code::kInvalidArgument, "a push to no stream");
  TREADLE_ASSIGN(const bool was_group, push_group(ids, feeds, pushed));
  if (was_group) {
    for (size_t i = 0; i < lengths.size(); ++i) {
      const size_t output = i % pushed.outputs.size();
      lengths[i] = length_of(pushed.outputs[output], output);
    }
    return pushed;
  }
  TREADLE_TRY(admit(ids));
  TREADLE_ASSIGN(Chunk chunk, take_chunk(layout_, feeds, ids.size()));
  chunks_.push_back(std::move(chunk));
  for (size_t i = 0; i < rows_.size(); ++i) rows_[i].entry = i;
  TREADLE_TRY(run_all());
  TREADLE_TRY(join_results(pushed.outputs, lengths));
  for (const Piece& piece : cohorts_.front().pieces) pushed.runs += piece.runs;
  commit();
  return pushed;
}

// If the streams are one group in its order, and no samples stay waiting, pushes them as one stream with as many
// entries.
Result<bool> PooledPush::push_group(std::span<const int64_t> ids, std::span<const Feed> feeds, Stream::Pushed& pushed) {
  const auto first = pool_.members_.find(ids.front());
  PoolGroup* group = first == pool_.members_.end() ? nullptr : first->second.group;
  if (!group || group->live != group->ids.size() ||
      !std::equal(ids.begin(), ids.end(), group->ids.begin(), group->ids.end())) {
    return false;
  }
  const auto waits = [](const PoolMember* member) { return member->pending > 0; };
  if (std::any_of(group->members.begin(), group->members.end(), waits)) return false;
  TREADLE_ASSIGN(const Chunk chunk, take_chunk(layout_, feeds, ids.size()));
  const int64_t fresh = samples_of(chunk);
  if (samples_to_run(layout_, group->carried.begun, fresh) != fresh || begins_separately(group)) return false;
  const std::vector<AnyValue*> places = places_of(pushed.outputs);
  TREADLE_ASSIGN(pushed.runs, group->push.make(layout_, group->carried, feeds, false, places, options_));
  pool_.runs_ += static_cast<int64_t>(pushed.runs);
  return true;
}

// Checks the streams of the push, each of which may occur once. New streams join if all goes well.
Status PooledPush::admit(std::span<const int64_t> ids) {
  rows_.resize(ids.size());
  const PoolMember* before = nullptr;
  for (size_t i = 0; i < ids.size(); ++i) {
    PoolMember& member = find(ids[i], before);
    before = &member;
    if (member.push == pool_.pushes_) return error(Code::kInvalidArgument, "stream {} comes twice", ids[i]);
    member.id = ids[i];
    member.push = pool_.pushes_;
    rows_[i].member = &member;
  }
  return pool_.check_room(fresh_.size());
}

// Streams often come in the order of their group, so the stream behind the one before is tried first.
PoolMember& PooledPush::find(int64_t id, const PoolMember* before) {
  if (before && before->group) {
    const PoolGroup& group = *before->group;
    const size_t next = before->at + 1;
    if (next < group.ids.size() && group.ids[next] == id && group.members[next]) return *group.members[next];
  }
  const auto it = pool_.members_.find(id);
  return it == pool_.members_.end() ? fresh_[id] : it->second;
}

Result<PooledPush::Chunk> PooledPush::take_chunk(const StreamLayout& layout, std::span<const Feed> feeds,
                                                 size_t entries) const {
  std::vector<const AnyValue*> fed;
  Chunk chunk;
  for (const Feed& feed : feeds) {
    for (const PooledModel::Fed& fed_by : model_.fed) {
      const auto axis = static_cast<size_t>(fed_by.batch);
      if (feed.name != fed_by.info->name || !feed.value->is_tensor()) continue;
      const Dims& dims = feed.value->tensor().dims();
      if (axis >= dims.size() || dims[axis] == static_cast<int64_t>(entries)) continue;
      if (&layout == &layout_) {
        return error(Code::kInvalidArgument, "input '{}' has {} entries along axis {}, for {} streams", feed.name,
                     dims[axis], axis, entries);
      }
      return error(Code::kInvalidArgument, "input '{}' has {} entries along axis {}; a stream of a pool has one",
                   feed.name, dims[axis], axis);
    }
  }
  TREADLE_TRY(sort_feeds(layout, feeds, false, fed));
  for (const PooledModel::Fed& input : model_.fed) {
    chunk.push_back(fed[input.at]);
    TREADLE_TRY(check_rank(input, chunk.back()));
    if (input.time < 0) continue;
    const int64_t first = samples_of(chunk), here = size_along(*chunk.back(), input.time);
    if (first == here) continue;
    return error(Code::kInvalidArgument, "inputs '{}' and '{}' get unlike numbers of samples ({} and {})",
                 model_.fed[0].info->name, input.info->name, first, here);
  }
  return chunk;
}

// Feeds without a time axis are only checked here; feeds of samples were partly checked before.
Status PooledPush::check_rank(const PooledModel::Fed& input, const AnyValue* value) {
  if (!value) return error(Code::kInvalidArgument, "input '{}' is missing", input.info->name);
  const bool fits =
      value->is_tensor() && value->tensor().type() == input.info->type.element && value->tensor().rank() > input.batch;
  if (fits) return {};
  return error(Code::kInvalidArgument, "input '{}' takes {}, not {}", input.info->name, input.info->type.to_string(),
               value->type().to_string());
}

// A step without a time axis counts as one sample.
int64_t PooledPush::samples_of(const Chunk& chunk) const {
  return model_.fed[0].time < 0 ? 1 : size_along(*chunk[0], model_.fed[0].time);
}

// --- The runs -------------------------------------------------------------------------------------------------------

Status PooledPush::run_all() {
  TREADLE_TRY(find_joined_group());
  for (Row& row : rows_) {
    if (row.member->group || !joined_group_) sort_in(row);
  }
  for (Row& row : rows_) {
    if (!row.member->group && joined_group_) sort_in(row);
  }
  for (Cohort& cohort : cohorts_) {
    const auto before = [](const Row* a, const Row* b) { return a->runs == b->runs ? a < b : a->runs > b->runs; };
    if (!std::is_sorted(cohort.rows.begin(), cohort.rows.end(), before)) {
      std::sort(cohort.rows.begin(), cohort.rows.end(), before);
    }
    for (size_t i = 0; i < cohort.rows.size(); ++i) cohort.rows[i]->position = i;
    Status status = cohort.run ? run(cohort) : give_nothing(cohort);
    if (status.ok()) continue;
    const std::string more = cohort.rows.size() > 1 ? fmt::format(" and {} more", cohort.rows.size() - 1) : "";
    return std::move(status).in(fmt::format("stream {}{}:", cohort.rows.front()->member->id, more));
  }
  TREADLE_TRY(keep_waiting());
  return places_.find(std::move(moved_));
}

Status PooledPush::find_joined_group() {
  const auto is_fresh = [](const Row& row) { return !row.member->group; };
  if (!model_.begins_in_group || std::none_of(rows_.begin(), rows_.end(), is_fresh)) return {};
  const auto row = std::find_if_not(rows_.begin(), rows_.end(), is_fresh);
  if (row == rows_.end() || (layout_.over_time && !row->member->group->carried.begun)) return {};
  TREADLE_ASSIGN(beginning_, entries::beginning_like(model_, row->member->group->carried, pool_.first_.carried_));
  if (beginning_) joined_group_ = row->member->group;
  return {};
}

// Puts the stream among the streams with which it runs.
void PooledPush::sort_in(Row& row) {
  row.group = row.member->group;
  const Carried& carried = row.group ? row.group->carried : pool_.first_.carried_;
  row.fresh = samples_of(chunks_[row.chunk]);
  row.runs = samples_to_run(layout_, carried.begun, row.member->pending + row.fresh);
  std::optional<size_t> with;
  if (!row.group && row.runs > 0 && joined_group_) {
    row.group = joined_group_;
    with = find_cohort(row);
  }
  if (!with) {
    row.group = row.member->group;  // no stream of the joined group runs: new streams run together
    with = find_cohort(row);
  }
  if (!with) {
    with = cohorts_.size();
    cohorts_.push_back({row.group, row.runs > 0, {}, {}});
  }
  row.with = *with;
  cohorts_[row.with].rows.push_back(&row);
}

// The set of streams of its group with which it can run.
std::optional<size_t> PooledPush::find_cohort(const Row& row) const {
  if (row.runs > 0 && begins_separately(row.group)) return std::nullopt;
  for (size_t k = cohorts_.size(); k-- > 0;) {
    if (fits(cohorts_[k], row)) return k;
  }
  return std::nullopt;
}

// Whether the stream's first block over time is next, and has no batch.
bool PooledPush::begins_separately(const PoolGroup* group) const {
  return layout_.over_time && !layout_.over_time->first_has_batch && !(group && group->carried.begun);
}

bool PooledPush::fits(const Cohort& cohort, const Row& row) const {
  if (cohort.group != row.group || cohort.run != (row.runs > 0)) return false;
  const Row& other = *cohort.rows.front();
  if (other.chunk == row.chunk) return true;
  for (size_t t = 0; t < model_.fed.size(); ++t) {
    const Dims &a = chunks_[other.chunk][t]->tensor().dims(), &b = chunks_[row.chunk][t]->tensor().dims();
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i] != b[i] && static_cast<int64_t>(i) != model_.fed[t].time) return false;
    }
  }
  return true;
}

std::vector<entries::Entry> PooledPush::entries_of(const Cohort& cohort) const {
  const Carried* beginning = cohort.group && beginning_ ? &*beginning_ : &pool_.first_.carried_;
  std::vector<entries::Entry> entries;
  entries.reserve(cohort.rows.size());
  for (const Row* row : cohort.rows) {
    const PoolGroup* group = row->member->group;
    entries.push_back({group ? &group->carried : beginning, row->member->at});
  }
  return entries;
}

// Runs all streams together as long as all have samples; then continues with the streams that have more.
Status PooledPush::run(Cohort& cohort) {
  std::vector<entries::Entry> from = entries_of(cohort);
  TREADLE_ASSIGN(Carried carried, entries::gather(model_, from, 0, std::exchange(pool_.spare_, {})));
  int64_t at = 0;
  for (size_t rows = cohort.rows.size(); rows > 0;) {
    const int64_t until = cohort.rows[rows - 1]->runs;
    TREADLE_ASSIGN(Piece piece, make(cohort, rows, carried, at, until));
    cohort.pieces.push_back(std::move(piece));
    at = until;
    size_t left = rows;
    while (left > 0 && cohort.rows[left - 1]->runs == at) --left;
    if (left == 0) return split(cohort, 0, rows, std::move(carried));
    TREADLE_TRY(split(cohort, left, rows, carried));
    from.clear();
    for (size_t i = 0; i < left; ++i) from.push_back({&carried, i});
    TREADLE_ASSIGN(carried, entries::gather(model_, from));
    rows = left;
  }
  return {};
}

// No sample completes a block of these streams. Gives the results that are known all the same: results without frames,
// or results of earlier samples. The streams' data does not change.
Status PooledPush::give_nothing(Cohort& cohort) {
  TREADLE_ASSIGN(Carried carried, entries::gather(model_, entries_of(cohort)));
  TREADLE_ASSIGN(Piece piece, make(cohort, cohort.rows.size(), carried, 0, 0));
  cohort.pieces.push_back(std::move(piece));
  return {};
}

// Runs the samples from `from` until `until` of the first `rows` streams, whose data is in `carried`.
Result<PooledPush::Piece> PooledPush::make(const Cohort& cohort, size_t rows, Carried& carried, int64_t from,
                                           int64_t until) {
  Piece piece{rows, 0, std::vector<AnyValue>(layout_.outputs.size())};
  std::vector<AnyValue> made(model_.fed.size());
  std::vector<Feed> feeds;
  for (size_t t = 0; t < model_.fed.size(); ++t) {
    TREADLE_ASSIGN(const AnyValue* value, samples(cohort, rows, t, from, until, made[t]));
    feeds.push_back({model_.fed[t].info->name, value});
  }
  const StreamLayout& layout = cohort.run && begins_separately(cohort.group) ? *pool_.first_.layout_ : layout_;
  TREADLE_ASSIGN(piece.runs, pool_.push_.make(layout, carried, feeds, false, places_of(piece.results), options_));
  runs_ += static_cast<int64_t>(piece.runs);
  return piece;
}

Result<const AnyValue*> PooledPush::samples(const Cohort& cohort, size_t rows, size_t timed, int64_t from,
                                            int64_t until, AnyValue& made) const {
  const AnyValue& like = *chunks_[cohort.rows.front()->chunk][timed];
  if (is_all_that_is_fed(cohort, rows, from, until)) return &like;
  Dims dims = like.tensor().dims();
  const PooledModel::Fed& input = model_.fed[timed];
  dims[static_cast<size_t>(input.batch)] = static_cast<int64_t>(rows);
  if (input.time >= 0) dims[static_cast<size_t>(input.time)] = until - from;
  TREADLE_TRY(resize(made, like.tensor().type(), dims));
  for (size_t i = 0; i < rows;) {
    const Row& row = *cohort.rows[i];
    size_t next = i + 1;  // contiguous entries are copied together
    while (next < rows && (input.time < 0 || row.member->pending == 0) && continues(row, *cohort.rows[next], next - i))
      ++next;
    copy_samples(row, timed, {from, until, static_cast<int64_t>(next - i)}, made, i);
    i = next;
  }
  return &made;
}

// Whether the samples of `other` are in the entry that is `behind` entries after the entry of `row`.
bool PooledPush::continues(const Row& row, const Row& other, size_t behind) {
  return other.member->pending == 0 && other.chunk == row.chunk && other.entry == row.entry + behind;
}

// Whether the run takes exactly the one chunk, which has an entry for each stream.
bool PooledPush::is_all_that_is_fed(const Cohort& cohort, size_t rows, int64_t from, int64_t until) const {
  if (chunks_.size() > 1 || rows != rows_.size() || from > 0) return false;
  for (size_t i = 0; i < rows; ++i) {
    const Row& row = *cohort.rows[i];
    if (row.entry != i || row.member->pending > 0 || row.fresh != until) return false;
  }
  return true;
}

// Copies waiting samples first, then samples of the chunk. With several entries of a chunk, none has waiting samples.
void PooledPush::copy_samples(const Row& row, size_t timed, const Range& range, AnyValue& to, size_t at) const {
  const int64_t waited = row.member->pending, batch = model_.fed[timed].batch, time = model_.fed[timed].time;
  if (time < 0) {  // the same in all runs
    copy_along(chunks_[row.chunk][timed]->tensor(), static_cast<int64_t>(row.entry), range.entries, to.tensor(),
               static_cast<int64_t>(at), batch);
    return;
  }
  const auto copy = [&](const Tensor& source, size_t entry, int64_t begin, int64_t end, int64_t offset) {
    if (begin >= end) return;
    copy_block(source, {{{batch, static_cast<int64_t>(entry), range.entries}, {time, begin, end - begin}}}, to.tensor(),
               {static_cast<int64_t>(at), offset});
  };
  if (waited > 0) copy(row.member->waiting[timed], 0, range.from, std::min(range.until, waited), 0);
  const int64_t begin = std::max(range.from, waited);
  copy(chunks_[row.chunk][timed]->tensor(), row.entry, begin - waited, range.until - waited, begin - range.from);
}

// Records that the streams `from` to `until` have run; their data is in the entries of `carried`. Streams that began in
// this run stay with a group that is whole; otherwise they go where there is room.
Status PooledPush::split(const Cohort& cohort, size_t from, size_t until, Carried carried) {
  std::vector<PoolMember*> all, old, fresh;
  for (size_t i = from; i < until; ++i) {
    PoolMember* member = cohort.rows[i]->member;
    all.push_back(member);
    (member->group ? old : fresh).push_back(member);
  }
  const bool together = fresh.empty() || old.empty() || old.size() == cohort.group->live;
  if (from == 0 && together) {
    moved_.push_back({std::move(all), old.empty() ? nullptr : cohort.group, std::move(carried)});
    return {};
  }
  const auto move = [&](std::vector<PoolMember*> members, PoolGroup* origin, auto takes_part) -> Status {
    std::vector<entries::Entry> entries;
    for (size_t i = from; i < until; ++i) {
      if (takes_part(cohort.rows[i]->member)) entries.push_back({&carried, i});
    }
    TREADLE_ASSIGN(Carried own, entries::gather(model_, entries));
    moved_.push_back({std::move(members), origin, std::move(own)});
    return {};
  };
  const auto is_old = [](const PoolMember* member) { return member->group != nullptr; };
  if (together) return move(std::move(all), old.empty() ? nullptr : cohort.group, [](const auto*) { return true; });
  TREADLE_TRY(move(std::move(old), cohort.group, is_old));
  return move(std::move(fresh), nullptr, std::not_fn(is_old));
}

// --- The streams' new data; results are in stream/pooled_results.cc --------------------------------------------------

Status PooledPush::keep_waiting() {
  const auto waits = [](const Row& row) { return row.member->pending > 0 || row.runs < row.fresh; };
  if (std::none_of(rows_.begin(), rows_.end(), waits)) return {};
  waiting_.resize(rows_.size());
  for (size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    const int64_t available = row.member->pending + row.fresh;
    for (size_t t = 0; t < layout_.timed.size() && row.runs < available; ++t) {
      const Tensor& like = chunks_[row.chunk][t]->tensor();
      Dims dims = like.dims();
      dims[static_cast<size_t>(model_.fed[t].batch)] = 1;
      dims[static_cast<size_t>(model_.fed[t].time)] = available - row.runs;
      AnyValue rest;
      TREADLE_TRY(resize(rest, like.type(), dims));
      copy_samples(row, t, {row.runs, available, 1}, rest, 0);
      waiting_[i].push_back(std::move(rest.tensor()));
    }
  }
  return {};
}

// Allocates first: nothing fails after the first change of the pool.
void PooledPush::commit() {
  pool_.members_.reserve(pool_.members_.size() + fresh_.size());
  pool_.members_.merge(fresh_);
  for (size_t i = 0; i < rows_.size(); ++i) {
    PoolMember& member = *rows_[i].member;
    member.pending += rows_[i].fresh - rows_[i].runs;
    if (!waiting_.empty()) member.waiting.swap(waiting_[i]);
  }
  places_.take();
  pool_.runs_ += runs_;
}

}  // namespace treadle
