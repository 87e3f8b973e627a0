// Streams, and many streams of one model in a pool (treadle.hpp).
#pragma once

#include "treadle/session.hpp"

namespace treadle {
inline namespace v1 {

class StreamOptions {
 public:
  StreamOptions() {
    treadle_stream_options* handle = nullptr;
    check(treadle_stream_options_create(&handle));
    handle_.reset(handle);
  }
  StreamOptions& state(const std::string& input, const std::string& output) {
    check(treadle_stream_options_pair(get(), input.c_str(), output.c_str()));
    return *this;
  }
  // Whether pairs of states that are not given are found by name and type; on by default.
  StreamOptions& find_pairs(bool find) {
    treadle_stream_options_find_pairs(get(), find);
    return *this;
  }
  StreamOptions& initial(const std::string& input, const Value& value) {
    check(treadle_stream_options_initial(get(), input.c_str(), value.get()));
    return *this;
  }
  StreamOptions& bind(const std::string& input, const Value& value) {
    check(treadle_stream_options_bind(get(), input.c_str(), value.get()));
    return *this;
  }
  StreamOptions& time(const std::string& name, int64_t axis) {
    check(treadle_stream_options_time(get(), name.c_str(), axis));
    return *this;
  }
  // The time axis of input `name` is the axis whose size the model calls `symbol`.
  StreamOptions& time(const std::string& name, const std::string& symbol) {
    check(treadle_stream_options_time_symbol(get(), name.c_str(), symbol.c_str()));
    return *this;
  }
  StreamOptions& hop(int64_t hop, int64_t context = 0) {
    treadle_stream_options_hop(get(), hop, context);
    return *this;
  }
  treadle_stream_options* get() const { return handle_.get(); }

 private:
  detail::Handle<treadle_stream_options, treadle_stream_options_free> handle_;
};

// A copy is a fork: both streams go on from the same state.
class Stream {
 public:
  Stream(const Session& session, const StreamOptions& options) {
    treadle_stream* handle = nullptr;
    check(treadle_stream_create(session.get(), options.get(), &handle));
    handle_.reset(handle);
  }
  Stream(Stream&&) noexcept = default;
  Stream& operator=(Stream&&) noexcept = default;
  Stream(const Stream& other) {
    treadle_stream* handle = nullptr;
    check(treadle_stream_fork(other.get(), &handle));
    handle_.reset(handle);
  }
  Stream& operator=(const Stream& other) { return *this = Stream(other); }
  ~Stream() = default;

  // Returns the outputs that are not states, one value each. `hops` receives the number of runs made.
  std::vector<Value> push(const Feeds& feeds, const RunOptions* options = nullptr, size_t* hops = nullptr) {
    return advance(treadle_stream_push, feeds, options, hops);
  }
  std::vector<Value> flush(const Feeds& feeds = {}, const RunOptions* options = nullptr, size_t* hops = nullptr) {
    return advance(treadle_stream_flush, feeds, options, hops);
  }
  // As push(); tensors in `results` of the right type and sizes are written in place.
  void push_into(const Feeds& feeds, std::vector<Value>& results, const RunOptions* options = nullptr) {
    const detail::FeedArrays arrays(feeds);
    std::vector<treadle_value*> handles(treadle_stream_output_count(get()), nullptr);
    for (size_t i = 0; i < handles.size() && i < results.size(); ++i) handles[i] = results[i].get();
    detail::check_run(treadle_stream_push(get(), options ? options->get() : nullptr, arrays.names.data(),
                                          arrays.values.data(), arrays.names.size(), handles.data(), nullptr));
    for (size_t i = results.size(); i < handles.size(); ++i) results.emplace_back(handles[i]);
  }
  // Binds the arguments of a push for step(), and returns its results, which steps write in place. The stream keeps the
  // values until unbind(): a caller writes samples into the memory that they share with `feeds`. `results`: memory for
  // results, in order; there is new memory for those that are missing. `options` has to live as long. A copy of the
  // stream is not bound.
  const std::vector<Value>& bind(Feeds feeds, std::vector<Value> results = {}, const RunOptions* options = nullptr) {
    const detail::FeedArrays arrays(feeds);
    std::vector<treadle_value*> handles(treadle_stream_output_count(get()), nullptr);
    for (size_t i = 0; i < handles.size() && i < results.size(); ++i) handles[i] = results[i].get();
    detail::check_run(treadle_stream_bind(get(), options ? options->get() : nullptr, arrays.names.data(),
                                          arrays.values.data(), arrays.names.size(), handles.data()));
    for (size_t i = results.size(); i < handles.size(); ++i) results.emplace_back(handles[i]);
    bound_ = std::move(feeds);
    return results_ = std::move(results);
  }
  // A push with the bound arguments, in hardly more time than its arithmetic takes.
  void step() { detail::check_run(treadle_stream_step(get())); }
  void unbind() {
    check(treadle_stream_unbind(get()));
    bound_.clear();
    results_.clear();
  }
  // Plans and compiles for pushes of these numbers of samples, so that the pushes do not. Empty: for pushes of one hop.
  void warm(const std::vector<int64_t>& sizes = {}) { check(treadle_stream_warm(get(), sizes.data(), sizes.size())); }
  // Why pushes of so many samples (0: one hop) may not keep real time; empty if they do.
  std::string breaks_realtime(int64_t samples = 0) const {
    char* why = nullptr;
    return treadle_stream_is_realtime(get(), samples, &why) ? std::string() : detail::take(why);
  }
  // The stream as C: source and header; options as in treadle_stream_write_c.
  std::pair<std::string, std::string> write_c(const std::vector<std::string>& options) const {
    return detail::take_c(options, [&](const char* const* texts, size_t count, char** source, char** header) {
      return treadle_stream_write_c(get(), texts, count, source, header);
    });
  }
  void reset() { check(treadle_stream_reset(get())); }
  std::vector<std::string> output_names() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < treadle_stream_output_count(get()); ++i)
      names.emplace_back(treadle_stream_output_name(get(), i));
    return names;
  }
  // The axis along which the results of pushes are joined; -1: each push returns the newest value alone.
  int64_t output_axis(size_t index) const { return treadle_stream_output_axis(get(), index); }
  std::vector<std::string> state_names() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < treadle_stream_state_count(get()); ++i)
      names.emplace_back(treadle_stream_state_name(get(), i));
    return names;
  }
  Value state(size_t index) const {
    treadle_value* value = nullptr;
    check(treadle_stream_state_get(get(), index, &value));
    return Value(value);
  }
  void set_state(const std::string& input, const Value& value) {
    check(treadle_stream_state_set(get(), input.c_str(), value.get()));
  }
  int64_t pending() const { return treadle_stream_pending(get()); }
  int64_t delay() const { return treadle_stream_delay(get()); }
  bool done() const { return treadle_stream_done(get()); }
  std::string save() const { return detail::take_bytes(treadle_stream_save, get()); }
  void load(const std::string& snapshot) { check(treadle_stream_load(get(), snapshot.data(), snapshot.size())); }
  // As load(), and accepts the snapshot of a stream whose model has other weights: streams move on to a newer model.
  void load_from_other_weights(const std::string& snapshot) {
    check(treadle_stream_load_from_other_weights(get(), snapshot.data(), snapshot.size()));
  }
  std::string text() const { return detail::take(treadle_stream_text(get())); }
  treadle_stream* get() const { return handle_.get(); }

 private:
  template <class Fn>
  std::vector<Value> advance(Fn fn, const Feeds& feeds, const RunOptions* options, size_t* hops) {
    const detail::FeedArrays arrays(feeds);
    std::vector<treadle_value*> handles(treadle_stream_output_count(get()), nullptr);
    detail::check_run(fn(get(), options ? options->get() : nullptr, arrays.names.data(), arrays.values.data(),
                         arrays.names.size(), handles.data(), hops));
    return {handles.begin(), handles.end()};
  }
  friend class Pool;
  explicit Stream(treadle_stream* handle) : handle_(handle) {}
  Feeds bound_;                 // of bind()
  std::vector<Value> results_;  // of bind()
  detail::Handle<treadle_stream, treadle_stream_free> handle_;
};

