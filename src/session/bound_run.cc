#include "session/bound_run.h"

#include "run/realtime.h"
#include "session/loaded.h"
#include "session/plan_cache.h"

namespace treadle::session {

std::string BoundRun::refusal(const Plan* plan, std::span<const uint8_t> varies) {
  if (!plan) return "the reference interpreter runs the model";
  if (!run::can_bind(*plan->planned().program)) return run::asks_for_memory(*plan->planned().program);
  if (!plan->serves_any_contents(varies)) return "the contents of an input decide a branch or a size";
  return {};
}

Result<std::unique_ptr<BoundRun>> BoundRun::make(const Plan& plan, const Loaded& loaded, RunCounts& counts,
                                                 const RunOptions& options) {
  std::unique_ptr<BoundRun> made(new BoundRun);
  made->plan_ = &plan;
  made->loaded_ = &loaded;
  made->counts_ = &counts;
  made->options_ = options;
  made->is_brief_ = plan.is_brief();
  made->reads_files_ = !loaded.files.is_empty();
  made->context_ = plan.new_context();
  TREADLE_TRY(made->context_->bind(options));
  return made;
}

bool BoundRun::takes(size_t input, const TensorKind& kind) const {
  const InputSignature& planned = plan_->signature().inputs[input];
  return planned.element == kind.type && planned.dims == kind.dims;
}

TensorKind BoundRun::kind_of(size_t output) const {
  const Type& type = plan_->planned().program->outputs[output].type;
  return {type.element, known_dims(type.shape)};
}

Status BoundRun::keep_others(std::span<const uint8_t> is_taken) {
  for (size_t i = 0; i < is_taken.size(); ++i) {
    if (is_taken[i]) continue;
    TensorKind kind = kind_of(i);
    TREADLE_ASSIGN(Tensor memory, Tensor::allocate(kind.type, std::move(kind.dims)));
    write_to(i, memory.mutable_raw());
    others_.push_back(std::move(memory));
  }
  return {};
}

// Asking the system whether a file has changed would take longer than a small model; memory of a file that is missing
// is noticed all the same.
Status BoundRun::checked(Status status) const {
  return loaded_->files.checked_memory(loaded_->in_file(std::move(status)));
}

}  // namespace treadle::session
