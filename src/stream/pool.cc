#include "stream/pool.h"

#include <algorithm>
#include <unordered_set>

#include "session/limited_work.h"
#include "stream/layout.h"
#include "stream/runs.h"
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

// One push. Works on copies of the streams, which take the places of theirs when all has succeeded.
class PooledPush {
 public:
  PooledPush(StreamPool& pool, std::span<const StreamPool::Chunk> chunks, const RunOptions& options)
      : pool_(pool), model_(*pool.model_), layout_(*pool.first_.layout_), chunks_(chunks), options_(options) {}

  Result<std::vector<Stream::Pushed>> run() {
    TREADLE_TRY(join());
    std::vector<Stream::Pushed> pushed(works_.size());
    for (size_t i = 0; i < works_.size(); ++i) {
      Work& work = works_[i];
      TREADLE_TRY(check_entries(chunks_[i]).in(fmt::format("stream {}:", chunks_[i].id)));
      if (model_.session && (!layout_.over_time || work.stream.begun_)) {
        Status status = begin(chunks_[i], work);
        if (!status.ok()) return std::move(status).in(fmt::format("stream {}:", chunks_[i].id));
      } else {
        auto alone = work.stream.push(chunks_[i].feeds, options_);
        if (!alone.ok()) return std::move(alone).status().in(fmt::format("stream {}:", chunks_[i].id));
        pushed[i] = std::move(*alone);
        work.alone = true;
        ++runs_;
      }
    }
    TREADLE_TRY(run_batches());
    for (size_t i = 0; i < works_.size(); ++i) {
      if (works_[i].alone) continue;
      TREADLE_ASSIGN(pushed[i], finish(works_[i]));
    }
    commit();
    return pushed;
  }

