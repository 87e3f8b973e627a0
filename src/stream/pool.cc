#include "stream/pool.h"

#include <algorithm>
#include <unordered_set>

#include "session/limited_work.h"
#include "stream/layout.h"
#include "stream/tensor_slices.h"

namespace treadle {

struct PooledModel {
  std::shared_ptr<const OverTime> over_time;  // one of these two, or none: every stream on its own
  std::shared_ptr<const BatchedModel> windows;
  const Session* session = nullptr;
  std::string why_single;
  // Axes of the batch: of timed inputs, of states (declared, then found), of outputs. kNoAxis: alike for all.
  std::vector<int64_t> timed, states, outputs;

  static std::shared_ptr<const PooledModel> make(const StreamLayout& layout);
};

namespace {

Status take_axes(const StreamLayout& layout, const stream::BatchAxes& batch, PooledModel& model) {
  const auto axis_of = [&](std::string_view name) -> int64_t {
    const ir::Region& top = model.session->graph().top();
    for (size_t i = 0; i < top.inputs.size(); ++i) {
      if (top.inputs[i]->name == name) return batch.inputs[i];
    }
    return kNoAxis;
  };
  for (const StreamLayout::Timed& t : layout.timed) {
    model.timed.push_back(axis_of(t.input->name));
    if (model.timed.back() != kNoAxis) continue;
    return error(Code::kInvalidArgument, "input '{}' has no batch", t.input->name);
  }
  const auto add_state = [&](std::string_view name, size_t output) {
    model.states.push_back(axis_of(name));
    if (model.states.back() != kNoAxis && model.states.back() == batch.outputs[output]) return Status();
    return error(Code::kInvalidArgument, "state '{}' is one for the whole batch", name);
  };
  for (const StreamLayout::State& s : layout.states) TREADLE_TRY(add_state(s.input->name, s.output));
  if (layout.over_time) {
    const size_t of_model = layout.session->outputs().size();
    for (size_t i = 0; i < layout.over_time->states.size(); ++i) {
      TREADLE_TRY(add_state(layout.over_time->states[i], of_model + i));
    }
  }
  for (const StreamLayout::Output& o : layout.outputs) model.outputs.push_back(batch.outputs[o.index]);
  return {};
}

Status find_batch(const StreamLayout& layout, PooledModel& model) {
  if (layout.timed.empty()) return error(Code::kInvalidArgument, "no input has a time axis");
  if (!layout.given.empty()) {
    return error(Code::kInvalidArgument, "input '{}' is given with each push: bind it", layout.given[0]->name);
  }
  std::vector<stream::TimedInput> timed;
  for (const StreamLayout::Timed& t : layout.timed) timed.push_back({t.input->name, t.axis});
  std::vector<std::string_view> carried;
  for (const StreamLayout::State& s : layout.states) {
    if (s.input->has_default && !s.has_initial) {
      return error(Code::kInvalidArgument, "state '{}' begins with the model's own value", s.input->name);
    }
    carried.push_back(s.input->name);
  }
  if (!layout.over_time) {
    if (layout.hop == 0) return error(Code::kInvalidArgument, "there is no hop");
    TREADLE_ASSIGN(model.windows,
                   BatchedModel::make(*layout.session, timed, carried, layout.bound, layout.context + layout.hop));
    model.session = model.windows->session.get();
    return take_axes(layout, model.windows->batch, model);
  }
  TREADLE_ASSIGN(model.over_time, OverTime::make_batched(*layout.session, timed, carried, layout.bound));
  model.session = model.over_time->steady.get();
  const bool alike = model.over_time->hop == layout.over_time->hop &&
                     model.over_time->first == layout.over_time->first &&
                     model.over_time->states == layout.over_time->states;
  if (!alike) return error(Code::kInvalidArgument, "a batch is taken in other blocks");
  return take_axes(layout, model.over_time->batch, model);
}

}  // namespace

std::shared_ptr<const PooledModel> PooledModel::make(const StreamLayout& layout) {
  auto model = std::make_shared<PooledModel>();
  const Status status = find_batch(layout, *model);
  if (!status.ok()) {
    model->session = nullptr;
    model->why_single = status.message();
  }
  return model;
}

// ---------------------------------------------------------------------------------------------------------------------

namespace {

// One entry of a batch, in memory of its own: it does not keep those of all.
Result<AnyValue> entry_of(const AnyValue& batch, int64_t axis, size_t entry) {
  AnyValue own;
  TREADLE_TRY(slice_into(batch.tensor(), axis, static_cast<int64_t>(entry), 1, own));
  return own;
}

// The states of one entry become those that a stream carries.
Status take_entry(const std::vector<AnyValue>& states, const PooledModel& model, size_t entry, Carried& carried) {
  for (size_t s = 0; s < states.size(); ++s) {
    TREADLE_ASSIGN(carried.state(s), entry_of(states[s], model.states[s], entry));
  }
  std::fill(carried.is_initial.begin(), carried.is_initial.end(), 0);
  return {};
}

}  // namespace

// One push. Works on copies of the streams, which take the places of theirs when all has succeeded.
class PooledPush {
 public:
  PooledPush(StreamPool& pool, std::span<const StreamPool::Chunk> chunks, const RunOptions& options)
      : pool_(pool), model_(*pool.model_), layout_(*pool.first_.layout_), chunks_(chunks), options_(options) {}

