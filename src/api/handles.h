#pragma once
// The types behind the opaque handles of treadle.h, and the wrapper that keeps exceptions inside every function that
// can fail.

#include <atomic>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <unordered_map>

#include "api/arguments.h"
#include "base/memory_account.h"
#include "base/status.h"
#include "report/kernel_events.h"
#include "report/trace.h"
#include "run/iterations.h"
#include "run/profile.h"
#include "session/binding.h"
#include "session/session.h"
#include "stream/pool.h"
#include "stream/stream.h"
#include "treadle/treadle.h"
#include "type/any_value.h"

struct treadle_status {
  treadle::Status status;
  std::string text;
};

struct treadle_value {
  treadle::AnyValue value;
};

struct treadle_options {
  treadle_options() { options.load.cancel = &cancel; }
  treadle::SessionOptions options;
  std::atomic<bool> cancel{false};
};

struct treadle_session {
  std::shared_ptr<const treadle::Session> session;  // shared with streams, which keep it alive
  std::unordered_map<std::string_view, size_t> output_index;
};

struct treadle_run_options {
  treadle::RunOptions options;
  std::atomic<bool> cancel{false};
  treadle::run::Iterations iterations;
  bool (*progress)(void* context, const treadle_progress* progress) = nullptr;
  void* progress_context = nullptr;
};

struct treadle_profile {
  explicit treadle_profile(size_t runs) : profile(runs) {}
  treadle::run::Profile profile;
  treadle::report::ModelNodes model;  // of the recorded run
};

struct treadle_trace_options {
  treadle::report::TraceOptions options;
  bool (*seen)(void* context, const treadle_seen* seen) = nullptr;
  void* seen_context = nullptr;
};

struct treadle_trace {
  treadle::report::Trace trace;
};

struct treadle_stream_options {
  treadle::StreamOptions options;
};

struct treadle_stream {
  explicit treadle_stream(treadle::Stream opened) : stream(std::move(opened)) {}
  treadle::Stream stream;
  std::atomic<bool> busy{false};  // a call is changing the handle
};

struct treadle_bound {
  explicit treadle_bound(std::unique_ptr<treadle::session::Binding> made) : binding(std::move(made)) {}
  std::unique_ptr<treadle::session::Binding> binding;
  std::atomic<bool> busy{false};
};

struct treadle_pool {
  explicit treadle_pool(treadle::StreamPool opened) : pool(std::move(opened)) {}
  treadle::StreamPool pool;
  std::atomic<bool> busy{false};
};

namespace treadle::api {

inline const treadle_type* wrap(const Type* type) {
  return reinterpret_cast<const treadle_type*>(type);
}
inline const Type* unwrap(const treadle_type* type) {
  return reinterpret_cast<const Type*>(type);
}

inline treadle_value* new_value(AnyValue value) {
  return new treadle_value{std::move(value)};
}

// Never fails: without memory for the report, the result reports that.
treadle_status* to_c(Status status) noexcept;
treadle_status* out_of_memory() noexcept;
treadle_status* refused_memory(const MemoryRefused& refused) noexcept;
treadle_status* unexpected(const char* what) noexcept;
treadle_status* busy() noexcept;

// Runs `body`, which returns Status, and catches every exception.
template <class Body>
treadle_status* guarded(Body&& body) noexcept {
  try {
    return to_c(body());
  } catch (const MemoryRefused& refused) {
    return refused_memory(refused);
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::exception& e) {
    return unexpected(e.what());
  } catch (...) {
    return unexpected("unknown exception");
  }
}

// A text that the caller has to free; null if there is no memory.
char* copy_text(std::string_view text) noexcept;
// The text that `body` returns, for the caller to free; null if there is no memory.
template <class Body>
char* give_or_null(Body&& body) noexcept {
  try {
    return copy_text(body());
  } catch (...) {
    return nullptr;
  }
}
Status give_text(std::string_view text, char** out);
// Whether `reason` gives no reason why not. A reason, or an error, goes to `why`, unless that is null.
template <class Reason>
bool give_reason(char** why, Reason&& reason) noexcept {
  if (why) *why = nullptr;
  try {
    Result<std::string> found = reason();
    if (found.ok() && found->empty()) return true;
    if (why) *why = copy_text(found.ok() ? *found : std::move(found).status().to_string());
  } catch (...) {
    if (why) *why = copy_text("out of memory");
  }
  return false;
}

inline Status require(bool condition, std::string_view what) {
  if (condition) return {};
  return error(Code::kInvalidArgument, "{}", what);
}

// Feeds of the given values. Errors: a NULL name or array.
Status fill_feeds(const char* const* names, const treadle_value* const* values, size_t count, std::vector<Feed>& feeds);
Result<std::vector<Feed>> make_feeds(const char* const* names, const treadle_value* const* values, size_t count);
const RunOptions& run_options(const treadle_run_options* options);

}  // namespace treadle::api
