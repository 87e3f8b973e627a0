#include <algorithm>

#include "api/busy_lock.h"
#include "api/handles.h"
#include "api/lent_values.h"
#include "base/thread_scratch.h"
#include "c/options.h"
#include "wire/write_file.h"

using namespace treadle;       // NOLINT(google-build-using-namespace)
using namespace treadle::api;  // NOLINT(google-build-using-namespace)

namespace {

using PushFn = Result<size_t> (Stream::*)(std::span<const Feed>, std::span<AnyValue* const>, const RunOptions&);

treadle_status* push_with(PushFn fn, treadle_stream* stream, const treadle_run_options* options,
                          const char* const* names, const treadle_value* const* values, size_t count,
                          treadle_value** outputs, size_t* hops) {
  return with_lock("stream", stream, &treadle_stream::stream, [&](Stream& pushed_to) -> Status {
    const size_t results = pushed_to.output_names().size();
    TREADLE_TRY(need({{"outputs", outputs || results == 0}}));
    ThreadScratch<CallScratch> scratch;
    TREADLE_TRY(fill_feeds(names, values, count, scratch->feeds));
    LentHandles lent(outputs, results, *scratch);
    TREADLE_TRY(lent.lend());
    TREADLE_ASSIGN(const size_t runs, (pushed_to.*fn)(scratch->feeds, scratch->places, run_options(options)));
    lent.keep();
    if (hops) *hops = runs;
    return {};
  });
}

}  // namespace

extern "C" {

treadle_status* treadle_stream_options_create(treadle_stream_options** out) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"out", out}}));
    *out = new treadle_stream_options;
    return {};
  });
}

void treadle_stream_options_free(treadle_stream_options* options) {
  delete options;
}

treadle_status* treadle_stream_options_pair(treadle_stream_options* options, const char* input, const char* output) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"options", options}, {"input", input}, {"output", output}}));
    options->options.state.emplace_back(input, output);
    return {};
  });
}

void treadle_stream_options_find_pairs(treadle_stream_options* options, bool find) {
  if (options) options->options.find_state = find;
}

treadle_status* treadle_stream_options_initial(treadle_stream_options* options, const char* input,
                                               const treadle_value* value) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"options", options}, {"input", input}, {"value", value}}));
    options->options.initial.emplace_back(input, value->value);
    return {};
  });
}

treadle_status* treadle_stream_options_bind(treadle_stream_options* options, const char* input,
                                            const treadle_value* value) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"options", options}, {"input", input}, {"value", value}}));
    options->options.bind.emplace_back(input, value->value);
    return {};
  });
}

treadle_status* treadle_stream_options_time(treadle_stream_options* options, const char* name, int64_t axis) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"options", options}, {"name", name}}));
    options->options.time.push_back({.name = name, .symbol = {}, .axis = axis});
    return {};
  });
}

treadle_status* treadle_stream_options_time_symbol(treadle_stream_options* options, const char* name,
                                                   const char* symbol) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"options", options}, {"name", name}, {"symbol", symbol}}));
    TREADLE_TRY(require(*symbol, "argument 'symbol' is empty: expected the name of an axis"));
    options->options.time.push_back({.name = name, .symbol = symbol});
    return {};
  });
}

void treadle_stream_options_hop(treadle_stream_options* options, int64_t hop, int64_t context) {
  if (!options) return;
  options->options.hop = hop;
  options->options.context = context;
}

treadle_status* treadle_stream_create(treadle_session* session, const treadle_stream_options* options,
                                      treadle_stream** out) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"session", session}, {"out", out}}));
    TREADLE_ASSIGN(Stream stream, Stream::open(session->session, options ? options->options : StreamOptions()));
    *out = new treadle_stream(std::move(stream));
    return {};
  });
}

void treadle_stream_free(treadle_stream* stream) {
  delete stream;
}

size_t treadle_stream_output_count(const treadle_stream* stream) {
  return stream ? stream->stream.output_names().size() : 0;
}

const char* treadle_stream_output_name(const treadle_stream* stream, size_t index) {
  return index < treadle_stream_output_count(stream) ? stream->stream.output_names()[index].c_str() : nullptr;
}

int64_t treadle_stream_output_axis(const treadle_stream* stream, size_t index) {
  return index < treadle_stream_output_count(stream) ? stream->stream.output_axis(index) : -1;
}

treadle_status* treadle_stream_warm(treadle_stream* stream, const int64_t* sizes, size_t count) {
  return with_lock("stream", stream, &treadle_stream::stream, [&](Stream& warmed) -> Status {
    TREADLE_TRY(need({{"sizes", sizes || count == 0}}));
    return warmed.warm({sizes, count});
  });
}

bool treadle_stream_is_realtime(const treadle_stream* stream, int64_t samples, char** why) {
  return give_reason(why, [&]() -> Result<std::string> {
    TREADLE_TRY(need({{"stream", stream}}));
    return stream->stream.breaks_realtime(samples);
  });
}