  Result<std::vector<Stream::Pushed>> run() {
    TREADLE_TRY(join());
    for (size_t i = 0; i < works_.size(); ++i) {
      Work& work = works_[i];
      TREADLE_TRY(check_entries(chunks_[i]).in(fmt::format("stream {}:", chunks_[i].id)));
      work.alone = !model_.session || (layout_.over_time && !work.stream.carried_.begun);
      Status status = work.alone ? push_alone(chunks_[i], work) : begin(chunks_[i], work);
      if (!status.ok()) return std::move(status).in(fmt::format("stream {}:", chunks_[i].id));
    }
    TREADLE_TRY(run_batches());
    for (Work& work : works_) {
      if (!work.alone) TREADLE_TRY(finish(work));
    }
    std::vector<Stream::Pushed> pushed;
    for (Work& work : works_) pushed.push_back(std::move(work.pushed));
    commit();
    return pushed;
  }

 private:
  struct Work {
    Stream stream;
    Push push;
    Stream::Pushed pushed;
    bool alone = false;
    int64_t at = 0;         // samples that have run
    int64_t end = 0;        // samples to run
    bool in_batch = false;  // states are in `states_`, not in the stream
  };

  // The streams that take part. States stay together when the same streams come as last time.
  Status join() {
    std::unordered_set<int64_t> seen;
    std::vector<int64_t> ids;
    size_t fresh = 0;
    for (const StreamPool::Chunk& chunk : chunks_) {
      if (!seen.insert(chunk.id).second) return error(Code::kInvalidArgument, "stream {} comes twice", chunk.id);
      ids.push_back(chunk.id);
      if (!pool_.contains(chunk.id)) ++fresh;
    }
    if (pool_.size() + fresh > pool_.capacity()) {
      return error(Code::kLimit, "the pool has room for {} streams, not for {}", pool_.capacity(),
                   pool_.size() + fresh);
    }
    const bool same = !ids.empty() && ids == pool_.together_.ids;
    if (!same) TREADLE_TRY(pool_.part());
    for (const int64_t id : ids) {
      const auto it = pool_.streams_.find(id);
      works_.push_back({it == pool_.streams_.end() ? pool_.first_ : it->second, {}, {}});
      works_.back().in_batch = same;
    }
    if (same) {
      states_ = pool_.together_.states;
      for (size_t i = 0; i < works_.size(); ++i) members_.push_back(i);
    }
    return {};
  }

