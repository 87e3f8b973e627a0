#include "api/busy_lock.h"
#include "api/handles.h"

using namespace treadle;       // NOLINT(google-build-using-namespace)
using namespace treadle::api;  // NOLINT(google-build-using-namespace)

namespace {

// Handles for outputs. They are made before the pool runs, so that results are not lost for lack of memory.
class OutputHandles {
 public:
  explicit OutputHandles(size_t count) {
    handles_.reserve(count);
    for (size_t i = 0; i < count; ++i) handles_.push_back(std::make_unique<treadle_value>());
  }
  void give(std::span<Stream::Pushed> pushed, treadle_value** outputs) {
    size_t i = 0;
    for (Stream::Pushed& one : pushed) {
      for (AnyValue& value : one.outputs) {
        handles_[i]->value = std::move(value);
        outputs[i] = handles_[i].release();
        ++i;
      }
    }
  }

 private:
  std::vector<std::unique_ptr<treadle_value>> handles_;
};

}  // namespace

extern "C" {

treadle_status* treadle_pool_create(treadle_session* session, const treadle_stream_options* options, size_t capacity,
                                    treadle_pool** out) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"session", session}, {"out", out}}));
    TREADLE_ASSIGN(StreamPool pool,
                   StreamPool::open(session->session, options ? options->options : StreamOptions(), capacity));
    *out = new treadle_pool(std::move(pool));
    return {};
  });
}

void treadle_pool_free(treadle_pool* pool) {
  delete pool;
}

size_t treadle_pool_output_count(const treadle_pool* pool) {
  return pool ? pool->pool.output_names().size() : 0;
}

const char* treadle_pool_output_name(const treadle_pool* pool, size_t index) {
  return index < treadle_pool_output_count(pool) ? pool->pool.output_names()[index].c_str() : nullptr;
}

treadle_status* treadle_pool_push(treadle_pool* pool, const treadle_run_options* options, const int64_t* ids,
                                  size_t streams, const char* const* names, size_t name_count,
                                  const treadle_value* const* values, treadle_value** outputs) {
  return with_lock("pool", pool, &treadle_pool::pool, [&](StreamPool& pushed_to) -> Status {
    const size_t results = streams * pushed_to.output_names().size();
    TREADLE_TRY(need({{"ids", ids || streams == 0},
                      {"values", values || streams * name_count == 0},
                      {"outputs", outputs || results == 0}}));
    std::vector<std::vector<Feed>> feeds;
    std::vector<StreamPool::Chunk> chunks;
    feeds.reserve(streams);
    for (size_t i = 0; i < streams; ++i) {
      TREADLE_ASSIGN(auto of_stream, make_feeds(names, values + i * name_count, name_count));
      feeds.push_back(std::move(of_stream));
      chunks.push_back({ids[i], feeds.back()});
    }
    OutputHandles handles(results);
    TREADLE_ASSIGN(std::vector<Stream::Pushed> pushed, pushed_to.push(chunks, run_options(options)));
    handles.give(pushed, outputs);
    return {};
  });
}

treadle_status* treadle_pool_push_batch(treadle_pool* pool, const treadle_run_options* options, const int64_t* ids,
                                        size_t streams, const char* const* names, const treadle_value* const* values,
                                        size_t name_count, treadle_value** outputs, int64_t* lengths) {
  return with_lock("pool", pool, &treadle_pool::pool, [&](StreamPool& pushed_to) -> Status {
    const size_t count = pushed_to.output_names().size();
    TREADLE_TRY(need({{"ids", ids || streams == 0}, {"outputs", outputs || count == 0}}));
    TREADLE_ASSIGN(const auto feeds, make_feeds(names, values, name_count));
    OutputHandles handles(count);
    const std::span<int64_t> room(lengths, lengths ? streams * count : 0);
    TREADLE_ASSIGN(Stream::Pushed pushed, pushed_to.push_batch({ids, streams}, feeds, run_options(options), room));
    handles.give({&pushed, 1}, outputs);
    return {};
  });
}

treadle_status* treadle_pool_flush(treadle_pool* pool, const treadle_run_options* options, int64_t id,
                                   treadle_value** outputs) {
  return with_lock("pool", pool, &treadle_pool::pool, [&](StreamPool& flushed) -> Status {
    const size_t results = flushed.output_names().size();
    TREADLE_TRY(need({{"outputs", outputs || results == 0}}));
    OutputHandles handles(results);
    TREADLE_ASSIGN(Stream::Pushed pushed, flushed.flush(id, run_options(options)));
    handles.give({&pushed, 1}, outputs);
    return {};
  });
}

treadle_status* treadle_pool_leave(treadle_pool* pool, int64_t id) {
  return with_lock("pool", pool, &treadle_pool::pool, [&](StreamPool& left) { return left.leave(id); });
}

treadle_status* treadle_pool_fork(treadle_pool* pool, int64_t id, treadle_stream** out) {
  return with_lock("pool", pool, &treadle_pool::pool, [&](StreamPool& forked) -> Status {
    TREADLE_TRY(need({{"out", out}}));
    TREADLE_ASSIGN(Stream stream, forked.fork(id));
    *out = new treadle_stream(std::move(stream));
    return {};
  });
}

treadle_status* treadle_pool_join(treadle_pool* pool, int64_t id, const treadle_stream* stream) {
  return with_lock("pool", pool, &treadle_pool::pool, [&](StreamPool& joined) -> Status {
    TREADLE_TRY(need({{"stream", stream}}));
    return joined.join(id, stream->stream);
  });
}

bool treadle_pool_contains(const treadle_pool* pool, int64_t id) {
  return pool && pool->pool.contains(id);
}

bool treadle_pool_done(const treadle_pool* pool, int64_t id) {
  return pool && pool->pool.done(id);
}

size_t treadle_pool_size(const treadle_pool* pool) {
  return pool ? pool->pool.size() : 0;
}

int64_t treadle_pool_runs(const treadle_pool* pool) {
  return pool ? pool->pool.runs() : 0;
}

const char* treadle_pool_why_single(const treadle_pool* pool) {
  return pool ? pool->pool.why_single().c_str() : "";
}

}  // extern "C"
