// Sessions, their options, and runs (treadle.hpp).
#pragma once

#include <functional>

#include "treadle/trace.hpp"
#include "treadle/value.hpp"

namespace treadle {
inline namespace v1 {

class SessionOptions {
 public:
  SessionOptions() {
    treadle_options* handle = nullptr;
    check(treadle_options_create(&handle));
    handle_.reset(handle);
  }
  SessionOptions& set(const std::string& key, const std::string& value) {
    check(treadle_options_set(get(), key.c_str(), value.c_str()));
    return *this;
  }
  SessionOptions& threads(int count) { return set("threads", std::to_string(count)); }
  // Whether a Loop without cond ends when its body's condition is false. See docs/strictness.md.
  // Whether arithmetic takes numbers nearer to 0 than any normal one for 0.
  SessionOptions& flush_denormals(bool on = true) { return set("denormals", on ? "flush" : "keep"); }
  SessionOptions& obey_loop_conditions(bool on = true) { return set("loop_condition", on ? "obeyed" : "ignored"); }
  // Limits for loading, and for each later planning; 0: no limit. See docs/limits.md.
  void limit_load_time(double seconds) { treadle_options_limit_load_time(get(), seconds); }
  void limit_load_memory(size_t bytes) { treadle_options_limit_load_memory(get(), bytes); }
  void cancel_load(bool on = true) { treadle_options_cancel_load(get(), on); }  // from any thread
  SessionOptions& dimension(const std::string& name, int64_t size) {
    check(treadle_options_set_dimension(get(), name.c_str(), size));
    return *this;
  }
  SessionOptions& denoted_dimension(const std::string& denotation, int64_t size) {
    check(treadle_options_set_denoted_dimension(get(), denotation.c_str(), size));
    return *this;
  }
  // Loading and planning call `interrupted` about every 5 ms and stop when it returns true. `context` must live as long
  // as any session with these options.
  void set_interrupt(bool (*interrupted)(void*), void* context) {
    treadle_options_set_interrupt(get(), interrupted, context);
  }
  treadle_options* get() const { return handle_.get(); }

 private:
  detail::Handle<treadle_options, treadle_options_free> handle_;
};

class RunOptions {
 public:
  RunOptions() {
    treadle_run_options* handle = nullptr;
    check(treadle_run_options_create(&handle));
    handle_.reset(handle);
  }
  void limit_time(double seconds) { treadle_run_options_limit_time(get(), seconds); }
  void limit_iterations(int64_t iterations) { treadle_run_options_limit_iterations(get(), iterations); }
  void limit_memory(size_t bytes) { treadle_run_options_limit_memory(get(), bytes); }
  void cancel(bool on = true) { treadle_run_options_cancel(get(), on); }  // from any thread
  bool is_cancelled() const { return treadle_run_options_is_cancelled(get()); }
  // The thread that runs calls `interrupted` about every 5 ms; the run is cancelled when it returns true.
  void set_interrupt(bool (*interrupted)(void*), void* context) {
    treadle_run_options_set_interrupt(get(), interrupted, context);
  }
  void set_long_work(void (*begins)(void*), void* context) {
    treadle_run_options_set_long_work(get(), begins, context);
  }
  // Runs with these options count the iterations of each loop. Such runs must not overlap.
  void count_iterations(bool count = true) { treadle_run_options_count_iterations(get(), count); }
  std::string iterations(bool json = false) const { return detail::take(treadle_run_options_iterations(get(), json)); }
  // The thread that runs calls `told` (treadle_run_options_set_progress). The run is cancelled when `told` returns true
  // or throws; the exception leaves the run.
  void progress(std::function<bool(const treadle_progress&)> told) {
    progress_ = std::make_unique<std::function<bool(const treadle_progress&)>>(std::move(told));
    treadle_run_options_set_progress(get(), *progress_ ? tell : nullptr, progress_.get());
  }
  treadle_run_options* get() const { return handle_.get(); }

 private:
  static bool tell(void* told, const treadle_progress* progress) {
    try {
      return (*static_cast<std::function<bool(const treadle_progress&)>*>(told))(*progress);
    } catch (...) {
      detail::thrown() = std::current_exception();
      return true;
    }
  }
  detail::Handle<treadle_run_options, treadle_run_options_free> handle_;
  std::unique_ptr<std::function<bool(const treadle_progress&)>> progress_;
};

using Feed = std::pair<std::string, Value>;
using Feeds = std::vector<Feed>;

namespace detail {
struct FeedArrays {
  explicit FeedArrays(const Feeds& feeds) {
    for (const auto& [name, value] : feeds) {
      names.push_back(name.c_str());
      values.push_back(value.get());
    }
  }
  std::vector<const char*> names;
  std::vector<const treadle_value*> values;
};
}  // namespace detail

// The time that each node took in runs; made by Session::profile.
class Profile {
 public:
  explicit Profile(treadle_profile* handle) : handle_(handle) {}
  std::string text() const { return detail::take(treadle_profile_text(get())); }
  // In lines of at most `width` columns; `flags`: TREADLE_EXPLAIN_ASCII, or 0.
  std::string table(unsigned flags, size_t width) const {
    return detail::take(treadle_profile_table(get(), flags, width));
  }
  std::string json() const { return detail::take(treadle_profile_json(get())); }
  std::string trace() const { return detail::take(treadle_profile_trace(get())); }
  treadle_profile* get() const { return handle_.get(); }

 private:
  detail::Handle<treadle_profile, treadle_profile_free> handle_;
};

// A run whose arguments are bound; made by Session::bind. One thread at a time may run it.
class BoundRun {
 public:
  // A run with the bound arguments, in hardly more time than its arithmetic takes.
  void run() { detail::check_run(treadle_bound_run(handle_.get())); }
  // What the last run gave; runs write it in place.
  const std::vector<Value>& results() const { return results_; }
  // Why runs take as long as Session::run; empty if they do not.
  std::string why() const { return treadle_bound_why(handle_.get()); }
  treadle_bound* get() const { return handle_.get(); }

 private:
  friend class Session;
  BoundRun() = default;
  Feeds feeds_;
  std::vector<Value> results_;
  detail::Handle<treadle_bound, treadle_bound_free> handle_;
};

class Session {
 public:
  explicit Session(const std::string& path, const SessionOptions& options = {}) {
    treadle_session* handle = nullptr;
    check(treadle_session_open(path.c_str(), options.get(), &handle));
    handle_.reset(handle);
  }
  // The bytes are copied. `folder`: where external data is looked up; empty refuses external data.
  Session(const void* bytes, size_t size, const SessionOptions& options = {}, const std::string& folder = {}) {
    treadle_session* handle = nullptr;
    check(treadle_session_from_bytes(bytes, size, folder.empty() ? nullptr : folder.c_str(), options.get(), &handle));
    handle_.reset(handle);
  }

  // Given options that have no effect on this model, each as a sentence.
  std::vector<std::string> remarks() const {
    std::vector<std::string> remarks;
    while (const char* remark = treadle_session_remark(get(), remarks.size())) remarks.emplace_back(remark);
    return remarks;
  }
  // Rules that the model breaks, and points that it leaves undefined, each as a sentence. The session runs the model
  // all the same.
  std::vector<std::string> warnings() const {
    std::vector<std::string> warnings;
    while (const char* warning = treadle_session_warning(get(), warnings.size())) warnings.emplace_back(warning);
    return warnings;
  }
  size_t count(treadle_role role) const { return treadle_session_count(get(), role); }
  std::string name(treadle_role role, size_t index) const { return treadle_session_name(get(), role, index); }
  Type type(treadle_role role, size_t index) const { return Type(treadle_session_type(get(), role, index)); }
  std::string metadata(const std::string& field) const {
    return detail::take(treadle_session_metadata(get(), field.c_str()));
  }

  std::vector<std::pair<std::string, std::string>> properties() const {
    std::vector<std::pair<std::string, std::string>> properties;
    for (size_t i = 0; i < treadle_session_property_count(get()); ++i) {
      properties.emplace_back(treadle_session_property_key(get(), i), treadle_session_property_value(get(), i));
    }
    return properties;
  }
  // Domains ("" is ai.onnx) and versions.
  std::vector<std::pair<std::string, int64_t>> opsets() const {
    std::vector<std::pair<std::string, int64_t>> opsets;
    for (size_t i = 0; i < treadle_session_opset_count(get()); ++i) {
      opsets.emplace_back(treadle_session_opset_domain(get(), i), treadle_session_opset_version(get(), i));
    }
    return opsets;
  }
  treadle_counters counters() const { return treadle_session_counters(get()); }

  // Computes the named outputs, or all outputs when none is named.
  std::vector<Value> run(const Feeds& feeds, const std::vector<std::string>& outputs = {},
                         const RunOptions* options = nullptr) const {
    std::vector<Value> results(outputs.empty() ? count(TREADLE_OUTPUT) : outputs.size());
    run_into(feeds, outputs, results, options);
    return results;
  }
  // Computes all outputs.
  std::vector<Value> run(const Feeds& feeds, const RunOptions* options) const { return run(feeds, {}, options); }
  // Tensors of the right type and sizes in `results` are written in place.
  void run_into(const Feeds& feeds, const std::vector<std::string>& outputs, std::vector<Value>& results,
                const RunOptions* options = nullptr) const {
    const detail::FeedArrays arrays(feeds);
    std::vector<const char*> names;
    for (const std::string& output : outputs) names.push_back(output.c_str());
    std::vector<treadle_value*> handles;
    for (const Value& result : results) handles.push_back(result.get());
    detail::check_run(treadle_session_run(get(), options ? options->get() : nullptr, arrays.names.data(),
                                          arrays.values.data(), arrays.names.size(),
                                          names.empty() ? nullptr : names.data(), names.size(), handles.data()));
    for (size_t i = 0; i < results.size(); ++i) {
      if (!results[i].get()) results[i] = Value(handles[i]);
    }
  }

  // Binds the arguments of a run, which keeps the values: a caller writes into the memory that they share with `feeds`.
  // `outputs`: as of run(). `results`: memory for results, in order; there is new memory for those that are missing.
  // `options` have to live as long as what is returned.
  BoundRun bind(Feeds feeds, const std::vector<std::string>& outputs = {}, std::vector<Value> results = {},
                const RunOptions* options = nullptr) const {
    const detail::FeedArrays arrays(feeds);
    std::vector<const char*> names;
    for (const std::string& name : outputs) names.push_back(name.c_str());
    std::vector<treadle_value*> handles(outputs.empty() ? count(TREADLE_OUTPUT) : outputs.size(), nullptr);
    for (size_t i = 0; i < handles.size() && i < results.size(); ++i) handles[i] = results[i].get();
    treadle_bound* handle = nullptr;
    detail::check_run(treadle_session_bind(
        get(), options ? options->get() : nullptr, arrays.names.data(), arrays.values.data(), arrays.names.size(),
        names.empty() ? nullptr : names.data(), names.size(), handles.data(), &handle));
    BoundRun bound;
    bound.handle_.reset(handle);
    for (size_t i = results.size(); i < handles.size(); ++i) results.emplace_back(handles[i]);
    bound.feeds_ = std::move(feeds);
    bound.results_ = std::move(results);
    return bound;
  }
  Profile profile(const Feeds& feeds, size_t runs = 10, const RunOptions* options = nullptr) const {
    const detail::FeedArrays arrays(feeds);
    treadle_profile* profile = nullptr;
    detail::check_run(treadle_session_profile(get(), options ? options->get() : nullptr, arrays.names.data(),
                                              arrays.values.data(), arrays.names.size(), runs, &profile));
    return Profile(profile);
  }

  // Runs the model and looks into it. `out` gets what was seen, also if the run fails and this throws.
  std::vector<Value> trace(const Feeds& feeds, const TraceOptions& options, Trace& out,
                           const RunOptions* run = nullptr) const {
    const detail::FeedArrays arrays(feeds);
    std::vector<treadle_value*> outputs(count(TREADLE_OUTPUT) + 1);
    treadle_trace* trace = nullptr;
    treadle_status* const status =
        treadle_session_trace(get(), run ? run->get() : nullptr, options.get(), arrays.names.data(),
                              arrays.values.data(), arrays.names.size(), outputs.data(), &trace);
    out = Trace(trace);
    detail::check_run(status);
    outputs.pop_back();
    std::vector<Value> results;
    for (treadle_value* output : outputs) results.emplace_back(output);
    return results;
  }

  // The model after the rewrites of loading, serialised.
  std::string optimized_model() const { return detail::take_bytes(treadle_session_optimized_model, get()); }
  // The graph after the rewrites of loading; with the option "dump", what that option asks for.
  std::string dump_graph() const { return detail::take_text(treadle_session_dump_graph, get()); }
  void set_threads(int threads) { treadle_session_set_threads(get(), threads); }
  void compile() const { treadle_session_compile(get()); }
  void wait_compiled() const { treadle_session_wait_compiled(get()); }
  std::string explain(const Feeds& feeds = {}, bool json = false) const {
    const detail::FeedArrays arrays(feeds);
    return detail::take_text(treadle_session_explain, get(), arrays.names.data(), arrays.values.data(),
                             arrays.names.size(), json);
  }
  // In lines of at most `width` columns; `flags`: TREADLE_EXPLAIN_*.
  std::string explain_text(const Feeds& feeds, unsigned flags, size_t width) const {
    const detail::FeedArrays arrays(feeds);
    return detail::take_text(treadle_session_explain_text, get(), arrays.names.data(), arrays.values.data(),
                             arrays.names.size(), flags, width);
  }
  // Why runs with inputs of these sizes may not keep real time; empty if they do.
  std::string breaks_realtime(const Feeds& feeds) const {
    const detail::FeedArrays arrays(feeds);
    char* why = nullptr;
    const bool keeps =
        treadle_session_is_realtime(get(), arrays.names.data(), arrays.values.data(), arrays.names.size(), &why);
    return keeps ? std::string() : detail::take(why);
  }
  std::string dump_plan(const Feeds& feeds) const {
    const detail::FeedArrays arrays(feeds);
    return detail::take_text(treadle_session_dump_plan, get(), arrays.names.data(), arrays.values.data(),
                             arrays.names.size());
  }
  // The model as C: source and header; options and fixed inputs as in treadle_session_write_c.
  std::pair<std::string, std::string> write_c(const std::vector<std::string>& options, const Feeds& fixed = {}) const {
    const detail::FeedArrays arrays(fixed);
    return detail::take_c(options, [&](const char* const* texts, size_t count, char** source, char** header) {
      return treadle_session_write_c(get(), texts, count, arrays.names.data(), arrays.values.data(),
                                     arrays.names.size(), source, header);
    });
  }
  treadle_session* get() const { return handle_.get(); }

 private:
  detail::Handle<treadle_session, treadle_session_free> handle_;
};

}  // namespace v1
}  // namespace treadle