  Status push_alone(const StreamPool::Chunk& chunk, Work& work) {
    TREADLE_ASSIGN(work.pushed.runs,
                   work.push.make(layout_, work.stream.carried_, chunk.feeds, false, places(work), options_));
    ++runs_;
    return {};
  }

  Status begin(const StreamPool::Chunk& chunk, Work& work) {
    TREADLE_TRY(work.push.begin(layout_, work.stream.carried_, chunk.feeds, false));
    const Block& block = work.push.block();
    work.end = static_cast<int64_t>(block.count) * block.samples;
    // Over time, a block is cut where another stream has fewer samples.
    work.push.expect(layout_.over_time ? 0 : block.count, places(work));
    return {};
  }

  std::span<AnyValue* const> places(Work& work) {
    places_.clear();
    work.pushed.outputs.resize(layout_.outputs.size());
    for (AnyValue& output : work.pushed.outputs) places_.push_back(&output);
    return places_;
  }

  Status check_entries(const StreamPool::Chunk& chunk) const {
    for (size_t t = 0; t < layout_.timed.size() && model_.session; ++t) {
      for (const Feed& feed : chunk.feeds) {
        const auto axis = static_cast<size_t>(model_.timed[t]);
        if (feed.name != layout_.timed[t].input->name || !feed.value->is_tensor()) continue;
        const Dims& dims = feed.value->tensor().dims();
        if (axis >= dims.size() || dims[axis] == 1) continue;
        return error(Code::kInvalidArgument, "input '{}' has {} entries along axis {}; a stream of a pool has one",
                     feed.name, dims[axis], axis);
      }
    }
    return {};
  }

  // All that have samples left run together, as many as the one with the fewest has.
  Status run_batches() {
    while (true) {
      std::vector<size_t> present;
      int64_t samples = INT64_MAX;
      for (size_t i = 0; i < works_.size(); ++i) {
        if (works_[i].alone || works_[i].at == works_[i].end) continue;
        present.push_back(i);
        samples = std::min(samples, layout_.over_time ? works_[i].end - works_[i].at : layout_.hop);
      }
      if (present.empty()) return {};
      TREADLE_TRY(run_batch(present, samples));
      ++runs_;
    }
  }

  Status run_batch(const std::vector<size_t>& present, int64_t samples) {
    if (present != members_) TREADLE_TRY(gather(present));
    std::vector<Feed> feeds;
    for (const auto& [name, value] : layout_.bound) feeds.push_back({name, &value});
    std::vector<AnyValue> samples_of_all(layout_.timed.size());
    for (size_t t = 0; t < layout_.timed.size(); ++t) {
      std::vector<Tensor> parts;
      std::vector<const Tensor*> pointers;
      for (const size_t i : present) {
        const Work& work = works_[i];
        TREADLE_ASSIGN(Tensor part,
                       slice_axis(work.push.samples(t), layout_.timed[t].axis, work.at, layout_.context + samples));
        parts.push_back(std::move(part));
      }
      for (const Tensor& part : parts) pointers.push_back(&part);
      TREADLE_TRY(concat_into(pointers, model_.timed[t], samples_of_all[t]));
      feeds.push_back({layout_.timed[t].input->name, &samples_of_all[t]});
    }
    for (size_t s = 0; s < states_.size(); ++s) feeds.push_back({state_name(s), &states_[s]});
    const std::vector<size_t>& wanted = layout_.block_outputs;
    std::vector<AnyValue> results(wanted.size());
    TREADLE_TRY(model_.session->run(feeds, wanted, results, options_));
    const size_t outputs = layout_.outputs.size();
    for (size_t o = 0; o < outputs; ++o) TREADLE_TRY(give(present, o, results[o]));
    states_.assign(std::make_move_iterator(results.begin() + static_cast<std::ptrdiff_t>(outputs)),
                   std::make_move_iterator(results.end()));
    for (const size_t i : present) {
      works_[i].at += samples;
      ++works_[i].pushed.runs;
    }
    return {};
  }

