#include "session.h"

#include <algorithm>
#include <limits>
#include <thread>
#include <utility>

#include "configuration.h"
#include "files.h"
#include "memory.h"

namespace treadle::dropin {

namespace {

Logger logger_of(const OrtEnv* environment, const OrtSessionOptions& options) {
  Logger logger;
  if (environment) {
    const std::lock_guard lock(environment->mutex);
    logger = environment->logger;
  }
  if (!options.log_id.empty()) logger.id = options.log_id;
  if (options.severity >= 0) logger.least = static_cast<OrtLoggingLevel>(options.severity);
  if (options.logging) logger.function = options.logging, logger.parameter = options.logging_parameter;
  return logger;
}

// `open` makes treadle's session; `loading` is the name of this event in a profile.
template <class Open>
OrtSession* make_session(const OrtEnv* environment, const OrtSessionOptions* given, const char* loading,
                         const Open& open) {
  const OrtSessionOptions defaults;
  const OrtSessionOptions& options = given ? *given : defaults;
  auto session = std::make_unique<OrtSession>();
  if (options.profiles) session->trace = std::make_unique<Trace>(options.profile_prefix);
  session->options = options.engine(environment);
  session->loading.cancelled = options.load_cancelled;
  treadle_options_set_interrupt(
      session->options.get(),
      [](void* context) {
        const auto& loading = *static_cast<const OrtSession::Loading*>(context);
        return !loading.ended.load(std::memory_order_relaxed) && loading.cancelled->load(std::memory_order_relaxed);
      },
      &session->loading);
  session->engine.reset(open(session->options.get()));
  session->loading.ended.store(true, std::memory_order_relaxed);
  if (session->trace) session->trace->add(loading, session->trace->origin_ns(), steady_ns());

  const Logger& logger = session->logger = logger_of(environment, options);
  for (size_t i = 0; const char* remark = treadle_session_remark(session->engine.get(), i); ++i) logger.warn(remark);
  for (size_t i = 0; const char* warning = treadle_session_warning(session->engine.get(), i); ++i) {
    logger.warn(warning);
  }
  warn_of_session_entries(logger, options.entries);
  warn_of_model_options(logger, session->engine.get());
  if (!options.optimized_model.empty()) {
    char* bytes = nullptr;
    size_t size = 0;
    check(treadle_session_optimized_model(session->engine.get(), &bytes, &size));
    const std::unique_ptr<char, void (*)(void*)> owned(bytes, treadle_free);
    write_file(options.optimized_model, bytes, size);
  }
  if (session->trace) session->trace->add("session_initialization", session->trace->origin_ns(), steady_ns());
  return session.release();
}

OrtSession* open_file(const OrtEnv* environment, const char* path, const OrtSessionOptions* options) {
  require(path, "the path of a model is missing");
  return make_session(environment, options, "model_loading_uri", [&](const treadle_options* engine) {
    treadle_session* session = nullptr;
    check(treadle_session_open(path, engine, &session));
    return session;
  });
}

OrtSession* open_bytes(const OrtEnv* environment, const void* bytes, size_t size, const OrtSessionOptions* options) {
  require(bytes, "the bytes of a model are missing");
  const std::string* const folder = options ? options->entry(kFolder) : nullptr;
  return make_session(environment, options, "model_loading_array", [&](const treadle_options* engine) {
    treadle_session* session = nullptr;
    check(treadle_session_from_bytes(bytes, size, folder ? folder->c_str() : ".", engine, &session));
    return session;
  });
}

// The places for the results of a run.
class Results {
 public:
  Results(OrtValue** outputs, size_t count) : outputs_(outputs), handles_(count), memory_(count) {
    for (size_t i = 0; i < count; ++i) {
      if (!outputs[i] || outputs[i]->staged) continue;
      handles_[i] = outputs[i]->handle.get();
      memory_[i] = treadle_tensor_data(handles_[i]);
    }
  }
  ~Results() {
    for (size_t i = 0; i < handles_.size(); ++i) {
      if (is_new(i)) treadle_value_free(handles_[i]);
    }
  }
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;

  treadle_value** handles() { return handles_.data(); }