treadle_status* treadle_stream_write_c(const treadle_stream* stream, const char* const* options, size_t option_count,
                                       char** source, char** header) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"stream", stream}, {"source", source}, {"header", header}}));
    TREADLE_TRY(need_elements("options", options, option_count));
    TREADLE_ASSIGN(const c::Asked asked, c::read_options({options, option_count}, true));
    const PlainPushes pushes{asked.samples, asked.sizes, asked.options.isa, asked.ends};
    TREADLE_ASSIGN(const plan::StreamPrograms programs, stream->stream.plain_blocks(pushes));
    TREADLE_ASSIGN(const c::Files files, c::compile_stream(programs, asked.options));
    if (!asked.weights.empty()) TREADLE_TRY(write_file(asked.weights, files.weights));
    TREADLE_TRY(give_text(files.source, source));
    return give_text(files.header, header);
  });
}

treadle_status* treadle_stream_push(treadle_stream* stream, const treadle_run_options* options,
                                    const char* const* names, const treadle_value* const* values, size_t count,
                                    treadle_value** outputs, size_t* hops) {
  return push_with(&Stream::push_into, stream, options, names, values, count, outputs, hops);
}

treadle_status* treadle_stream_bind(treadle_stream* stream, const treadle_run_options* options,
                                    const char* const* names, const treadle_value* const* values, size_t count,
                                    treadle_value** outputs) {
  return with_lock("stream", stream, &treadle_stream::stream, [&](Stream& bound) -> Status {
    const size_t results = bound.output_names().size();
    TREADLE_TRY(need({{"outputs", outputs || results == 0}}));
    ThreadScratch<CallScratch> scratch;
    TREADLE_TRY(fill_feeds(names, values, count, scratch->feeds));
    LentHandles lent(outputs, results, *scratch);
    TREADLE_TRY(lent.lend_apart());
    TREADLE_TRY(bound.bind(scratch->feeds, scratch->places, run_options(options)));
    lent.keep();
    return {};
  });
}

treadle_status* treadle_stream_step(treadle_stream* stream) {
  return with_lock("stream", stream, &treadle_stream::stream,
                   [](Stream& stepped) { return std::move(stepped.step()).status(); });
}

treadle_status* treadle_stream_unbind(treadle_stream* stream) {
  return with_lock("stream", stream, &treadle_stream::stream, [](Stream& bound) -> Status {
    bound.unbind();
    return {};
  });
}

treadle_status* treadle_stream_flush(treadle_stream* stream, const treadle_run_options* options,
                                     const char* const* names, const treadle_value* const* values, size_t count,
                                     treadle_value** outputs, size_t* hops) {
  return push_with(&Stream::flush_into, stream, options, names, values, count, outputs, hops);
}

size_t treadle_stream_state_count(const treadle_stream* stream) {
  return stream ? stream->stream.state_count() : 0;
}

const char* treadle_stream_state_name(const treadle_stream* stream, size_t index) {
  return index < treadle_stream_state_count(stream) ? stream->stream.state_name(index).c_str() : nullptr;
}

treadle_status* treadle_stream_state_get(const treadle_stream* stream, size_t index, treadle_value** out) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"stream", stream}, {"out", out}}));
    if (index >= treadle_stream_state_count(stream)) {
      return error(Code::kInvalidArgument, "the stream has no state {}", index);
    }
    *out = new_value(stream->stream.state(index));
    return {};
  });
}

treadle_status* treadle_stream_state_set(treadle_stream* stream, const char* input, const treadle_value* value) {
  return with_lock("stream", stream, &treadle_stream::stream, [&](Stream& changed) -> Status {
    TREADLE_TRY(need({{"input", input}, {"value", value}}));
    return changed.set_state(input, value->value);
  });
}

int64_t treadle_stream_pending(const treadle_stream* stream) {
  return stream ? stream->stream.pending() : 0;
}

int64_t treadle_stream_delay(const treadle_stream* stream) {
  return stream ? stream->stream.delay() : 0;
}

bool treadle_stream_done(const treadle_stream* stream) {
  return stream && stream->stream.done();
}

treadle_status* treadle_stream_reset(treadle_stream* stream) {
  return with_lock("stream", stream, &treadle_stream::stream, [](Stream& changed) { return changed.reset(); });
}

treadle_status* treadle_stream_fork(const treadle_stream* stream, treadle_stream** out) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"stream", stream}, {"out", out}}));
    *out = new treadle_stream(Stream(stream->stream));
    return {};
  });
}

treadle_status* treadle_stream_save(const treadle_stream* stream, char** bytes, size_t* size) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"stream", stream}, {"bytes", bytes}, {"size", size}}));
    TREADLE_ASSIGN(const std::string snapshot, stream->stream.save());
    TREADLE_TRY(give_text(snapshot, bytes));
    *size = snapshot.size();
    return {};
  });
}

treadle_status* treadle_stream_load(treadle_stream* stream, const void* bytes, size_t size) {
  return with_lock("stream", stream, &treadle_stream::stream, [&](Stream& changed) -> Status {
    TREADLE_TRY(need({{"bytes", bytes || size == 0}}));
    return changed.load({static_cast<const char*>(bytes), size});
  });
}

treadle_status* treadle_stream_load_from_other_weights(treadle_stream* stream, const void* bytes, size_t size) {
  return with_lock("stream", stream, &treadle_stream::stream, [&](Stream& changed) -> Status {
    TREADLE_TRY(need({{"bytes", bytes || size == 0}}));
    return changed.load({static_cast<const char*>(bytes), size}, true);
  });
}

char* treadle_stream_text(const treadle_stream* stream) {
  return stream ? give_or_null([&] { return stream->stream.to_string(); }) : nullptr;
}

}  // extern "C"
