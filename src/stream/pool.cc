#include "stream/pool.h"

#include <algorithm>

#include "session/limited_work.h"
#include "stream/entries.h"
#include "stream/pool_places.h"
#include "stream/pooled_push.h"
#include "stream/tensor_slices.h"

namespace treadle {

Result<StreamPool> StreamPool::open(std::shared_ptr<const Session> session, StreamOptions options, size_t capacity) {
  if (capacity == 0) return error(Code::kInvalidArgument, "a pool has room for one stream at least");
  session::LimitedWork work(session->options().load, "opening");
  TREADLE_ASSIGN(Stream first, Stream::open(std::move(session), std::move(options)));
  StreamPool pool(std::move(first), capacity);
  TREADLE_TRY(work.run([&]() -> Status {
    pool.model_ = PooledModel::make(*pool.first_.layout_);
    return pool.check_entries(pool.first_);
  }));
  return pool;
}

const std::string& StreamPool::why_single() const {
  return model_->why_single;
}

Status StreamPool::check_room(size_t fresh) const {
  if (size() + fresh <= capacity_) return {};
  return error(Code::kLimit, "the pool has room for {} streams, not for {}", capacity_, size() + fresh);
}

Result<std::vector<Stream::Pushed>> StreamPool::push(std::span<const Chunk> chunks, const RunOptions& options) {
  if (!model_->layout) return push_separately(chunks, options);
  return PooledPush(*this, options).each(chunks);
}

Result<Stream::Pushed> StreamPool::push_batch(std::span<const int64_t> ids, std::span<const Feed> feeds,
                                              const RunOptions& options, std::span<int64_t> lengths) {
  if (!model_->layout) {
    return error(Code::kInvalidArgument, "the streams of this pool are pushed one by one, since {}", why_single());
  }
  return PooledPush(*this, options).batch(ids, feeds, lengths);
}

// Pushes to copies of the streams. The copies replace the streams once all pushes have succeeded.
Result<std::vector<Stream::Pushed>> StreamPool::push_separately(std::span<const Chunk> chunks,
                                                                const RunOptions& options) {
  std::unordered_map<int64_t, Stream> pushed_to;
  std::vector<Stream::Pushed> results;
  size_t fresh = 0;
  for (const Chunk& chunk : chunks) {
    const auto it = separate_.find(chunk.id);
    if (it == separate_.end()) ++fresh;
    const auto [copy, is_new] = pushed_to.try_emplace(chunk.id, it == separate_.end() ? first_ : it->second);
    if (!is_new) return error(Code::kInvalidArgument, "stream {} comes twice", chunk.id);
  }
  TREADLE_TRY(check_room(fresh));
  for (const Chunk& chunk : chunks) {
    auto pushed = pushed_to.at(chunk.id).push(chunk.feeds, options);
    if (!pushed.ok()) return std::move(pushed).status().in(fmt::format("stream {}:", chunk.id));
    results.push_back(std::move(*pushed));
  }
  separate_.reserve(separate_.size() + fresh);  // nothing fails from here on
  for (auto& [id, stream] : pushed_to) {
    if (const auto it = separate_.find(id); it != separate_.end()) it->second = std::move(stream);
  }
  separate_.merge(pushed_to);
  runs_ += static_cast<int64_t>(chunks.size());
  return results;
}

Result<Stream::Pushed> StreamPool::flush(int64_t id, const RunOptions& options) {
  TREADLE_ASSIGN(Stream stream, fork(id));
  TREADLE_ASSIGN(Stream::Pushed pushed, stream.flush({}, options));
  TREADLE_TRY(leave(id));
  return pushed;
}

Status StreamPool::leave(int64_t id) {
  if (separate_.erase(id) > 0) return {};
  const auto it = members_.find(id);
  if (it == members_.end()) return error(Code::kInvalidArgument, "the pool has no stream {}", id);
  PoolPlaces::leave(*this, it->second);
  members_.erase(it);
  return {};
}

Result<Stream> StreamPool::fork(int64_t id) const {
  if (const auto it = separate_.find(id); it != separate_.end()) return Stream(it->second);
  const auto it = members_.find(id);
  if (it == members_.end()) return error(Code::kInvalidArgument, "the pool has no stream {}", id);
  const PoolMember& member = it->second;
  Stream stream(first_.layout_);
  if (!member.group) {
    stream.carried_ = first_.carried_;
  } else {
    const entries::Entry entry{&member.group->carried, member.at};
    TREADLE_ASSIGN(stream.carried_, entries::gather(*model_, {&entry, 1}));
  }
  Carried& carried = stream.carried_;
  for (size_t i = 0; i < member.waiting.size(); ++i) {
    const Tensor& waiting = member.waiting[i];
    const int64_t axis = first_.layout_->timed[i].axis;
    if (!carried.tails[i].defined()) {  // the context of a new stream is silence
      Dims dims = waiting.dims();
      dims[static_cast<size_t>(axis)] = first_.layout_->context;
      TREADLE_ASSIGN(carried.tails[i], zeros(waiting.type(), std::move(dims)));
    }
    AnyValue joined;
    const std::array<const Tensor*, 2> parts = {&carried.tails[i], &waiting};
    TREADLE_TRY(concat_into(parts, axis, joined));
    carried.tails[i] = std::move(joined.tensor());
  }
  carried.pending = member.pending;
  return stream;
}

// Checks that the states and samples of a pool's stream have one entry in the batch.
Status StreamPool::check_entries(const Stream& stream) const {
  if (!model_->layout) return {};
  const auto is_one = [](const Tensor& t, int64_t axis) {
    return !t.defined() || (t.rank() > axis && t.dims()[static_cast<size_t>(axis)] == 1);
  };
  const Carried& carried = stream.carried_;
  bool fits = true;
  for (size_t i = 0; i < carried.tails.size(); ++i) fits &= is_one(carried.tails[i], model_->fed[i].batch);
  for (size_t i = 0; i < carried.states.size() + carried.found.size(); ++i) {
    if (i < carried.states.size() && carried.is_initial[i]) continue;  // its size follows from the samples
    fits &= carried.state(i).is_tensor() && is_one(carried.state(i).tensor(), model_->states[i]);
  }
  if (!fits) return error(Code::kInvalidArgument, "a stream of a pool has one entry of the batch");
  if (carried.ended) return error(Code::kInvalidArgument, "the stream has been flushed and has ended");
  return {};
}

Status StreamPool::join(int64_t id, const Stream& stream) {
  if (contains(id)) return error(Code::kInvalidArgument, "the pool has a stream {} already", id);
  if (size() == capacity_) return error(Code::kLimit, "the pool has room for {} streams, not for another", capacity_);
  const StreamLayout &ours = *first_.layout_, &theirs = *stream.layout_;
  TREADLE_TRY(
      check_same(ours.identity, ours.to_string(false), theirs.identity, theirs.to_string(false), "the stream", false));
  TREADLE_TRY(check_entries(stream));
  Stream joined = first_;
  if (ours.session == theirs.session) {
    joined.carried_ = stream.carried_;
  } else {  // the model was opened a second time: the data is checked as a snapshot's is
    TREADLE_ASSIGN(const std::string snapshot, stream.save());
    TREADLE_TRY(joined.load(snapshot));
  }
  if (model_->layout) return add_member(id, std::move(joined.carried_));
  separate_.emplace(id, std::move(joined));
  return {};
}

// Adds the data of a separate stream to the pool; waiting samples are kept apart.
Status StreamPool::add_member(int64_t id, Carried carried) {
  PoolMember member;
  member.id = id;
  member.pending = std::exchange(carried.pending, 0);
  for (size_t i = 0; i < carried.tails.size() && member.pending > 0; ++i) {
    const int64_t axis = first_.layout_->timed[i].axis, context = first_.layout_->context;
    AnyValue before, waiting;
    TREADLE_TRY(slice_into(carried.tails[i], axis, 0, context, before));
    TREADLE_TRY(slice_into(carried.tails[i], axis, context, member.pending, waiting));
    carried.tails[i] = std::move(before.tensor());
    member.waiting.push_back(std::move(waiting.tensor()));
  }
  std::unordered_map<int64_t, PoolMember> fresh;
  PoolMember* joined = &fresh.emplace(id, std::move(member)).first->second;
  PoolPlaces places(*this);
  std::vector<PoolPlaces::Moved> moved;
  moved.push_back({{joined}, nullptr, std::move(carried)});
  TREADLE_TRY(places.find(std::move(moved)));
  members_.reserve(members_.size() + 1);  // nothing fails from here on
  members_.merge(fresh);
  places.take();
  return {};
}

bool StreamPool::done(int64_t id) const {
  const auto stream = contains(id) ? fork(id) : Result<Stream>(error(Code::kInvalidArgument, "no stream {}", id));
  return stream.ok() && stream->done();
}

}  // namespace treadle
