// Makes every request for memory of the engine fail in turn: loading, planning, running, streams, pools, saving,
// checking, inference, conversion, traces, making models smaller. trials.h says what has to hold, docs/memory.md what
// is promised.
//
//   treadle_allocation_tests                      at every place in the code, reached in every way, once
//   TREADLE_TEST_LONG=1 treadle_allocation_tests  every single request, up to 1000 points of a call
//   treadle_allocation_tests NAME...              trials of these models only ("recurrent", "stream windows")
//
// TREADLE_ALLOCATION_STACKS=1 keeps stacks, to find lost memory. `llvm-symbolizer
// --obj=build/bin/treadle_allocation_tests ADDRESS` turns addresses into names.

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "allocation/models.h"
#include "allocation/trials.h"
#include "base/thread_pool.h"

namespace treadle::faults {
namespace {

// --- parts of trials -------------------------------------------------------------------------------------------------

Options make_options(const Settings& settings) {
  treadle_options* options = nullptr;
  require_ok(treadle_options_create(&options));
  for (const auto& [key, value] : settings) require_ok(treadle_options_set(options, key.c_str(), value.c_str()));
  return Options(options);
}

Session open_session(const std::string& bytes, const Settings& settings) {
  treadle_session* session = nullptr;
  require_ok(treadle_session_from_bytes(bytes.data(), bytes.size(), nullptr, make_options(settings).get(), &session));
  return Session(session);
}

std::string binary_of(const std::string& text) {
  char* bytes = nullptr;
  size_t size = 0;
  require_ok(treadle_text_parse(TREADLE_MODEL, text.data(), text.size(), &bytes, &size));
  std::string binary(bytes, size);
  treadle_free(bytes);
  return binary;
}

// The inputs of a call, and the places for its results.
class Call {
 public:
  explicit Call(const std::vector<Input>& inputs) {
    for (const Input& input : inputs) {
      names.push_back(input.name.c_str());
      values.push_back(made_.emplace_back(input.make()).get());
    }
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() { clear(); }

  void expect(size_t count) { outputs.resize(count, nullptr); }
  void clear() {
    for (treadle_value*& output : outputs) treadle_value_free(std::exchange(output, nullptr));
  }
  treadle_status* run(const treadle_session* session) {
    return treadle_session_run(session, nullptr, names.data(), values.data(), names.size(), nullptr, 0, outputs.data());
  }
  treadle_status* push(treadle_stream* stream) {
    return treadle_stream_push(stream, nullptr, names.data(), values.data(), names.size(), outputs.data(), nullptr);
  }
  treadle_status* flush(treadle_stream* stream) {
    return treadle_stream_flush(stream, nullptr, nullptr, nullptr, 0, outputs.data(), nullptr);
  }

  std::vector<const char*> names;
  std::vector<const treadle_value*> values;
  std::vector<treadle_value*> outputs;

 private:
  std::vector<Value> made_;
};

std::string bytes_of(const treadle_value* value) {
  if (!value) return "no value";
  if (treadle_value_kind(value) == TREADLE_NONE) return "nothing";
  char* bytes = nullptr;
  size_t size = 0;
  require_ok(treadle_value_to_pb(value, "", &bytes, &size));
  std::string all(bytes, size);
  treadle_free(bytes);
  return all;
}

std::string bytes_of(const std::vector<treadle_value*>& values) {
  std::string all;
  for (const treadle_value* value : values) all += bytes_of(value) + "\n";
  return all;
}

std::string compare(const std::string& found, const std::string& expected) {
  return found == expected ? "" : "results are wrong";
}

size_t output_count(const Session& session) {
  return treadle_session_count(session.get(), TREADLE_OUTPUT);
}

std::string result_of(const Session& session, const std::vector<Input>& inputs) {
  Call call(inputs);
  call.expect(output_count(session));
  require_ok(call.run(session.get()));
  return bytes_of(call.outputs);
}

// A call that returns bytes.
struct Bytes {
  char* data = nullptr;
  size_t size = 0;
  std::string take() {
    std::string all(data, size);
    treadle_free(std::exchange(data, nullptr));
    return all;
  }
};

// Whether the first result is right.
class Same {
 public:
  std::string operator()(const std::string& found) {
    if (first_.empty()) first_ = found + ".";
    return compare(found + ".", first_);
  }

