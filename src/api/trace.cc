// The C functions of traces.

#include "report/trace.h"

#include <algorithm>
#include <limits>

#include "api/handles.h"
#include "report/sought.h"

using namespace treadle;       // NOLINT(google-build-using-namespace)
using namespace treadle::api;  // NOLINT(google-build-using-namespace)

namespace {

const report::ValueSeries* series_of(const treadle_trace* trace, size_t value) {
  return trace && value < trace->trace.values.size() ? &trace->trace.values[value] : nullptr;
}

double number_of(const kernels::Statistics& s, treadle_statistic which) {
  const bool has_numbers = s.low <= s.high;
  switch (which) {
    case TREADLE_MINIMUM:
      return has_numbers ? s.low : std::numeric_limits<double>::quiet_NaN();
    case TREADLE_MAXIMUM:
      return has_numbers ? s.high : std::numeric_limits<double>::quiet_NaN();
    case TREADLE_MEAN:
      return s.mean();
    case TREADLE_NORM:
      return s.norm();
    case TREADLE_NAN:
      return static_cast<double>(s.nan);
    case TREADLE_INF:
      return static_cast<double>(s.infinite);
    case TREADLE_ZERO:
      return static_cast<double>(s.zero);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

// The options with the caller's function.
report::TraceOptions options_of(const treadle_trace_options* options) {
  report::TraceOptions made = options ? options->options : report::TraceOptions();
  if (!options || !options->seen) return made;
  made.seen = [seen = options->seen, context = options->seen_context](const report::ValueSeries& series,
                                                                      std::span<const int64_t> iterations,
                                                                      const AnyValue& value) -> Status {
    const treadle_value handle{value};
    const treadle_seen one{series.name().c_str(), iterations.data(), iterations.size(), &handle};
    if (seen(context, &one)) return error(Code::kCancelled, "the run was cancelled");
    return {};
  };
  return made;
}

}  // namespace

extern "C" {

treadle_status* treadle_trace_options_create(treadle_trace_options** out) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"out", out}}));
    *out = new treadle_trace_options;
    return {};
  });
}

void treadle_trace_options_free(treadle_trace_options* options) {
  delete options;
}

treadle_status* treadle_trace_options_watch(treadle_trace_options* options, const char* values) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"options", options}, {"values", values}}));
    options->options.watch.emplace_back(values);
    return {};
  });
}

void treadle_trace_options_every(treadle_trace_options* options, int64_t every) {
  if (options) options->options.every = every;
}

void treadle_trace_options_statistics(treadle_trace_options* options, bool statistics) {
  if (options) options->options.statistics = statistics;
}

treadle_status* treadle_trace_options_find(treadle_trace_options* options, const char* what) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"options", options}, {"what", what}}));
    TREADLE_ASSIGN(const report::Sought sought, report::Sought::parse(what));
    options->options.find = sought.text();
    return {};
  });
}

treadle_status* treadle_trace_options_save(treadle_trace_options* options, const char* folder) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"options", options}, {"folder", folder}}));
    options->options.save = folder;
    return {};
  });
}

void treadle_trace_options_limit_memory(treadle_trace_options* options, size_t bytes) {
  if (options) options->options.memory = bytes;
}

void treadle_trace_options_set_listener(treadle_trace_options* options,
                                        bool (*seen)(void* context, const treadle_seen* seen), void* context) {
  if (!options) return;
  options->seen = seen;
  options->seen_context = context;
}

treadle_status* treadle_session_trace(const treadle_session* session, const treadle_run_options* run,
                                      const treadle_trace_options* options, const char* const* names,
                                      const treadle_value* const* values, size_t count, treadle_value** outputs,
                                      treadle_trace** out) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"session", session}, {"out", out}}));
    *out = nullptr;
    TREADLE_ASSIGN(const std::vector<Feed> feeds, make_feeds(names, values, count));
    auto made = std::make_unique<treadle_trace>();
    std::vector<AnyValue> results;
    Status status =
        report::trace(*session->session, feeds, results, options_of(options), run_options(run), made->trace);
    if (!status.ok()) {
      if (!made->trace.values.empty() || made->trace.found) *out = made.release();
      return status;
    }
    for (size_t i = 0; outputs && i < results.size(); ++i) {
      if (!outputs[i]) outputs[i] = new treadle_value;
      outputs[i]->value = std::move(results[i]);
    }
    *out = made.release();
    return {};
  });
}

void treadle_trace_free(treadle_trace* trace) {
  delete trace;
}

size_t treadle_trace_count(const treadle_trace* trace) {
  return trace ? trace->trace.values.size() : 0;
}

const char* treadle_trace_name(const treadle_trace* trace, size_t value) {
  const report::ValueSeries* const series = series_of(trace, value);
  return series ? series->name().c_str() : nullptr;
}

const char* treadle_trace_missing(const treadle_trace* trace, size_t value) {
  const report::ValueSeries* const series = series_of(trace, value);
  return series ? series->missing.c_str() : nullptr;
}

size_t treadle_trace_depth(const treadle_trace* trace, size_t value) {
  const report::ValueSeries* const series = series_of(trace, value);
  return series ? series->depth() : 0;
}

size_t treadle_trace_samples(const treadle_trace* trace, size_t value) {
  const report::ValueSeries* const series = series_of(trace, value);
  return series ? series->samples.size() : 0;
}

const int64_t* treadle_trace_iterations(const treadle_trace* trace, size_t value) {
  const report::ValueSeries* const series = series_of(trace, value);
  return series ? series->iterations.data() : nullptr;
}

treadle_status* treadle_trace_column(const treadle_trace* trace, size_t value, treadle_statistic which, double* out) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"trace", trace}, {"out", out}}));
    const report::ValueSeries* const series = series_of(trace, value);
    if (!series) {
      return error(Code::kInvalidArgument, "value {} of {} was asked for", value, trace->trace.values.size());
    }
    for (const kernels::Statistics& sample : series->samples) *out++ = number_of(sample, which);
    return {};
  });
}

int64_t treadle_trace_every(const treadle_trace* trace) {
  return trace ? trace->trace.every : 0;
}

size_t treadle_trace_found(const treadle_trace* trace) {
  return trace && trace->trace.found ? trace->trace.found->places.size() : 0;
}

char* treadle_trace_found_json(const treadle_trace* trace) {
  if (!trace || !trace->trace.found) return nullptr;
  return give_or_null([&] { return report::to_json(*trace->trace.found); });
}

char* treadle_trace_text(const treadle_trace* trace) {
  return trace ? give_or_null([&] { return report::to_text(trace->trace); }) : nullptr;
}

char* treadle_trace_json(const treadle_trace* trace) {
  return trace ? give_or_null([&] { return report::to_json(trace->trace); }) : nullptr;
}

}  // extern "C"