// Many streams of one model; their chunks run together as the entries of a batch. Each stream has a batch of one, and a
// number that the caller chooses. One thread at a time may call.
class Pool {
 public:
  // A stream's number, and its chunk: one value for each name of push().
  using Chunk = std::pair<int64_t, std::vector<Value>>;

  Pool(const Session& session, const StreamOptions& options, size_t capacity) {
    treadle_pool* handle = nullptr;
    check(treadle_pool_create(session.get(), options.get(), capacity, &handle));
    handle_.reset(handle);
  }

  // A stream joins the pool with its first chunk. Returns, for each chunk in order, the outputs of its stream.
  std::vector<std::vector<Value>> push(const std::vector<std::string>& names, const std::vector<Chunk>& chunks,
                                       const RunOptions* options = nullptr) {
    std::vector<const char*> inputs;
    for (const std::string& name : names) inputs.push_back(name.c_str());
    std::vector<int64_t> ids;
    std::vector<const treadle_value*> values;
    for (const auto& [id, chunk] : chunks) {
      ids.push_back(id);
      for (size_t i = 0; i < names.size(); ++i) values.push_back(i < chunk.size() ? chunk[i].get() : nullptr);
    }
    const size_t outputs = treadle_pool_output_count(get());
    std::vector<treadle_value*> handles(chunks.size() * outputs, nullptr);
    detail::check_run(treadle_pool_push(get(), options ? options->get() : nullptr, ids.data(), ids.size(),
                                        inputs.data(), inputs.size(), values.data(), handles.data()));
    std::vector<std::vector<Value>> results(chunks.size());
    for (size_t i = 0; i < handles.size(); ++i) results[i / outputs].emplace_back(handles[i]);
    return results;
  }
  // Pushes the same number of samples to each stream. Inputs and outputs have one entry for each of `ids`, in that
  // order, along the model's batch axis. `lengths` becomes [ids, outputs]: how much of each output belongs to the
  // stream, along the axis along which pushes are joined; zeros fill the rest. Throws when a stream runs alone, and,
  // without `lengths`, when results differ in size.
  std::vector<Value> push_batch(const std::vector<int64_t>& ids, const Feeds& feeds,
                                const RunOptions* options = nullptr, std::vector<int64_t>* lengths = nullptr) {
    const detail::FeedArrays arrays(feeds);
    std::vector<treadle_value*> handles(treadle_pool_output_count(get()), nullptr);
    if (lengths) lengths->assign(ids.size() * handles.size(), 0);
    detail::check_run(treadle_pool_push_batch(get(), options ? options->get() : nullptr, ids.data(), ids.size(),
                                              arrays.names.data(), arrays.values.data(), arrays.names.size(),
                                              handles.data(), lengths ? lengths->data() : nullptr));
    return {handles.begin(), handles.end()};
  }
  // Ends the stream's signal and returns its last outputs; the stream leaves the pool.
  std::vector<Value> flush(int64_t id, const RunOptions* options = nullptr) {
    std::vector<treadle_value*> handles(treadle_pool_output_count(get()), nullptr);
    detail::check_run(treadle_pool_flush(get(), options ? options->get() : nullptr, id, handles.data()));
    return {handles.begin(), handles.end()};
  }
  void leave(int64_t id) { check(treadle_pool_leave(get(), id)); }
  // A separate stream that goes on from this one's state.
  Stream fork(int64_t id) const {
    treadle_stream* stream = nullptr;
    check(treadle_pool_fork(handle_.get(), id, &stream));
    return Stream(stream);
  }
  // Adds a stream that goes on from the state of `stream`.
  void join(int64_t id, const Stream& stream) { check(treadle_pool_join(get(), id, stream.get())); }

  std::vector<std::string> output_names() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < treadle_pool_output_count(get()); ++i)
      names.emplace_back(treadle_pool_output_name(get(), i));
    return names;
  }
  bool contains(int64_t id) const { return treadle_pool_contains(get(), id); }
  bool done(int64_t id) const { return treadle_pool_done(get(), id); }
  size_t size() const { return treadle_pool_size(get()); }   // streams in the pool
  int64_t runs() const { return treadle_pool_runs(get()); }  // runs made so far, each for one or more streams
  std::string why_single() const {
    return treadle_pool_why_single(get());
  }  // why each stream runs alone; empty when
     // streams run together
  treadle_pool* get() const { return handle_.get(); }

 private:
  detail::Handle<treadle_pool, treadle_pool_free> handle_;
};

}  // namespace v1
}  // namespace treadle