 private:
  std::string first_;
};

// --- sessions --------------------------------------------------------------------------------------------------------

void try_loading(Trials& trials, const Model& model, const std::string& bytes, const char* phase) {
  const std::string expected = result_of(open_session(bytes, model.settings), model.inputs);
  const Options options = make_options(model.settings);
  treadle_session* session = nullptr;
  trials.run(
      phase, model.name,
      {.call = [&] { return treadle_session_from_bytes(bytes.data(), bytes.size(), nullptr, options.get(), &session); },
       .verify =
           [&] {
             const Session opened(std::exchange(session, nullptr));
             return compare(result_of(opened, model.inputs), expected);
           }});
}

void try_file(Trials& trials, const Model& model, const std::string& path) {
  const Options options = make_options(model.settings);
  treadle_session* session = nullptr;
  Same same;
  trials.run("load a file", model.name,
             {.call = [&] { return treadle_session_open(path.c_str(), options.get(), &session); },
              .verify =
                  [&] {
                    const Session opened(std::exchange(session, nullptr));
                    return same(result_of(opened, model.inputs));
                  }});
  treadle_report* report = nullptr;
  trials.run("check", model.name,
             {.call = [&] { return treadle_model_check(path.c_str(), nullptr, 0, TREADLE_CHECK_FULL, &report); },
              .finish = [&] { treadle_report_free(std::exchange(report, nullptr)); }});
}

void try_planning(Trials& trials, const Model& model) {
  const std::string bytes = binary_of(model.text);
  const std::string expected = result_of(open_session(bytes, model.settings), model.inputs);
  Session session;
  Call call(model.inputs);
  trials.run("plan", model.name,
             {.prepare =
                  [&] {
                    session = open_session(bytes, model.settings);
                    call.expect(output_count(session));
                  },
              .call = [&] { return call.run(session.get()); },
              .verify = [&] { return compare(bytes_of(call.outputs), expected); },
              .finish =
                  [&] {
                    call.clear();
                    session.reset();
                  }});
}

// A session that has run before: each time with new handles for results, then with those of the run before.
void try_running(Trials& trials, const Model& model, const char* phase, Whose whose = Whose::kCaller) {
  const Session session = open_session(binary_of(model.text), model.settings);
  const std::string expected = result_of(session, model.inputs);
  Call call(model.inputs);
  call.expect(output_count(session));
  Trial trial{.call = [&] { return call.run(session.get()); },
              .verify = [&] { return compare(bytes_of(call.outputs), expected); },
              .finish = [&] { call.clear(); },
              .whose = whose};
  trials.run(phase, model.name, trial);
  trial.finish = [] {};
  trials.run(phase, model.name + " into results", trial);
}

void try_texts(Trials& trials, const Model& model) {
  const std::string binary = binary_of(model.text);
  Bytes made;
  Same same_bytes, same_text, same_types, same_tree, same_report;
  trials.run("parse text", model.name,
             {.call =
                  [&] {
                    return treadle_text_parse(TREADLE_MODEL, model.text.data(), model.text.size(), &made.data,
                                              &made.size);
                  },
              .verify = [&] { return same_bytes(made.take()); }});
  trials.run(
      "print text", model.name,
      {.call =
           [&] { return treadle_text_print(TREADLE_MODEL, binary.data(), binary.size(), -1, &made.data, &made.size); },
       .verify = [&] { return same_text(made.take()); }});
  trials.run(
      "infer", model.name,
      {.call = [&] { return treadle_model_infer(nullptr, binary.data(), binary.size(), 0, &made.data, &made.size); },
       .verify = [&] { return same_types(made.take()); }});
  const auto tree = [&] {
    made.size = std::strlen(made.data);
    return same_tree(made.take());
  };
  trials.run("show a tree", model.name,
             {.call = [&] { return treadle_model_tree(nullptr, binary.data(), binary.size(), 0, &made.data); },
              .verify = tree});
  treadle_report* report = nullptr;
  std::string json;
  trials.run("check", model.name,
             {.call =
                  [&] {
                    treadle_report_free(std::exchange(report, nullptr));
                    treadle_status* status =
                        treadle_model_check(nullptr, model.text.data(), model.text.size(), TREADLE_CHECK_FULL, &report);
                    return status ? status : text_or_null(treadle_report_json(report), json);
                  },
              .verify = [&] { return same_report(json); },
              .finish = [&] { treadle_report_free(std::exchange(report, nullptr)); }});
}

void try_values(Trials& trials, const Model& model) {
  for (const Input& input : model.inputs) {
    const std::string name = model.name + ", " + input.name;
    const Value value = input.make();
    const std::string expected = bytes_of(value.get());
    Bytes bytes;
    trials.run("save values", name,
               {.call = [&] { return treadle_value_to_pb(value.get(), "", &bytes.data, &bytes.size); },
                .verify = [&] { return compare(bytes.take(), expected); }});
    const Session session = open_session(model.text, model.settings);
    const treadle_type* type = nullptr;
    for (size_t i = 0; i < treadle_session_count(session.get(), TREADLE_INPUT); ++i) {
      if (input.name == treadle_session_name(session.get(), TREADLE_INPUT, i)) {
        type = treadle_session_type(session.get(), TREADLE_INPUT, i);
      }
    }
    treadle_value* read = nullptr;
    const auto verify = [&] {
      const Value taken(std::exchange(read, nullptr));
      return compare(bytes_of(taken.get()), expected);
    };
    trials.run("load values", name,
               {.call = [&] { return treadle_value_from_pb(expected.data(), expected.size(), type, &read); },
                .verify = verify});
    trials.run("copy values", name,
               {.call = [&] { return treadle_value_clone(value.get(), &read); }, .verify = verify});
    std::string text;
    Same same;
    trials.run("copy values", name + "'s type",
               {.call = [&] { return text_or_null(treadle_value_type_text(value.get()), text); },
                .verify = [&] { return same(text); }});
  }
}

void try_reports(Trials& trials, const Model& model) {
  const std::string bytes = binary_of(model.text);
  Session session;
  char* text = nullptr;
  const auto free_text = [&] {
    treadle_free(std::exchange(text, nullptr));
    session.reset();
  };
  const auto open = [&] { session = open_session(bytes, model.settings); };
  Call call(model.inputs);
  trials.run("explain", model.name,
             {.prepare = open,
              .call = [&] { return treadle_session_explain(session.get(), nullptr, nullptr, 0, true, &text); },
              .finish = free_text});
  trials.run("explain", model.name + " with inputs",
             {.prepare = open,
              .call =
                  [&] {
                    return treadle_session_explain(session.get(), call.names.data(), call.values.data(),
                                                   call.names.size(), false, &text);
                  },
              .finish = free_text});
  trials.run("explain", model.name + ", its plan",
             {.prepare = open,
              .call =
                  [&] {
                    return treadle_session_dump_plan(session.get(), call.names.data(), call.values.data(),
                                                     call.names.size(), &text);
                  },
              .finish = free_text});
  treadle_profile* profile = nullptr;
  std::string trace;
  trials.run("profile", model.name,
             {.prepare = open,
              .call =
                  [&] {
                    treadle_profile_free(std::exchange(profile, nullptr));
                    treadle_status* status = treadle_session_profile(
                        session.get(), nullptr, call.names.data(), call.values.data(), call.names.size(), 1, &profile);
                    if (status) return status;
                    status = text_or_null(treadle_profile_trace(profile), trace);
                    return status ? status : text_or_null(treadle_profile_text(profile), trace);
                  },
              .finish =
                  [&] {
                    treadle_profile_free(std::exchange(profile, nullptr));
                    session.reset();
                  }});
}

// The model with its inner values as outputs, and the smallest model of those that are tried.
void try_other_models(Trials& trials, const Model& model) {
  const std::string binary = binary_of(model.text);
  Call call(model.inputs);
  Bytes made, about;
  Same same_exposed, same_reduced;
  trials.run("expose", model.name,
             {.call =
                  [&] {
                    return treadle_model_expose(nullptr, binary.data(), binary.size(), call.names.data(),
                                                call.values.data(), call.names.size(), nullptr, 0, &made.data,
                                                &made.size, &about.data);
                  },
              .verify =
                  [&] {
                    about.size = std::strlen(about.data);
                    return same_exposed(made.take() + about.take());
                  }});
  // Every candidate fails, so each step makes some.
  const auto fails = [](void*, const void*, size_t, const treadle_reduction*) { return TREADLE_FAILS; };
  constexpr size_t kAttempts = 12;
  trials.run("reduce", model.name,
             {.call =
                  [&] {
                    return treadle_model_reduce(nullptr, binary.data(), binary.size(), fails, nullptr, kAttempts, 1,
                                                &made.data, &made.size);
                  },
              .verify = [&] { return same_reduced(made.take()); }});
}

// The first trace of a session, which opens the model once more.
void try_traces(Trials& trials, const Model& model) {
  const std::string bytes = binary_of(model.text);
  treadle_trace_options* options = nullptr;
  require_ok(treadle_trace_options_create(&options));
  require_ok(treadle_trace_options_find(options, "nan,zero"));
  Session session;
  Call call(model.inputs);
  treadle_trace* trace = nullptr;
  std::string text;
  Same same;
  trials.run("trace", model.name,
             {.prepare = [&] { session = open_session(bytes, model.settings); },
              .call =
                  [&] {
                    treadle_trace_free(std::exchange(trace, nullptr));
                    treadle_status* const status =
                        treadle_session_trace(session.get(), nullptr, options, call.names.data(), call.values.data(),
                                              call.names.size(), nullptr, &trace);
                    return status ? status : text_or_null(treadle_trace_text(trace), text);
                  },
              .verify = [&] { return same(text); },
              .finish =
                  [&] {
                    treadle_trace_free(std::exchange(trace, nullptr));
                    session.reset();
                  }});
  treadle_trace_options_free(options);
}

void try_model(Trials& trials, const Model& model) {
  if (model.may_lose) trials.let_lose();
  try_loading(trials, model, model.text, "load text");
  try_loading(trials, model, binary_of(model.text), "load");
  try_planning(trials, model);
  try_running(trials, model, "run");
  Model judged = model;
  judged.settings.emplace_back("tier", "reference");
  try_running(trials, judged, "run the reference interpreter");
  try_texts(trials, model);
  try_values(trials, model);
  try_reports(trials, model);
  try_other_models(trials, model);
  try_traces(trials, model);
}

void try_threads(Trials& trials, const Model& model) {
  const int64_t loops = thread_pool_counters().loops;
  (void)result_of(open_session(model.text, model.settings), model.inputs);
  if (thread_pool_counters().loops == loops) std::abort();  // the model is too small to use two threads
  try_running(trials, model, "run, 2 threads");
  try_running(trials, model, "run, the pool", Whose::kOthers);
}

// Native code from an earlier process: everything but the compiler runs.
void try_native(Trials& trials, Model model, const std::string& folder) {
  model.settings = {{"threads", "1"}, {"jit", "always"}, {"jit_cache", folder + "/native"}};
  (void)result_of(open_session(model.text, model.settings), model.inputs);
  try_planning(trials, model);
  try_running(trials, model, "run native code");
}

// The same in the background: requests fail in the background thread, and in the thread that asks for the code.
void try_background(Trials& trials, Model model, const std::string& folder) {
  model.settings = {{"threads", "1"}, {"jit", "always"}, {"jit_cache", folder + "/native"}};
  const std::string expected = result_of(open_session(model.text, model.settings), model.inputs);
  model.settings[1].second = "auto";
  Session session;
  Call call(model.inputs);
  Trial trial{.prepare =
                  [&] {
                    session = open_session(model.text, model.settings);
                    call.expect(output_count(session));
                  },
              .call =
                  [&] {
                    treadle_status* status = call.run(session.get());
                    treadle_session_wait_compiled(session.get());
                    return status;
                  },
              .verify = [&] { return compare(bytes_of(call.outputs), expected); },
              .finish =
                  [&] {
                    call.clear();
                    session.reset();
                  }};
  trials.run("background code", model.name, trial);
  trial.whose = Whose::kOthers;
  trials.run("compile thread", model.name, trial);
}

// --- streams ---------------------------------------------------------------------------------------------------------

StreamOptions roles_of(const StreamModel& model) {
  treadle_stream_options* options = nullptr;
  require_ok(treadle_stream_options_create(&options));
  StreamOptions made(options);
  if (model.axis >= 0) require_ok(treadle_stream_options_time(options, "x", model.axis));
  for (const Input& input : model.bound) {
    require_ok(treadle_stream_options_bind(options, input.name.c_str(), input.make().get()));
  }
  treadle_stream_options_hop(options, model.hop, model.context);
  return made;
}

Stream open_stream(const Session& session, const StreamOptions& roles) {
  treadle_stream* stream = nullptr;
  require_ok(treadle_stream_create(session.get(), roles.get(), &stream));
  return Stream(stream);
}

// The results of the next two pushes and the flush of a stream.
std::string rest_of(treadle_stream* stream, const StreamModel& model) {
  std::string all;
  Call call(model.model.inputs);
  call.expect(treadle_stream_output_count(stream));
  for (int i = 0; i < 2; ++i) {
    require_ok(call.push(stream));
    all += bytes_of(call.outputs);
    call.clear();
  }
  require_ok(call.flush(stream));
  return all + bytes_of(call.outputs);
}

std::string saved(const Stream& stream) {
  Bytes bytes;
  require_ok(treadle_stream_save(stream.get(), &bytes.data, &bytes.size));
  return bytes.take();
}

void try_stream(Trials& trials, const StreamModel& model) {
  const Session session = open_session(model.model.text, model.model.settings);
  const StreamOptions roles = roles_of(model);
  const std::string& name = model.model.name;
  treadle_stream* made = nullptr;
  Same from_start;
  const auto verify_start = [&] {
    const Stream stream(std::exchange(made, nullptr));
    return from_start(rest_of(stream.get(), model));
  };
  trials.run(
      "stream: create", name,
      {.call = [&] { return treadle_stream_create(session.get(), roles.get(), &made); }, .verify = verify_start});

  // Each trial begins after `pushes` pushes of one stream, whose state is restored before the next trial.
  Call call(model.model.inputs);
  for (const int pushes : {0, 1, 4}) {
    const Stream stream = open_stream(session, roles);
    call.expect(treadle_stream_output_count(stream.get()));
    for (int i = 0; i < pushes; ++i) {
      require_ok(call.push(stream.get()));
      call.clear();
    }
    const std::string state = saved(stream);
    const auto put_back = [&] { require_ok(treadle_stream_load(stream.get(), state.data(), state.size())); };
    Same pushed, flushed, loaded, forked;
    const std::string title = name + " after " + std::to_string(pushes) + " pushes";
    const auto clear = [&] { call.clear(); };
    trials.run("stream: push", title,
               {.prepare = put_back,
                .call = [&] { return call.push(stream.get()); },
                .verify = [&] { return pushed(bytes_of(call.outputs) + rest_of(stream.get(), model)); },
                .finish = clear});
    // The push writes into the results of the push before.
    Same again;
    trials.run("stream: push", title + ", into results",
               {.prepare =
                    [&] {
                      put_back();
                      require_ok(call.push(stream.get()));
                      require_ok(call.push(stream.get()));
                    },
                .call = [&] { return call.push(stream.get()); },
                .verify = [&] { return again(bytes_of(call.outputs) + rest_of(stream.get(), model)); },
                .finish = clear});
    trials.run("stream: flush", title,
               {.prepare = put_back,
                .call = [&] { return call.flush(stream.get()); },
                .verify = [&] { return flushed(bytes_of(call.outputs)); },
                .finish = clear});
    Bytes bytes;
    put_back();
    trials.run("stream: save", title,
               {.call = [&] { return treadle_stream_save(stream.get(), &bytes.data, &bytes.size); },
                .verify = [&] { return compare(bytes.take(), state); }});
    trials.run("stream: load", title,
               {.call = [&] { return treadle_stream_load(stream.get(), state.data(), state.size()); },
                .verify = [&] { return loaded(rest_of(stream.get(), model)); }});
    put_back();
    trials.run("stream: fork", title,
               {.call = [&] { return treadle_stream_fork(stream.get(), &made); },
                .verify =
                    [&] {
                      const Stream fork(std::exchange(made, nullptr));
                      return forked(rest_of(fork.get(), model));
                    }});
  }
}

// Three streams; the first two take part in the push.
class PoolUnderTrial {
 public:
  PoolUnderTrial(const Session& session, const StreamOptions& roles, const StreamModel& model)
      : session_(session), roles_(roles), call_(model.model.inputs) {}