  void keep(const char* const* names) {
    for (size_t i = 0; i < handles_.size(); ++i) {
      if (!outputs_[i]) {
        outputs_[i] = new OrtValue(own(std::exchange(handles_[i], nullptr)));
      } else if (outputs_[i]->staged) {
        require_room(names[i], outputs_[i]->staged->info(), handles_[i]);
        outputs_[i]->staged->write(handles_[i]);
      } else if (treadle_tensor_data(handles_[i]) != memory_[i] && treadle_tensor_count(handles_[i]) > 0) {
        refuse_argument("output '" + std::string(names[i]) + "' is " + text_of(outputs_[i]->info()) +
                        ", and the value given for it has no room for that");
      }
    }
  }

 private:
  bool is_new(size_t i) const { return !outputs_[i] || outputs_[i]->staged; }

  static void require_room(const char* name, const OrtTensorTypeAndShapeInfo& room, const treadle_value* result) {
    const OrtTensorTypeAndShapeInfo found =
        describe_tensor(treadle_tensor_element(result), treadle_tensor_dims(result), treadle_tensor_rank(result));
    if (found.element == room.element && found.dims == room.dims) return;
    refuse_argument("output '" + std::string(name) + "' is " + text_of(found) + ", and the value given for it is " +
                    text_of(room));
  }

  OrtValue** outputs_;
  std::vector<treadle_value*> handles_;
  std::vector<const void*> memory_;  // where the given values have their contents
};

}  // namespace

namespace {

void run_recorded(const OrtSession& session, const treadle_run_options* options, const char* const* names,
                  const Feeds& feeds, const char* const* output_names, size_t output_count, treadle_value** outputs) {
  const int64_t begin = steady_ns();
  treadle_profile* made = nullptr;
  check(treadle_session_run_recorded(session.engine.get(), options, names, feeds.values(), feeds.size(), output_names,
                                     output_count, outputs, &made));
  const int64_t end = steady_ns();
  const std::unique_ptr<treadle_profile, void (*)(treadle_profile*)> profile(made, treadle_profile_free);
  Trace& trace = *session.trace;
  if (made) {
    const std::unique_ptr<char, void (*)(void*)> nodes(treadle_profile_kernels(made, trace.origin_ns()), treadle_free);
    if (nodes) trace.add_nodes(nodes.get());
  }
  trace.add("SequentialExecutor::Execute", begin, end);
  trace.add("model_run", begin, end);
}

}  // namespace

}  // namespace treadle::dropin

void OrtSession::run(const OrtRunOptions* run_options, const char* const* names, const OrtValue* const* inputs,
                     size_t count, const char* const* output_names, size_t output_count, OrtValue** outputs) const {
  using treadle::dropin::Feeds;
  Feeds feeds;
  feeds.reserve(count);
  for (size_t i = 0; i < count; ++i) feeds.add(inputs[i]);
  treadle::dropin::Results results(outputs, output_count);
  if (run_options && run_options->has_untold.load(std::memory_order_relaxed) &&
      run_options->has_untold.exchange(false)) {
    treadle::dropin::warn_of_run_entries(logger, run_options->entries);
  }
  const treadle_run_options* const given = run_options ? run_options->engine.get() : nullptr;
  if (trace) {
    treadle::dropin::run_recorded(*this, given, names, feeds, output_names, output_count, results.handles());
  } else {
    treadle::dropin::check(treadle_session_run(engine.get(), given, names, feeds.values(), count, output_names,
                                               output_count, results.handles()));
  }
  results.keep(output_names);
}

// All sessions of a model share packed weights, so a container adds nothing.
struct OrtPrepackedWeightsContainer {};

