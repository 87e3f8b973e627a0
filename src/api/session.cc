#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "api/busy_lock.h"
#include "api/handles.h"
#include "api/lent_values.h"
#include "base/thread_scratch.h"
#include "c/compile.h"
#include "c/options.h"
#include "ir/nesting.h"
#include "opt/pipeline.h"
#include "report/explain.h"
#include "report/kernel_events.h"
#include "report/profile.h"
#include "session/option_table.h"
#include "session/plain_program.h"
#include "wire/write_file.h"

using namespace treadle;       // NOLINT(google-build-using-namespace)
using namespace treadle::api;  // NOLINT(google-build-using-namespace)

namespace {

Status give_session(Result<std::unique_ptr<Session>> opened, treadle_session** out) {
  TREADLE_ASSIGN(std::unique_ptr<Session> session, std::move(opened));
  auto handle = std::make_unique<treadle_session>();
  handle->session = std::move(session);
  const auto outputs = handle->session->outputs();
  for (size_t i = 0; i < outputs.size(); ++i) handle->output_index.emplace(outputs[i].name, i);
  *out = handle.release();
  return {};
}

std::span<const IoInfo> infos(const treadle_session* session, treadle_role role) {
  if (!session) return {};
  switch (role) {
    case TREADLE_INPUT:
      return session->session->inputs();
    case TREADLE_OUTPUT:
      return session->session->outputs();
    case TREADLE_OVERRIDABLE:
      return session->session->overridable();
  }
  return {};
}

const ir::Metadata& metadata_of(const treadle_session* session) {
  return session->session->metadata();
}

Status output_indices(const treadle_session& session, const char* const* names, size_t count,
                      std::vector<size_t>& indices) {
  if (!names) return {};
  TREADLE_TRY(need_elements("output_names", names, count));
  indices.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const auto found = session.output_index.find(names[i]);
    if (found == session.output_index.end()) {
      std::string known;
      for (const IoInfo& output : session.session->outputs()) known += (known.empty() ? "" : ", ") + output.name;
      return error(Code::kInvalidArgument, "the model has no output '{}' (it has: {})", names[i], known);
    }
    indices.push_back(found->second);
  }
  return {};
}

}  // namespace

namespace treadle::api {

Status fill_feeds(const char* const* names, const treadle_value* const* values, size_t count,
                  std::vector<Feed>& feeds) {
  static const AnyValue none{};
  TREADLE_TRY(need_elements("names", names, count));
  TREADLE_TRY(need({{"values", values || count == 0}}));
  feeds.reserve(count);
  for (size_t i = 0; i < count; ++i) feeds.push_back({names[i], values[i] ? &values[i]->value : &none});
  return {};
}

Result<std::vector<Feed>> make_feeds(const char* const* names, const treadle_value* const* values, size_t count) {
  std::vector<Feed> feeds;
  TREADLE_TRY(fill_feeds(names, values, count, feeds));
  return feeds;
}

}  // namespace treadle::api

namespace {

Status run_session(const treadle_session* session, const RunOptions& options, const char* const* names,
                   const treadle_value* const* values, size_t count, const char* const* output_names,
                   size_t output_count, treadle_value** outputs) {
  TREADLE_TRY(need({{"session", session}}));
  ThreadScratch<CallScratch> scratch;
  TREADLE_TRY(fill_feeds(names, values, count, scratch->feeds));
  TREADLE_TRY(output_indices(*session, output_names, output_count, scratch->indices));
  if (output_names && output_count == 0) return {};
  const size_t wanted = output_names ? output_count : session->session->outputs().size();
  TREADLE_TRY(need({{"outputs", outputs || wanted == 0}}));
  LentHandles lent(outputs, wanted, *scratch);
  TREADLE_TRY(lent.lend());
  TREADLE_TRY(session->session->run(scratch->feeds, scratch->indices, scratch->places, options));
  lent.keep();
  return {};
}

Result<treadle_bound*> bind_session(const treadle_session* session, const RunOptions& options, const char* const* names,
                                    const treadle_value* const* values, size_t count, const char* const* output_names,
                                    size_t output_count, treadle_value** outputs) {
  CallScratch scratch;
  TREADLE_TRY(fill_feeds(names, values, count, scratch.feeds));
  TREADLE_TRY(output_indices(*session, output_names, output_count, scratch.indices));
  const size_t wanted = output_names ? output_count : session->session->outputs().size();
  TREADLE_TRY(need({{"outputs", outputs || wanted == 0}}));
  TREADLE_TRY(require(wanted > 0, "no outputs are asked for"));
  LentHandles lent(outputs, wanted, scratch);
  TREADLE_TRY(lent.lend_apart());
  TREADLE_ASSIGN(auto made,
                 session::Binding::make(session->session, scratch.feeds, scratch.indices, scratch.places, options));
  auto* const bound = new treadle_bound(std::move(made));
  lent.keep();
  return bound;
}

}  // namespace