  // Each stream's entry of an output.
  Status give(const std::vector<size_t>& present, size_t output, const AnyValue& value) {
    const int64_t axis = model_.outputs[output];
    for (size_t k = 0; k < present.size(); ++k) {
      Gathered& results = works_[present[k]].push.results(output);
      results.row() = value;
      if (axis != kNoAxis) {
        TREADLE_ASSIGN(results.row(), entry_of(value, axis, k));
      }
      TREADLE_TRY(results.take());
    }
    return {};
  }

  const std::string& state_name(size_t s) const {
    const size_t declared = layout_.states.size();
    return s < declared ? layout_.states[s].input->name : layout_.over_time->states[s - declared];
  }

  Status gather(const std::vector<size_t>& present) {
    TREADLE_TRY(scatter());
    for (size_t s = 0; s < model_.states.size(); ++s) {
      std::vector<const Tensor*> parts;
      for (const size_t i : present) {
        const AnyValue& state = works_[i].push.first_state(s);
        if (!state.is_tensor()) return error(Code::kInvalidArgument, "state '{}' is no tensor", state_name(s));
        parts.push_back(&state.tensor());
      }
      TREADLE_TRY(concat_into(parts, model_.states[s], states_.emplace_back()));
    }
    members_ = present;
    for (const size_t i : present) works_[i].in_batch = true;
    return {};
  }

  Status scatter() {
    for (size_t k = 0; k < members_.size(); ++k) {
      Work& work = works_[members_[k]];
      TREADLE_TRY(take_entry(states_, model_, k, work.stream.carried_));
      work.in_batch = false;
    }
    members_.clear();
    states_.clear();
    return {};
  }

  // States that stay in the batch are empty here.
  Status finish(Work& work) {
    const std::span<AnyValue* const> results = places(work);
    TREADLE_TRY(work.push.give(results));
    work.push.commit(work.stream.carried_, results);
    for (size_t s = 0; work.in_batch && s < model_.states.size(); ++s) work.stream.carried_.state(s) = {};
    return {};
  }

  // What needs memory comes first: from the first change of the pool on, nothing fails.
  void commit() {
    StreamPool::Together together;
    for (const size_t i : members_) together.ids.push_back(chunks_[i].id);
    together.states = std::move(states_);
    std::unordered_map<int64_t, Stream> fresh;
    for (size_t i = 0; i < works_.size(); ++i) {
      if (!pool_.contains(chunks_[i].id)) fresh.emplace(chunks_[i].id, std::move(works_[i].stream));
    }
    pool_.streams_.reserve(pool_.streams_.size() + fresh.size());
    for (size_t i = 0; i < works_.size(); ++i) {
      const auto it = pool_.streams_.find(chunks_[i].id);
      if (it != pool_.streams_.end()) it->second = std::move(works_[i].stream);
    }
    pool_.streams_.merge(fresh);
    pool_.together_ = std::move(together);
    pool_.runs_ += runs_;
  }