  void open() {
    treadle_pool* made = nullptr;
    require_ok(treadle_pool_create(session_.get(), roles_.get(), 4, &made));
    pool_.reset(made);
    outputs_.resize(3 * treadle_pool_output_count(made), nullptr);
    for (int i = 0; i < 3; ++i) {
      require_ok(push({1, 2, 3}));
      clear();
    }
  }
  treadle_status* push(std::array<int64_t, 3> ids, size_t count = 3) {
    const std::array<const treadle_value*, 3> values = {call_.values[0], call_.values[0], call_.values[0]};
    return treadle_pool_push(pool_.get(), nullptr, ids.data(), count, call_.names.data(), 1, values.data(),
                             outputs_.data());
  }
  // The feed as an array for one stream.
  treadle_status* push_batch(int64_t id) {
    return treadle_pool_push_batch(pool_.get(), nullptr, &id, 1, call_.names.data(), call_.values.data(), 1,
                                   outputs_.data(), nullptr);
  }
  bool has_batch() const { return *treadle_pool_why_single(pool_.get()) == 0; }
  treadle_status* flush(int64_t id) { return treadle_pool_flush(pool_.get(), nullptr, id, outputs_.data()); }
  // The results of the push, and the results of all streams from then on.
  std::string rest() {
    std::string all = bytes_of_outputs();
    for (int64_t id = 1; id <= 4; ++id) {
      if (!treadle_pool_contains(pool_.get(), id)) {
        all += "stream " + std::to_string(id) + " is not here\n";
        continue;
      }
      require_ok(push({id}, 1));
      all += bytes_of_outputs();
      require_ok(flush(id));
      all += bytes_of_outputs();
    }
    return all;
  }
  void clear() {
    for (treadle_value*& output : outputs_) treadle_value_free(std::exchange(output, nullptr));
  }
  void close() {
    clear();
    pool_.reset();
  }
  treadle_pool* get() { return pool_.get(); }