extern "C" {

treadle_status* treadle_options_create(treadle_options** out) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"out", out}}));
    *out = new treadle_options;
    return {};
  });
}

void treadle_options_free(treadle_options* options) {
  delete options;
}

treadle_status* treadle_options_set(treadle_options* options, const char* key, const char* value) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"options", options}, {"key", key}, {"value", value}}));
    return session::set_option(options->options, key, value);
  });
}

treadle_status* treadle_options_set_dimension(treadle_options* options, const char* name, int64_t size) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"options", options}, {"name", name}}));
    if (size < 0) return error(Code::kInvalidArgument, "size {} of '{}' is negative", size, name);
    options->options.dimension_overrides.emplace_back(name, size);
    return {};
  });
}

treadle_status* treadle_options_set_denoted_dimension(treadle_options* options, const char* denotation, int64_t size) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"options", options}, {"denotation", denotation}}));
    if (size < 0) return error(Code::kInvalidArgument, "size {} of '{}' is negative", size, denotation);
    options->options.denotation_overrides.emplace_back(denotation, size);
    return {};
  });
}

treadle_status* treadle_options_set_initializer(treadle_options* options, const char* name,
                                                const treadle_value* tensor) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"options", options}, {"name", name}, {"tensor", tensor}}));
    if (!tensor->value.is_tensor()) return error(Code::kInvalidArgument, "initializer '{}' is not a tensor", name);
    for (auto& [known, contents] : options->options.initializers) {
      if (known != name) continue;
      contents = tensor->value.tensor();
      return {};
    }
    options->options.initializers.emplace_back(name, tensor->value.tensor());
    return {};
  });
}

treadle_status* treadle_options_set_external_file(treadle_options* options, const char* location, const void* bytes,
                                                  size_t size) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"options", options}, {"location", location}, {"bytes", bytes || size == 0}}));
    options->options.external_files.emplace_back(location, std::span(static_cast<const std::byte*>(bytes), size));
    return {};
  });
}

void treadle_options_limit_load_time(treadle_options* options, double seconds) {
  if (options) options->options.load.time_limit_s = std::max(seconds, 0.0);
}

void treadle_options_limit_load_memory(treadle_options* options, size_t bytes) {
  if (options) options->options.load.memory_limit = bytes;
}

void treadle_options_cancel_load(treadle_options* options, bool cancel) {
  if (options) options->cancel.store(cancel, std::memory_order_relaxed);
}

void treadle_options_set_interrupt(treadle_options* options, bool (*interrupted)(void* context), void* context) {
  if (!options) return;
  options->options.load.interrupted = interrupted;
  options->options.load.interrupted_context = context;
}

treadle_status* treadle_session_open(const char* path, const treadle_options* options, treadle_session** out) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"path", path}, {"out", out}}));
    return give_session(Session::open(path, options ? options->options : SessionOptions()), out);
  });
}

treadle_status* treadle_session_from_bytes(const void* bytes, size_t size, const char* folder,
                                           const treadle_options* options, treadle_session** out) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"bytes", bytes || size == 0}, {"out", out}}));
    return give_session(Session::from_bytes({static_cast<const std::byte*>(bytes), size},
                                            options ? options->options : SessionOptions(), folder ? folder : ""),
                        out);
  });
}

void treadle_session_free(treadle_session* session) {
  delete session;
}

void treadle_session_set_threads(treadle_session* session, int threads) {
  if (session) session->session->set_threads(threads);
}

const char* treadle_session_remark(const treadle_session* session, size_t index) {
  return session && index < session->session->remarks().size() ? session->session->remarks()[index].c_str() : nullptr;
}

const char* treadle_session_warning(const treadle_session* session, size_t index) {
  if (!session || index >= session->session->model_warnings().size()) return nullptr;
  return session->session->model_warnings()[index].c_str();
}

size_t treadle_session_count(const treadle_session* session, treadle_role role) {
  return infos(session, role).size();
}

const char* treadle_session_name(const treadle_session* session, treadle_role role, size_t index) {
  const auto list = infos(session, role);
  return index < list.size() ? list[index].name.c_str() : nullptr;
}

const treadle_type* treadle_session_type(const treadle_session* session, treadle_role role, size_t index) {
  const auto list = infos(session, role);
  return index < list.size() ? wrap(&list[index].type) : nullptr;
}

