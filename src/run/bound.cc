// Runs of a context whose memory is bound.
#include <algorithm>

#include "run/context.h"

namespace treadle::run {

using plan::Storage;

bool can_bind(const plan::Program& program) {
  return program.dynamic.empty() &&
         std::none_of(program.slots.begin(), program.slots.end(),
                      [](const plan::Slot& slot) { return slot.storage == Storage::kHandle; });
}

Status Context::bind(const RunOptions& options) {
  bound_options_ = options;
  is_plain_ = options.is_plain();
  const plan::Program& p = *program_;
  moves_slots_ = !p.loops.empty() || !p.rows.empty() || !p.pipelines.empty();
  copied_.clear();
  copied_at_.assign(p.outputs.size(), 0);
  for (size_t i = 0; i < p.outputs.size(); ++i) {
    const plan::Output& output = p.outputs[i];
    if (output.direct) continue;
    const auto count = static_cast<size_t>(known_element_count(output.type.shape));
    copied_at_[i] = static_cast<uint32_t>(copied_.size());
    copied_.push_back({output.slot, count * byte_width(output.type.element), nullptr});
  }
  TREADLE_TRY(begin_run(options, {}));
  frame_.begin();
  return {};
}

Status Context::begin_bound_run() {
  if (!is_plain_) {
    TREADLE_TRY(begin_run(bound_options_, {}));
  } else {
    if (!program_->loops.empty()) loops_.begin_run();
    polls_.begin_again();
  }
  if (moves_slots_) frame_.begin();
  return {};
}

Status Context::run_bound() {
  TREADLE_TRY(begin_bound_run());
  Status status = run_program();
  if (!status.ok()) {
    loops_.abandon();
    return status;
  }
  for (const CopiedOutput& output : copied_) {
    if (output.bytes > 0) std::memcpy(output.to, frame_.address(output.slot), output.bytes);
  }
  return status;
}

}  // namespace treadle::run
