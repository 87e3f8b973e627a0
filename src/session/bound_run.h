#pragma once
// A run whose arguments are bound: names have been looked up, types and sizes checked, and the plan found, so that a
// run costs hardly more than its program. For one thread at a time.

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "run/context.h"
#include "session/session.h"

namespace treadle::session {

struct Loaded;
class Plan;

// The type and sizes for which something is bound.
struct TensorKind {
  ElementType type = ElementType::kUndefined;
  Dims dims;
  bool is_of(const Tensor& tensor) const { return tensor.type() == type && tensor.dims() == dims; }
  bool is_of(const AnyValue& value) const { return value.is_tensor() && is_of(value.tensor()); }
};

// Counters of a session (SessionCounters).
struct RunCounts {
  std::atomic<int64_t> runs{0}, last_allocations{0}, last_peak{0};
};

class BoundRun {
 public:
  // Why runs of the plan cannot be bound; empty if they can. `varies`: parallel to the inputs, whether later runs may
  // find other contents there.
  static std::string refusal(const Plan* plan, std::span<const uint8_t> varies);

  // For a run without refusal(). `loaded` and `counts` must outlive the object. Errors: kLimit.
  static Result<std::unique_ptr<BoundRun>> make(const Plan& plan, const Loaded& loaded, RunCounts& counts,
                                                const RunOptions& options);

  // Whether the plan is for an input of this type and these sizes.
  bool takes(size_t input, const TensorKind& kind) const;
  TensorKind kind_of(size_t output) const;

  // Memory of inputs and outputs in all runs to come (run::Context).
  void read_from(size_t input, const void* from) { context_->read_from(input, from); }
  void write_to(size_t output, void* to) { context_->write_to(output, to); }

  // Gives outputs memory of the object's own where `is_taken`, parallel to the outputs, is 0. Errors: kLimit.
  Status keep_others(std::span<const uint8_t> is_taken);

  // Errors: as of Session::run.
  Status run() {
    counts_->runs.fetch_add(1, std::memory_order_relaxed);
    if (options_.is_cancelled()) return error(Code::kCancelled, "the run was cancelled");
    if (!is_brief_) options_.begin_long_work();
    Status status = context_->run_bound();
    return status.ok() && !reads_files_ ? Status() : checked(std::move(status));
  }

 private:
  BoundRun() = default;
  Status checked(Status status) const;

  const Plan* plan_ = nullptr;
  const Loaded* loaded_ = nullptr;
  RunCounts* counts_ = nullptr;
  RunOptions options_;
  bool is_brief_ = true;
  bool reads_files_ = false;
  std::unique_ptr<run::Context> context_;
  std::vector<Tensor> others_;  // outputs that nothing takes
};

}  // namespace treadle::session