char* treadle_session_metadata(const treadle_session* session, const char* field) {
  if (!session || !field) return nullptr;
  const ir::Metadata& m = metadata_of(session);
  const std::array<std::pair<std::string_view, const std::string*>, 6> texts = {
      {{"producer_name", &m.producer_name},
       {"producer_version", &m.producer_version},
       {"domain", &m.domain},
       {"description", &m.description},
       {"graph_name", &m.graph_name},
       {"graph_description", &m.graph_description}}};
  const std::string_view wanted = field;
  for (const auto& [name, text] : texts) {
    if (name == wanted) return copy_text(*text);
  }
  if (wanted == "ir_version") return give_or_null([&] { return fmt::to_string(m.ir_version); });
  if (wanted == "model_version") return give_or_null([&] { return fmt::to_string(m.model_version); });
  return nullptr;
}

size_t treadle_session_property_count(const treadle_session* session) {
  return session ? metadata_of(session).properties.size() : 0;
}

const char* treadle_session_property_key(const treadle_session* session, size_t index) {
  return index < treadle_session_property_count(session) ? metadata_of(session).properties[index].first.c_str()
                                                         : nullptr;
}

const char* treadle_session_property_value(const treadle_session* session, size_t index) {
  return index < treadle_session_property_count(session) ? metadata_of(session).properties[index].second.c_str()
                                                         : nullptr;
}

size_t treadle_session_opset_count(const treadle_session* session) {
  return session ? metadata_of(session).opset_imports.size() : 0;
}

const char* treadle_session_opset_domain(const treadle_session* session, size_t index) {
  return index < treadle_session_opset_count(session) ? metadata_of(session).opset_imports[index].first.c_str()
                                                      : nullptr;
}

int64_t treadle_session_opset_version(const treadle_session* session, size_t index) {
  return index < treadle_session_opset_count(session) ? metadata_of(session).opset_imports[index].second : 0;
}

void treadle_session_read_counters(const treadle_session* session, treadle_counters* out, size_t bytes) {
  if (!out) return;
  std::memset(out, 0, bytes);
  if (!session) return;
  const SessionCounters counters = session->session->counters();
  const treadle_counters known = {
      counters.plans,        counters.runs,       counters.allocations_last_run, counters.peak_bytes_last_run,
      counters.compilations, counters.cache_loads};
  std::memcpy(out, &known, std::min(bytes, sizeof known));
}

void treadle_session_wait_compiled(const treadle_session* session) {
  if (session) session->session->wait_compiled();
}

void treadle_session_compile(const treadle_session* session) {
  // If there is no memory, loops stay interpreted.
  treadle_status_free(guarded([&]() -> Status {
    if (session) session->session->compile();
    return {};
  }));
}

treadle_status* treadle_session_explain(const treadle_session* session, const char* const* names,
                                        const treadle_value* const* values, size_t count, bool json, char** text) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"session", session}, {"text", text}}));
    TREADLE_ASSIGN(const std::vector<Feed> feeds, make_feeds(names, values, count));
    TREADLE_ASSIGN(const report::Explanation explanation, report::explain(*session->session, feeds));
    return give_text(json ? report::to_json(explanation) : report::to_text(explanation), text);
  });
}

treadle_status* treadle_session_explain_text(const treadle_session* session, const char* const* names,
                                             const treadle_value* const* values, size_t count, unsigned flags,
                                             size_t width, char** text) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"session", session}, {"text", text}}));
    TREADLE_ASSIGN(const std::vector<Feed> feeds, make_feeds(names, values, count));
    TREADLE_ASSIGN(const report::Explanation explanation, report::explain(*session->session, feeds));
    const report::TextOptions options{
        .width = width, .utf8 = (flags & TREADLE_EXPLAIN_ASCII) == 0, .all = (flags & TREADLE_EXPLAIN_ALL) != 0};
    return give_text(report::to_text(explanation, options), text);
  });
}

bool treadle_session_is_realtime(const treadle_session* session, const char* const* names,
                                 const treadle_value* const* values, size_t count, char** why) {
  return give_reason(why, [&]() -> Result<std::string> {
    TREADLE_TRY(need({{"session", session}}));
    TREADLE_ASSIGN(const std::vector<Feed> feeds, make_feeds(names, values, count));
    TREADLE_ASSIGN(const session::Planned* const plan, session->session->planned(feeds));
    return session->session->breaks_realtime(plan);
  });
}

treadle_status* treadle_session_profile(const treadle_session* session, const treadle_run_options* options,
                                        const char* const* names, const treadle_value* const* values, size_t count,
                                        size_t runs, treadle_profile** out) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"session", session}, {"out", out}}));
    TREADLE_TRY(require(runs > 0, "a profile is made of at least one run"));
    if (session->session->options().tier == Tier::kReference) {
      return error(Code::kInvalidArgument, "the reference interpreter has no profile");
    }
    TREADLE_ASSIGN(const std::vector<Feed> feeds, make_feeds(names, values, count));
    auto made = std::make_unique<treadle_profile>(runs);
    RunOptions run = run_options(options);
    std::vector<AnyValue> results;
    TREADLE_TRY(session->session->run(feeds, {}, results, run));  // plans and fills caches
    run.profile = &made->profile;
    for (size_t i = 0; i < runs; ++i) {
      results.clear();
      TREADLE_TRY(session->session->run(feeds, {}, results, run));
    }
    *out = made.release();
    return {};
  });
}