  StreamPool& pool_;
  const PooledModel& model_;
  const StreamLayout& layout_;
  std::span<const StreamPool::Chunk> chunks_;
  const RunOptions& options_;
  std::vector<Work> works_;
  std::vector<size_t> members_;   // whose states are in `states_`, side by side
  std::vector<AnyValue> states_;  // declared, then found
  std::vector<AnyValue*> places_;
  int64_t runs_ = 0;
};

// ---------------------------------------------------------------------------------------------------------------------

Result<StreamPool> StreamPool::open(std::shared_ptr<const Session> session, StreamOptions options, size_t capacity) {
  if (capacity == 0) return error(Code::kInvalidArgument, "a pool needs room for a stream");
  TREADLE_ASSIGN(Stream first, Stream::open(std::move(session), std::move(options)));
  StreamPool pool(std::move(first), capacity);
  session::LimitedWork work(pool.first_.layout_->session->options().load, "opening");
  TREADLE_TRY(work.run([&]() -> Status {
    pool.model_ = PooledModel::make(*pool.first_.layout_);
    return {};
  }));
  return pool;
}

const std::string& StreamPool::why_single() const {
  return model_->why_single;
}

Result<std::vector<Stream::Pushed>> StreamPool::push(std::span<const Chunk> chunks, const RunOptions& options) {
  return PooledPush(*this, chunks, options).run();
}

Result<Stream::Pushed> StreamPool::flush(int64_t id, const RunOptions& options) {
  if (!contains(id)) return error(Code::kInvalidArgument, "the pool has no stream {}", id);
  TREADLE_TRY(part());
  const auto it = streams_.find(id);
  TREADLE_ASSIGN(Stream::Pushed pushed, it->second.flush({}, options));
  streams_.erase(it);
  return pushed;
}

Status StreamPool::leave(int64_t id) {
  if (!contains(id)) return error(Code::kInvalidArgument, "the pool has no stream {}", id);
  TREADLE_TRY(part());
  streams_.erase(id);
  return {};
}

Result<Stream> StreamPool::fork(int64_t id) {
  if (!contains(id)) return error(Code::kInvalidArgument, "the pool has no stream {}", id);
  TREADLE_TRY(part());
  return Stream(streams_.at(id));
}

// States and samples of a pool's streams have one entry of the batch.
Status StreamPool::check_entries(const Stream& stream) const {
  if (!model_->session) return {};
  const auto is_one = [](const Tensor& t, int64_t axis) {
    return !t.defined() || (t.rank() > axis && t.dims()[static_cast<size_t>(axis)] == 1);
  };
  bool fits = true;
  for (size_t i = 0; i < stream.carried_.tails.size(); ++i) fits &= is_one(stream.carried_.tails[i], model_->timed[i]);
  for (size_t i = 0; i < stream.carried_.states.size(); ++i) {
    fits &= stream.carried_.states[i].is_tensor() && is_one(stream.carried_.states[i].tensor(), model_->states[i]);
  }
  if (fits) return {};
  return error(Code::kInvalidArgument, "a stream of a pool has one entry of the batch");
}

Status StreamPool::join(int64_t id, const Stream& stream) {
  if (contains(id)) return error(Code::kInvalidArgument, "the pool has a stream {} already", id);
  if (size() == capacity_) return error(Code::kLimit, "the pool has room for {} streams, not for another", capacity_);
  const StreamLayout &ours = *first_.layout_, &theirs = *stream.layout_;
  if (ours.to_string() != theirs.to_string()) {
    return error(Code::kInvalidArgument, "the stream is of another kind:\n{}the pool's are\n{}", theirs.to_string(),
                 ours.to_string());
  }
  TREADLE_TRY(check_entries(stream));
  Stream joined = stream;
  if (ours.session == theirs.session) {
    joined.layout_ = first_.layout_;
  } else {  // one that has opened the model as well: what the stream carries is looked at as a snapshot is
    TREADLE_ASSIGN(const std::string snapshot, stream.save());
    joined = first_;
    TREADLE_TRY(joined.load(snapshot));
  }
  streams_.emplace(id, std::move(joined));
  return {};
}

bool StreamPool::done(int64_t id) const {
  const auto it = streams_.find(id);
  return it != streams_.end() && it->second.done();
}

Status StreamPool::part() {
  std::vector<Carried> own;
  for (size_t k = 0; k < together_.ids.size(); ++k) {
    own.push_back(streams_.at(together_.ids[k]).carried_);
    TREADLE_TRY(take_entry(together_.states, *model_, k, own.back()));
  }
  for (size_t k = 0; k < own.size(); ++k) streams_.at(together_.ids[k]).carried_ = std::move(own[k]);
  together_ = {};
  return {};
}

}  // namespace treadle
