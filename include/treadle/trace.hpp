// Traces: runs that are looked into (treadle.hpp). Made by Session::trace.
#pragma once

#include <functional>

#include "treadle/value.hpp"

namespace treadle {
inline namespace v1 {

class TraceOptions {
 public:
  TraceOptions() {
    treadle_trace_options* handle = nullptr;
    check(treadle_trace_options_create(&handle));
    handle_.reset(handle);
  }
  TraceOptions(const TraceOptions&) = delete;
  TraceOptions& operator=(const TraceOptions&) = delete;

  TraceOptions& watch(const std::string& values) {
    check(treadle_trace_options_watch(get(), values.c_str()));
    return *this;
  }
  TraceOptions& find(const std::string& what) {
    check(treadle_trace_options_find(get(), what.c_str()));
    return *this;
  }
  TraceOptions& save(const std::string& folder) {
    check(treadle_trace_options_save(get(), folder.c_str()));
    return *this;
  }
  void every(int64_t iterations) { treadle_trace_options_every(get(), iterations); }
  void statistics(bool on) { treadle_trace_options_statistics(get(), on); }
  void limit_memory(size_t bytes) { treadle_trace_options_limit_memory(get(), bytes); }
  // `seen` is called with the contents of watched values, which are valid during the call; true cancels the run.
  void set_listener(std::function<bool(const treadle_seen&)> seen) {
    seen_ = std::move(seen);
    treadle_trace_options_set_listener(
        get(),
        [](void* context, const treadle_seen* one) {
          return (*static_cast<const std::function<bool(const treadle_seen&)>*>(context))(*one);
        },
        &seen_);
  }
  treadle_trace_options* get() const { return handle_.get(); }

 private:
  detail::Handle<treadle_trace_options, treadle_trace_options_free> handle_;
  std::function<bool(const treadle_seen&)> seen_;
};

class Trace {
 public:
  Trace() = default;  // empty
  explicit Trace(treadle_trace* handle) : handle_(handle) {}

  size_t count() const { return treadle_trace_count(get()); }
  std::string name(size_t value) const { return text_or_empty(treadle_trace_name(get(), value)); }
  std::string missing(size_t value) const { return text_or_empty(treadle_trace_missing(get(), value)); }
  size_t depth(size_t value) const { return treadle_trace_depth(get(), value); }
  size_t samples(size_t value) const { return treadle_trace_samples(get(), value); }
  const int64_t* iterations(size_t value) const { return treadle_trace_iterations(get(), value); }
  std::vector<double> column(size_t value, treadle_statistic which) const {
    std::vector<double> numbers(samples(value) + 1);  // never a null pointer
    check(treadle_trace_column(get(), value, which, numbers.data()));
    numbers.pop_back();
    return numbers;
  }
  int64_t every() const { return treadle_trace_every(get()); }
  size_t found() const { return treadle_trace_found(get()); }
  // "null" if nothing was to be found.
  std::string found_json() const {
    char* const json = treadle_trace_found_json(get());
    return json ? detail::take(json) : "null";
  }
  std::string text() const { return detail::take(treadle_trace_text(get())); }
  std::string json() const { return detail::take(treadle_trace_json(get())); }
  treadle_trace* get() const { return handle_.get(); }

 private:
  static std::string text_or_empty(const char* text) { return text ? text : ""; }
  detail::Handle<treadle_trace, treadle_trace_free> handle_;
};

}  // namespace v1
}  // namespace treadle