const char* treadle_pass_name(size_t index) {
  const auto passes = opt::passes();
  return index < passes.size() ? passes[index].name.data() : nullptr;  // a literal, which ends with a zero byte
}

treadle_status* treadle_session_dump_graph(const treadle_session* session, char** text) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"session", session}, {"text", text}}));
    TREADLE_TRY(ir::check_stack(session->session->graph()));
    TREADLE_ASSIGN(const std::string graph, session->session->dump_graph());
    return give_text(graph, text);
  });
}

treadle_status* treadle_session_optimized_model(const treadle_session* session, char** bytes, size_t* size) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"session", session}, {"bytes", bytes}, {"size", size}}));
    TREADLE_ASSIGN(const std::string model, session->session->optimized_model());
    TREADLE_TRY(give_text(model, bytes));
    *size = model.size();
    return {};
  });
}

treadle_status* treadle_session_write_c(const treadle_session* session, const char* const* options, size_t option_count,
                                        const char* const* names, const treadle_value* const* values, size_t count,
                                        char** source, char** header) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"session", session}, {"source", source}, {"header", header}}));
    TREADLE_TRY(need_elements("options", options, option_count));
    TREADLE_ASSIGN(c::Asked asked, c::read_options({options, option_count}, false));
    session::PlainSizes known;
    known.sizes = std::move(asked.sizes);
    TREADLE_ASSIGN(const std::vector<Feed> feeds, make_feeds(names, values, count));
    known.fixed = feeds;
    known.isa = asked.options.isa;
    TREADLE_ASSIGN(const auto program, session->session->plain_program(known));
    for (const IoInfo& output : session->session->outputs()) asked.options.outputs.push_back(output.name);
    TREADLE_ASSIGN(const c::Files files, c::compile(*program, asked.options));
    if (!asked.weights.empty()) TREADLE_TRY(write_file(asked.weights, files.weights));
    TREADLE_TRY(give_text(files.source, source));
    return give_text(files.header, header);
  });
}

treadle_status* treadle_session_dump_plan(const treadle_session* session, const char* const* names,
                                          const treadle_value* const* values, size_t count, char** text) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"session", session}, {"text", text}}));
    TREADLE_ASSIGN(const std::vector<Feed> feeds, make_feeds(names, values, count));
    TREADLE_ASSIGN(const std::string plan, session->session->dump_plan(feeds));
    return give_text(plan, text);
  });
}

treadle_status* treadle_session_bind(const treadle_session* session, const treadle_run_options* options,
                                     const char* const* names, const treadle_value* const* values, size_t count,
                                     const char* const* output_names, size_t output_count, treadle_value** outputs,
                                     treadle_bound** out) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"session", session}, {"out", out}}));
    TREADLE_ASSIGN(
        *out, bind_session(session, run_options(options), names, values, count, output_names, output_count, outputs));
    return {};
  });
}

treadle_status* treadle_bound_run(treadle_bound* bound) {
  return with_lock("bound", bound, &treadle_bound::binding,
                   [](std::unique_ptr<session::Binding>& binding) { return binding->run(); });
}

const char* treadle_bound_why(const treadle_bound* bound) {
  return bound ? bound->binding->why().c_str() : "";
}

void treadle_bound_free(treadle_bound* bound) {
  delete bound;
}

treadle_status* treadle_session_run(const treadle_session* session, const treadle_run_options* options,
                                    const char* const* names, const treadle_value* const* values, size_t count,
                                    const char* const* output_names, size_t output_count, treadle_value** outputs) {
  return guarded([&] {
    return run_session(session, run_options(options), names, values, count, output_names, output_count, outputs);
  });
}

treadle_status* treadle_session_run_recorded(const treadle_session* session, const treadle_run_options* options,
                                             const char* const* names, const treadle_value* const* values, size_t count,
                                             const char* const* output_names, size_t output_count,
                                             treadle_value** outputs, treadle_profile** profile) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"session", session}, {"profile", profile}}));
    *profile = nullptr;
    std::unique_ptr<treadle_profile> made;
    RunOptions recorded = run_options(options);
    if (session->session->options().tier != Tier::kReference) {
      made = std::make_unique<treadle_profile>(1);
      made->model = report::nodes_of_model(session->session->graph());
      recorded.profile = &made->profile;
    }
    TREADLE_TRY(run_session(session, recorded, names, values, count, output_names, output_count, outputs));
    const bool has_run = !output_names || output_count > 0;
    *profile = has_run ? made.release() : nullptr;
    return {};
  });
}

}  // extern "C"