 private:
  std::string bytes_of_outputs() {
    std::string all = bytes_of(outputs_);
    clear();
    return all;
  }

  const Session& session_;
  const StreamOptions& roles_;
  Call call_;
  Pool pool_;
  std::vector<treadle_value*> outputs_;
};

void try_pool(Trials& trials, const StreamModel& model) {
  const Session session = open_session(model.model.text, model.model.settings);
  const StreamOptions roles = roles_of(model);
  const std::string& name = model.model.name;
  treadle_pool* made = nullptr;
  trials.run("pool: create", name,
             {.call = [&] { return treadle_pool_create(session.get(), roles.get(), 4, &made); },
              .finish = [&] { treadle_pool_free(std::exchange(made, nullptr)); }});
  PoolUnderTrial pool(session, roles, model);
  const auto open = [&] { pool.open(); };
  const auto close = [&] { pool.close(); };
  Same pushed, fewer, more, of_one, of_new, flushed, left, forked, joined;
  trials.run("pool: push", name,
             {.prepare = open,
              .call = [&] { return pool.push({1, 2, 3}); },
              .verify = [&] { return pushed(pool.rest()); },
              .finish = close});
  trials.run("pool: push", name + ", two of three",
             {.prepare = open,
              .call = [&] { return pool.push({3, 1}, 2); },
              .verify = [&] { return fewer(pool.rest()); },
              .finish = close});
  trials.run("pool: push", name + ", with a new one",
             {.prepare = open,
              .call = [&] { return pool.push({4, 1, 2}); },
              .verify = [&] { return more(pool.rest()); },
              .finish = close});
  pool.open();
  const bool has_batch = pool.has_batch();
  pool.close();
  if (has_batch) {
    trials.run("pool: push_batch", name,
               {.prepare = open,
                .call = [&] { return pool.push_batch(2); },
                .verify = [&] { return of_one(pool.rest()); },
                .finish = close});
    trials.run("pool: push_batch", name + ", with a new one",
               {.prepare = open,
                .call = [&] { return pool.push_batch(4); },
                .verify = [&] { return of_new(pool.rest()); },
                .finish = close});
  }
  trials.run("pool: flush", name,
             {.prepare = open,
              .call = [&] { return pool.flush(2); },
              .verify = [&] { return flushed(pool.rest()); },
              .finish = close});
  trials.run("pool: leave", name,
             {.prepare = open,
              .call = [&] { return treadle_pool_leave(pool.get(), 1); },
              .verify = [&] { return left(pool.rest()); },
              .finish = close});
  treadle_stream* fork = nullptr;
  trials.run("pool: fork", name,
             {.prepare = open,
              .call = [&] { return treadle_pool_fork(pool.get(), 1, &fork); },
              .verify =
                  [&] {
                    const Stream stream(std::exchange(fork, nullptr));
                    return forked(rest_of(stream.get(), model) + pool.rest());
                  },
              .finish = close});
  const Stream alone = open_stream(session, roles);
  trials.run("pool: join", name,
             {.prepare = open,
              .call = [&] { return treadle_pool_join(pool.get(), 4, alone.get()); },
              .verify = [&] { return joined(pool.rest()); },
              .finish = close});
}

// --- options, and first calls in a process
// ----------------------------------------------------------------------------

void try_options(Trials& trials) {
  treadle_options* options = nullptr;
  trials.run(
      "options", "a session",
      {.call =
           [&] {
             if (!options) {
               if (treadle_status* status = treadle_options_create(&options)) return status;
             }
             if (treadle_status* status = treadle_options_set(options, "jit_cache", "/a/folder/with/a/long/name")) {
               return status;
             }
             return treadle_options_set_dimension(options, "a symbolic size with a long name", 3);
           },
       .finish = [&] { treadle_options_free(std::exchange(options, nullptr)); }});
  treadle_run_options* run = nullptr;
  trials.run("options", "a run",
             {.call = [&] { return treadle_run_options_create(&run); },
              .finish = [&] { treadle_run_options_free(std::exchange(run, nullptr)); }});
  std::string text;
  Same same;
  trials.run(
      "options", "operators",
      {.call = [&] { return text_or_null(treadle_operator_json(5), text); }, .verify = [&] { return same(text); }});
}

// A process that has never loaded a model: the registry of operators, tables, caches.
void try_first_load(Trials& trials) {
  const Model model = models().front();
  treadle_session* session = nullptr;
  trials.run_in_fresh_processes(
      "first in a process", "loading",
      {.call =
           [&] { return treadle_session_from_bytes(model.text.data(), model.text.size(), nullptr, nullptr, &session); },
       .verify =
           [&] {
             const Session opened(std::exchange(session, nullptr));
             return result_of(opened, model.inputs).empty() ? "there is no result" : "";
           }});
  treadle_report* report = nullptr;
  trials.run_in_fresh_processes(
      "first in a process", "checking",
      {.call =
           [&] {
             return treadle_model_check(nullptr, model.text.data(), model.text.size(), TREADLE_CHECK_FULL, &report);
           },
       .verify = [&] { return treadle_report_error_count(report) == 0 ? "" : "there are errors"; }});
  std::string text;
  trials.run_in_fresh_processes("first in a process", "operators",
                                {.call = [&] { return text_or_null(treadle_operator_json(5), text); }});
}

// --- the processes ---------------------------------------------------------------------------------------------------

struct Scenario {
  std::string name;
  std::function<void(Trials&)> run;
};

std::vector<Scenario> scenarios(const std::string& folder) {
  std::vector<Scenario> all;
  for (const Model& model : models()) {
    all.push_back({model.name, [model](Trials& trials) { try_model(trials, model); }});
    if (model.name == "native" || model.name == "growing" || model.name == "control") {
      all.push_back({"native " + model.name, [=](Trials& trials) { try_native(trials, model, folder); }});
    }
    if (model.name == "many iterations") {
      all.push_back({"background", [=](Trials& trials) { try_background(trials, model, folder); }});
    }
  }
  for (const Model& model : threaded_models()) {
    all.push_back({"threads " + model.name, [model](Trials& trials) { try_threads(trials, model); }});
  }
  all.push_back({"external data", [folder](Trials& trials) {
                   const Model model = external_model(folder);
                   const std::string path = folder + "/model.onnx";
                   std::ofstream(path, std::ios::binary) << binary_of(model.text);
                   try_file(trials, model, path);
                 }});
  for (const StreamModel& model : stream_models()) {
    all.push_back({"stream " + model.model.name, [model](Trials& trials) { try_stream(trials, model); }});
    if (model.pools) all.push_back({"pool " + model.model.name, [model](Trials& trials) { try_pool(trials, model); }});
  }
  all.push_back({"options", try_options});
  all.push_back({"first load", try_first_load});
  return all;
}

// Printed when a process ends: where memory was refused, and where the process is now.
void tell_where(int number) {
  disarm();
  print_refused();
  std::fputs("--- and died at:\n", stderr);
  print_here();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

// Runs in a process of its own; if it dies, a new process continues behind that point.
void run(const Scenario& scenario, Board& board, bool everywhere) {
  constexpr int kMostDeaths = 40;
  board.trial = board.at = 0;
  std::snprintf(board.name.data(), board.name.size(), "%s", scenario.name.c_str());
  for (int deaths = 0; deaths <= kMostDeaths; ++deaths) {
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGALRM}) std::signal(number, tell_where);
      Trials trials(board, everywhere, board.trial, board.at);
      scenario.run(trials);
      std::fflush(nullptr);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    const bool hung = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
    std::fprintf(stderr, "%s, request %ld%s: the process %s (signal %d)\n", board.name.data(),
                 static_cast<long>(board.at / 2), board.at % 2 ? " and all behind it" : "", hung ? "hung" : "died",
                 WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    Count* count = board.counts.data();
    while (count->phase[0] != 0 &&
           std::strncmp(count->phase.data(), board.name.data(), std::strlen(count->phase.data())) != 0) {
      ++count;
    }
    ++count->crashes;
    ++count->points;
    if (board.trial == 0) return;
  }
}

int report(const Board& board, double seconds) {
  Count sum{};
  int64_t passed = 0, failed = 0;
  std::printf("%-18s %8s %9s %8s %7s %8s\n", "phase", "trials", "points", "errors", "wrong", "crashes");
  const auto line = [](const char* name, const Count& c) {
    std::printf("%-18s %8ld %9ld %8ld %7ld %8ld\n", name, static_cast<long>(c.trials), static_cast<long>(c.points),
                static_cast<long>(c.errors), static_cast<long>(c.wrong), static_cast<long>(c.crashes));
  };
  for (const Count& count : board.counts) {
    if (count.phase[0] == 0) break;
    line(count.phase.data(), count);
    sum.trials += count.trials;
    sum.points += count.points;
    sum.errors += count.errors;
    sum.wrong += count.wrong;
    sum.crashes += count.crashes;
    ++(count.wrong + count.crashes > 0 ? failed : passed);
  }
  line("all", sum);
  std::printf("%.0f s\n%ld passed, %ld failed\n", seconds, static_cast<long>(passed), static_cast<long>(failed));
  return failed > 0 || passed == 0 ? 1 : 0;
}

}  // namespace
}  // namespace treadle::faults

int main(int count, char** arguments) {
  using namespace treadle::faults;  // NOLINT(google-build-using-namespace)
  const char* lengthy = std::getenv("TREADLE_TEST_LONG");
  const bool everywhere = lengthy && *lengthy;
  if (std::getenv("TREADLE_ALLOCATION_STACKS")) keep_stacks();
  void* shared = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  auto* board = new (shared) Board;
  std::string folder = std::filesystem::temp_directory_path() / "treadle-allocation-XXXXXX";
  if (!mkdtemp(folder.data())) return 1;
  timespec begin{}, end{};
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (const Scenario& scenario : scenarios(folder)) {
    bool wanted = count == 1;
    for (int i = 1; i < count; ++i) wanted |= scenario.name == arguments[i];
    if (wanted) run(scenario, *board, everywhere);
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return report(*board, static_cast<double>(end.tv_sec - begin.tv_sec));
}
