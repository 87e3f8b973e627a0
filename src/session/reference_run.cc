#include "session/reference_run.h"

#include <utility>
#include <vector>

#include "base/memory_account.h"
#include "base/thread_pool.h"
#include "ir/nesting.h"
#include "reference/interpreter.h"
#include "run/limits.h"
#include "run/progress.h"
#include "type/write_over.h"

namespace treadle::session {

namespace {

class Guard final : public reference::Guard {
 public:
  Guard(const run::RunLimits& limits, MemoryAccount& account, run::Progress& progress)
      : limits_(limits), account_(account), progress_(progress) {
    progress_.begin(made_, -1, 0);
  }
  Status iteration() override {
    TREADLE_TRY(limits_.check_iterations(++iterations_));
    if (loops == 1) made_ = begun_++;
    return step();
  }
  Status finish() {
    progress_.end(begun_);
    return progress_.finish({});
  }
  Status step() override {
    if (!account_.fits(0)) return account_.refusal(0, "the values that are kept");
    return limits_.check();
  }

 private:
  const run::RunLimits& limits_;
  MemoryAccount& account_;
  run::Progress& progress_;
  int64_t iterations_ = 0;
  int64_t begun_ = 0, made_ = 0;  // of outermost loops
};

}  // namespace

Status run_reference(const Loaded& loaded, Values values, std::span<AnyValue* const> places,
                     const RunOptions& options) {
  TREADLE_TRY(ir::check_stack(*loaded.graph));
  const auto account = MemoryAccount::make();
  account->begin(options.memory_limit);
  const MemoryScope counted(account);
  run::RunLimits limits;
  run::Progress progress(nullptr);  // the loops that follow are unknown
  limits.begin(progress.begin_run(options));
  const ThreadScope scope(1, limits.stop_check());
  const DenormalScope mode(loaded.options.denormals);
  Guard guard(limits, *account, progress);
  std::vector<AnyValue> fed;
  for (const AnyValue* value : values) fed.push_back(*value);
  std::vector<AnyValue> made;
  Status status = within_memory([&]() -> Status {
    TREADLE_ASSIGN(made, reference::run_graph(*loaded.graph, fed, &guard));
    return guard.finish();
  });
  // A kernel that was told to stop leaves its results half written. The limit that was reached is the error to report.
  if (scope.stopped()) status = std::move(limits.check()).in(status.place());
  if (!status.ok()) return loaded.in_file(std::move(status));
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i]) write_over(*places[i], std::move(made[i]));
  }
  return {};
}

}  // namespace treadle::session
