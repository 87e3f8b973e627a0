// Session.trace: runs that are looked into.
#include <fmt/format.h>

#include <array>

#include "session.h"

namespace treadle_python {

namespace {

// Contents of watched values, kept until the run has ended, since Python cannot be called meanwhile.
class Contents {
 public:
  struct Sample {
    std::vector<int64_t> iterations;
    Owned<treadle_value> value;
  };

  explicit Contents(size_t limit) : limit_(limit) {}

  static bool add(void* context, const treadle_seen* seen) { return static_cast<Contents*>(context)->add(*seen); }
  // The error if they have become too many; null if not.
  treadle_status* too_many() const {
    return problem_.empty() ? nullptr : treadle_status_create(TREADLE_LIMIT, problem_.c_str());
  }
  std::vector<Sample>& of(const char* name) { return samples_[name]; }

 private:
  bool add(const treadle_seen& seen) {
    treadle_value* copy = nullptr;
    if (treadle_status* const status = treadle_value_copy(seen.value, &copy)) {
      problem_ = treadle_status_text(status);
      treadle_status_free(status);
      return true;
    }
    Sample sample{{seen.iterations, seen.iterations + seen.depth}, Owned<treadle_value>(copy)};
    bytes_ += treadle_tensor_bytes(copy) + sizeof sample;
    if (bytes_ > limit_) {
      std::string at;
      for (const int64_t iteration : sample.iterations) at += fmt::format("{}{}", at.empty() ? "" : "/", iteration);
      problem_ = fmt::format("the values take more than memory = {} bytes{} of {}: watch fewer values or iterations",
                             limit_, at.empty() ? "" : " at iteration " + at, seen.name);
      return true;
    }
    samples_[seen.name].push_back(std::move(sample));
    return false;
  }

  size_t limit_, bytes_ = 0;
  std::string problem_;
  std::unordered_map<std::string, std::vector<Sample>> samples_;
};

py::Object bytes_of(const std::vector<double>& numbers) {
  return py::to_bytes(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(double));
}

py::Object bytes_of(const int64_t* numbers, size_t count) {
  return py::to_bytes(reinterpret_cast<const char*>(numbers), count * sizeof(int64_t));
}

// (name, why it is missing, iterations and columns as bytes, contents with their iterations)
py::Object series_of(const treadle_trace* trace, size_t i, Contents& contents) {
  constexpr std::array kColumns = {TREADLE_MINIMUM, TREADLE_MAXIMUM, TREADLE_MEAN, TREADLE_NORM,
                                   TREADLE_NAN,     TREADLE_INF,     TREADLE_ZERO};
  const size_t samples = treadle_trace_samples(trace, i), depth = treadle_trace_depth(trace, i);
  py::Object columns = py::new_list();
  std::vector<double> numbers(samples + 1);
  for (const treadle_statistic which : kColumns) {
    check(treadle_trace_column(trace, i, which, numbers.data()));
    py::append(columns, bytes_of({numbers.begin(), numbers.end() - 1}));
  }
  const char* const name = treadle_trace_name(trace, i);
  py::Object kept = py::new_list();
  for (Contents::Sample& sample : contents.of(name)) {
    py::append(kept, py::tuple(sample.iterations, to_python(std::move(sample.value))));
  }
  return py::tuple(name, treadle_trace_missing(trace, i), depth,
                   bytes_of(treadle_trace_iterations(trace, i), samples * depth), columns, kept);
}

}  // namespace

py::Object Session::trace(PyObject* feed, PyObject* watch, int64_t every, bool statistics, bool values, PyObject* find,
                          size_t memory, PyObject* options) const {
  Feeds feeds;
  collect(feed, feeds, false);
  const treadle_run_options* const run_options = run_options_of(options);
  treadle_trace_options* made_options = nullptr;
  check(treadle_trace_options_create(&made_options));
  const Owned<treadle_trace_options> wanted(made_options);
  treadle_trace_options_every(wanted.get(), every);
  treadle_trace_options_statistics(wanted.get(), statistics);
  treadle_trace_options_limit_memory(wanted.get(), memory);
  if (!py::is_none(find)) check(treadle_trace_options_find(wanted.get(), std::string(py::text(find)).c_str()));
  if (!py::is_none(watch)) {
    py::for_each(watch, [&](PyObject* name) {
      check(treadle_trace_options_watch(wanted.get(), std::string(py::text(name)).c_str()));
    });
  }
  Contents contents(memory);
  if (values) treadle_trace_options_set_listener(wanted.get(), Contents::add, &contents);
  Outputs outputs(treadle_session_count(handle.get(), TREADLE_OUTPUT));
  treadle_trace* made = nullptr;
  Owned<treadle_trace> trace;
  call_engine([&] {
    treadle_status* status = treadle_session_trace(handle.get(), run_options, wanted.get(), feeds.names.data(),
                                                   feeds.values.data(), feeds.names.size(), outputs.data(), &made);
    trace.reset(made);
    if (treadle_status* const limit = contents.too_many()) {
      treadle_status_free(status);
      status = limit;
    }
    return status;
  });
  py::Object results = py::new_list(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) py::set_item(results, i, outputs.to_python(i));
  py::Object series = py::new_list();
  for (size_t i = 0; i < treadle_trace_count(made); ++i) py::append(series, series_of(made, i, contents));
  const bool is_searched = !py::is_none(find);
  return py::tuple(results, take_text(treadle_trace_text(made)),
                   is_searched ? take_text(treadle_trace_found_json(made)) : py::none(), series,
                   treadle_trace_every(made));
}

}  // namespace treadle_python
