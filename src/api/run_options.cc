// The C functions of run options.

#include <algorithm>
#include <memory>

#include "api/handles.h"
#include "report/iterations.h"

using namespace treadle;       // NOLINT(google-build-using-namespace)
using namespace treadle::api;  // NOLINT(google-build-using-namespace)

namespace treadle::api {

const RunOptions& run_options(const treadle_run_options* options) {
  static const RunOptions defaults;
  return options ? options->options : defaults;
}

}  // namespace treadle::api

extern "C" {

treadle_status* treadle_run_options_create(treadle_run_options** out) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"out", out}}));
    auto options = std::make_unique<treadle_run_options>();
    options->options.cancel = &options->cancel;
    *out = options.release();
    return {};
  });
}

void treadle_run_options_free(treadle_run_options* options) {
  delete options;
}

void treadle_run_options_limit_time(treadle_run_options* options, double seconds) {
  if (options) options->options.time_limit_s = std::max(seconds, 0.0);
}

void treadle_run_options_limit_iterations(treadle_run_options* options, int64_t iterations) {
  if (options) options->options.iteration_limit = std::max<int64_t>(iterations, 0);
}

void treadle_run_options_limit_memory(treadle_run_options* options, size_t bytes) {
  if (options) options->options.memory_limit = bytes;
}

void treadle_run_options_cancel(treadle_run_options* options, bool cancel) {
  if (options) options->cancel.store(cancel, std::memory_order_relaxed);
}

bool treadle_run_options_is_cancelled(const treadle_run_options* options) {
  return options && options->cancel.load(std::memory_order_relaxed);
}

void treadle_run_options_set_interrupt(treadle_run_options* options, bool (*interrupted)(void* context),
                                       void* context) {
  if (!options) return;
  options->options.interrupted = interrupted;
  options->options.interrupted_context = context;
}

void treadle_run_options_set_progress(treadle_run_options* options,
                                      bool (*progress)(void* context, const treadle_progress* progress),
                                      void* context) {
  if (!options) return;
  options->progress = progress;
  options->progress_context = context;
  options->options.progress_context = options;
  options->options.progress = nullptr;
  if (!progress) return;
  options->options.progress = [](void* watched, int64_t done, int64_t total) {
    const auto& told = *static_cast<treadle_run_options*>(watched);
    const treadle_progress so_far{done, total};
    return told.progress(told.progress_context, &so_far);
  };
}

void treadle_run_options_set_long_work(treadle_run_options* options, void (*begins)(void* context), void* context) {
  if (!options) return;
  options->options.long_work = begins;
  options->options.long_work_context = context;
}

void treadle_run_options_count_iterations(treadle_run_options* options, bool count) {
  if (options) options->options.iterations = count ? &options->iterations : nullptr;
}

char* treadle_run_options_iterations(const treadle_run_options* options, bool json) {
  if (!options) return nullptr;
  return give_or_null(
      [&] { return json ? report::to_json(options->iterations) : report::to_text(options->iterations); });
}

}  // extern "C"