namespace treadle::dropin::api {

namespace {

OrtTypeInfo* type_at(const OrtSession* session, treadle_role role, size_t index) {
  const treadle_type* const type = treadle_session_type(session->engine.get(), role, index);
  if (!type) refuse_argument("there is no input or output " + std::to_string(index));
  return new OrtTypeInfo(describe(type));
}

char* name_at(const OrtSession* session, treadle_role role, size_t index, OrtAllocator* allocator) {
  const char* const name = treadle_session_name(session->engine.get(), role, index);
  if (!name) refuse_argument("there is no input or output " + std::to_string(index));
  return copy_text(allocator, name);
}

}  // namespace

void CreateSession(const OrtEnv* environment, const char* path, const OrtSessionOptions* options, OrtSession** out) {
  *out = open_file(environment, path, options);
}

void CreateSessionFromArray(const OrtEnv* environment, const void* bytes, size_t size, const OrtSessionOptions* options,
                            OrtSession** out) {
  *out = open_bytes(environment, bytes, size, options);
}

void CreatePrepackedWeightsContainer(OrtPrepackedWeightsContainer** out) {
  *out = new OrtPrepackedWeightsContainer;
}

void ReleasePrepackedWeightsContainer(OrtPrepackedWeightsContainer* container) {
  delete container;
}

void CreateSessionWithPrepackedWeightsContainer(const OrtEnv* environment, const char* path,
                                                const OrtSessionOptions* options, OrtPrepackedWeightsContainer*,
                                                OrtSession** out) {
  *out = open_file(environment, path, options);
}

void CreateSessionFromArrayWithPrepackedWeightsContainer(const OrtEnv* environment, const void* bytes, size_t size,
                                                         const OrtSessionOptions* options,
                                                         OrtPrepackedWeightsContainer*, OrtSession** out) {
  *out = open_bytes(environment, bytes, size, options);
}

void ReleaseSession(OrtSession* session) {
  delete session;
}

void Run(OrtSession* session, const OrtRunOptions* options, const char* const* names, const OrtValue* const* inputs,
         size_t count, const char* const* output_names, size_t output_count, OrtValue** outputs) {
  session->run(options, names, inputs, count, output_names, output_count, outputs);
}

// The arrays have to stay valid until the callback is called.
void RunAsync(OrtSession* session, const OrtRunOptions* options, const char* const* names,
              const OrtValue* const* inputs, size_t count, const char* const* output_names, size_t output_count,
              OrtValue** outputs, RunAsyncCallbackFn callback, void* user_data) {
  require(callback, "RunAsync: argument 9 (RunAsyncCallbackFn) is NULL");
  std::thread([=] {
    OrtStatus* status = nullptr;
    try {
      session->run(options, names, inputs, count, output_names, output_count, outputs);
    } catch (...) {
      status = status_of_exception();
    }
    callback(user_data, outputs, output_count, status);
  }).detach();
}

void SessionGetInputCount(const OrtSession* session, size_t* out) {
  *out = treadle_session_count(session->engine.get(), TREADLE_INPUT);
}
void SessionGetOutputCount(const OrtSession* session, size_t* out) {
  *out = treadle_session_count(session->engine.get(), TREADLE_OUTPUT);
}
void SessionGetOverridableInitializerCount(const OrtSession* session, size_t* out) {
  *out = treadle_session_count(session->engine.get(), TREADLE_OVERRIDABLE);
}

void SessionGetInputName(const OrtSession* session, size_t index, OrtAllocator* allocator, char** out) {
  *out = name_at(session, TREADLE_INPUT, index, allocator);
}
void SessionGetOutputName(const OrtSession* session, size_t index, OrtAllocator* allocator, char** out) {
  *out = name_at(session, TREADLE_OUTPUT, index, allocator);
}
void SessionGetOverridableInitializerName(const OrtSession* session, size_t index, OrtAllocator* allocator,
                                          char** out) {
  *out = name_at(session, TREADLE_OVERRIDABLE, index, allocator);
}

void SessionGetInputTypeInfo(const OrtSession* session, size_t index, OrtTypeInfo** out) {
  *out = type_at(session, TREADLE_INPUT, index);
}
void SessionGetOutputTypeInfo(const OrtSession* session, size_t index, OrtTypeInfo** out) {
  *out = type_at(session, TREADLE_OUTPUT, index);
}
void SessionGetOverridableInitializerTypeInfo(const OrtSession* session, size_t index, OrtTypeInfo** out) {
  *out = type_at(session, TREADLE_OVERRIDABLE, index);
}

void SessionEndProfiling(OrtSession* session, OrtAllocator* allocator, char** out) {
  *out = copy_text(allocator, session->trace ? session->trace->write() : "");
}

void SessionGetProfilingStartTimeNs(const OrtSession* session, uint64_t* out) {
  *out = session->trace ? session->trace->start_ns() : 0;
}

}  // namespace treadle::dropin::api
