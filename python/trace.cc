// Session.trace: runs that are looked into.
#include <fmt/format.h>

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

// A run that was looked into.
class Trace {
 public:
  Trace(Owned<treadle_trace> trace, Contents contents) : trace_(std::move(trace)), contents_(std::move(contents)) {}

  py::Object text() const { return take_text(treadle_trace_text(trace_.get())); }
  py::Object found() const {
    char* const json = treadle_trace_found_json(trace_.get());
    return json ? take_text(json) : py::none();
  }
  int64_t every() const { return treadle_trace_every(trace_.get()); }
  // The name of each watched value, and why nothing is seen of it, or "".
  py::Object names() const {
    py::Object names = py::new_list();
    for (size_t i = 0; i < treadle_trace_count(trace_.get()); ++i) {
      py::append(names, py::tuple(treadle_trace_name(trace_.get(), i), treadle_trace_missing(trace_.get(), i)));
    }
    return names;
  }
  // The number of loops around value `i`, and the iterations of its samples, as the bytes of int64.
  py::Object iterations(size_t i) const {
    const size_t depth = treadle_trace_depth(trace_.get(), i);
    const size_t count = treadle_trace_samples(trace_.get(), i) * depth;
    const int64_t* const numbers = treadle_trace_iterations(trace_.get(), i);
    return py::tuple(depth, py::to_bytes(reinterpret_cast<const char*>(numbers), count * sizeof(int64_t)));
  }
  // A number for each sample, as the bytes of double.
  py::Object column(size_t i, int which) const {
    std::vector<double> numbers(treadle_trace_samples(trace_.get(), i) + 1);
    check(treadle_trace_column(trace_.get(), i, static_cast<treadle_statistic>(which), numbers.data()));
    return py::to_bytes(reinterpret_cast<const char*>(numbers.data()), (numbers.size() - 1) * sizeof(double));
  }
  // The contents of each sample, with its iterations.
  py::Object contents(size_t i) {
    py::Object kept = py::new_list();
    for (const Contents::Sample& sample : contents_.of(treadle_trace_name(trace_.get(), i))) {
      treadle_value* copy = nullptr;
      check(treadle_value_copy(sample.value.get(), &copy));
      py::append(kept, py::tuple(sample.iterations, to_python(Owned<treadle_value>(copy))));
    }
    return kept;
  }

 private:
  Owned<treadle_trace> trace_;
  Contents contents_;
};

}  // namespace

py::Object Session::trace(PyObject* feed, PyObject* watch, int64_t every, bool statistics, bool values, PyObject* find,
                          size_t memory, PyObject* save, PyObject* options) const {
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
  if (!py::is_none(save)) check(treadle_trace_options_save(wanted.get(), std::string(py::text(save)).c_str()));
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
  return py::tuple(results, py::make<Trace>(std::move(trace), std::move(contents)));
}

void define_trace(PyObject* module) {
  py::define_type<Trace>(
      module, "Trace", {},
      {py::method<&Trace::text>("text"), py::method<&Trace::found>("found"), py::method<&Trace::every>("every"),
       py::method<&Trace::names>("names"), py::method<&Trace::iterations>("iterations", "value"),
       py::method<&Trace::column>("column", "value, which"), py::method<&Trace::contents>("contents", "value")});
}

}  // namespace treadle_python