 private:
  struct Work {
    Stream stream;
    bool alone = false;
    Stream::Runs runs;
    Stream::Block block;    // over time
    int64_t at = 0;         // samples that have run
    int64_t end = 0;        // samples to run
    int64_t rows = 0;       // runs made
    bool in_batch = false;  // states are in `together_`, not in `runs`
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
      works_.push_back({it == pool_.streams_.end() ? pool_.first_ : it->second, false, {}, {}});
      works_.back().in_batch = same;
    }
    if (same) {
      states_ = pool_.together_.states;
      for (size_t i = 0; i < works_.size(); ++i) members_.push_back(i);
    }
    return {};
  }

  Status begin(const StreamPool::Chunk& chunk, Work& work) {
    Stream& stream = work.stream;
    Stream::Runs& runs = work.runs;
    runs.results.resize(layout_.outputs.size());
    runs.states = stream.states_;
    if (layout_.over_time) {
      if (stream.ended_) return error(Code::kInvalidArgument, "it has ended");
      TREADLE_TRY(stream.sort_feeds(chunk.feeds, false, runs));
      TREADLE_TRY(stream.join_block(chunk.feeds, false, runs));
      stream.bind_symbols(runs);
      work.block = stream.choose_block(false, runs);
      work.end = work.block.samples;
      if (!work.in_batch) runs.states.insert(runs.states.end(), stream.found_.begin(), stream.found_.end());
    } else {
      TREADLE_TRY(stream.begin_windows(chunk.feeds, false, runs));
      work.end = static_cast<int64_t>(runs.count) * runs.hop;
    }
    return {};
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
      for (const size_t i : present) {
        const Work& work = works_[i];
        TREADLE_ASSIGN(Tensor part,
                       slice_axis(work.runs.joined[t], layout_.timed[t].axis, work.at, layout_.context + samples));
        parts.push_back(std::move(part));
      }
      TREADLE_ASSIGN(samples_of_all[t], concat_axis(parts, model_.timed[t]));
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
      ++works_[i].rows;
    }
    return {};
  }

  // Each stream's entry of an output.
  Status give(const std::vector<size_t>& present, size_t output, const AnyValue& value) {
    const int64_t axis = model_.outputs[output];
    for (size_t k = 0; k < present.size(); ++k) {
      std::vector<AnyValue>& results = works_[present[k]].runs.results[output];
      if (axis == kNoAxis) {
        results.push_back(value);
        continue;
      }
      TREADLE_ASSIGN(const Tensor entry, slice_axis(value.tensor(), axis, static_cast<int64_t>(k), 1));
      TREADLE_ASSIGN(Tensor own, entry.clone());  // does not keep the outputs of all
      results.push_back(AnyValue(std::move(own)));
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
      std::vector<Tensor> parts;
      for (const size_t i : present) {
        const AnyValue& state = works_[i].runs.states[s];
        if (!state.is_tensor()) return error(Code::kInvalidArgument, "state '{}' is no tensor", state_name(s));
        parts.push_back(state.tensor());
      }
      TREADLE_ASSIGN(Tensor together, concat_axis(parts, model_.states[s]));
      states_.push_back(AnyValue(std::move(together)));
    }
    members_ = present;
    for (const size_t i : present) works_[i].in_batch = true;
    return {};
  }

  Status scatter() {
    for (size_t k = 0; k < members_.size(); ++k) {
      Work& work = works_[members_[k]];
      work.runs.states.clear();
      for (size_t s = 0; s < states_.size(); ++s) {
        TREADLE_ASSIGN(const Tensor entry,
                       slice_axis(states_[s].tensor(), model_.states[s], static_cast<int64_t>(k), 1));
        TREADLE_ASSIGN(Tensor own, entry.clone());
        work.runs.states.push_back(AnyValue(std::move(own)));
      }
      work.stream.take_states(work.runs.states);
      work.in_batch = false;
    }
    members_.clear();
    states_.clear();
    return {};
  }

  // States that stay in the batch are empty here.
  Result<Stream::Pushed> finish(Work& work) {
    if (work.in_batch) {
      work.runs.states.assign(model_.states.size(), {});
      work.in_batch = false;
    }
    if (!layout_.over_time) return work.stream.finish_windows(work.runs);
    for (size_t o = 0; o < layout_.outputs.size(); ++o) {
      std::vector<AnyValue>& results = work.runs.results[o];
      if (results.size() < 2) continue;
      AnyValue whole = results.back();
      if (layout_.outputs[o].time_axis >= 0) {
        std::vector<Tensor> parts;
        for (const AnyValue& value : results) parts.push_back(value.tensor());
        TREADLE_ASSIGN(Tensor joined, concat_axis(parts, layout_.outputs[o].time_axis));
        whole = AnyValue(std::move(joined));
      }
      results.resize(1);
      results[0] = std::move(whole);
    }
    TREADLE_ASSIGN(Stream::Pushed pushed, work.stream.finish_block(work.block, false, work.runs));
    pushed.runs = static_cast<size_t>(work.rows);
    return pushed;
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
  for (size_t i = 0; i < stream.tails_.size(); ++i) fits &= is_one(stream.tails_[i], model_->timed[i]);
  for (size_t i = 0; i < stream.states_.size(); ++i) {
    fits &= stream.states_[i].is_tensor() && is_one(stream.states_[i].tensor(), model_->states[i]);
  }
  if (fits) return {};
  return error(Code::kInvalidArgument, "a stream of a pool has one entry of the batch");
}

Status StreamPool::join(int64_t id, const Stream& stream) {
  if (contains(id)) return error(Code::kInvalidArgument, "the pool has a stream {} already", id);
  if (size() == capacity_) return error(Code::kLimit, "the pool has room for {} streams, not for another", capacity_);
  const StreamLayout &ours = *first_.layout_, &theirs = *stream.layout_;
  if (ours.session != theirs.session || ours.to_string() != theirs.to_string()) {
    return error(Code::kInvalidArgument, "the stream is of another kind:\n{}the pool's are\n{}", theirs.to_string(),
                 ours.to_string());
  }
  TREADLE_TRY(check_entries(stream));
  Stream joined = stream;
  joined.layout_ = first_.layout_;
  streams_.emplace(id, std::move(joined));
  return {};
}

bool StreamPool::done(int64_t id) const {
  const auto it = streams_.find(id);
  return it != streams_.end() && it->second.done();
}

Status StreamPool::part() {
  std::vector<std::vector<AnyValue>> own(together_.ids.size());
  for (size_t k = 0; k < own.size(); ++k) {
    for (size_t s = 0; s < together_.states.size(); ++s) {
      TREADLE_ASSIGN(const Tensor entry,
                     slice_axis(together_.states[s].tensor(), model_->states[s], static_cast<int64_t>(k), 1));
      TREADLE_ASSIGN(Tensor copy, entry.clone());
      own[k].push_back(AnyValue(std::move(copy)));
    }
  }
  for (size_t k = 0; k < own.size(); ++k) streams_.at(together_.ids[k]).take_states(std::move(own[k]));
  together_ = {};
  return {};
}

}  // namespace treadle
