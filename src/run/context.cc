// The work before and after the interpreter runs.
#include "run/context.h"

#include "base/thread_pool.h"
#include "op/place.h"
#include "run/observer.h"
#include "run/profile.h"
#include "type/write_over.h"

namespace treadle::run {

using plan::Storage;

namespace {

constexpr size_t kKeptBytes = 64 << 10;  // per unrequested output that a run writes all the same, kept for the next run

}  // namespace

Context::Context(std::shared_ptr<const plan::Program> program, std::shared_ptr<NativeLoops> native,
                 int64_t native_iteration)
    : program_(std::move(program)),
      frame_(*program_, memory_),
      polls_(*program_),
      dynamic_(*program_, frame_, memory_, polls_),
      loops_(*program_, frame_, memory_, polls_),
      runner_(*program_, frame_, polls_, loops_, dynamic_, std::move(native), native_iteration),
      pipelines_(*program_, frame_, polls_, loops_, runner_),
      unwanted_(program_->outputs.size()) {}

Status Context::begin_run(const RunOptions& options, Limits::Clock::time_point since) {
  observer_ = options.observer;
  profile_ = observer_ ? nullptr : options.profile;
  iterations_ = options.iterations;
  loops_.begin_run();
  runner_.begin_run(profile_);
  TREADLE_TRY(memory_.begin(options.memory_limit, program_->arena_bytes, frame_.arena_bytes()));
  TREADLE_TRY(frame_.need_arena());
  polls_.begin(options, since);
  return {};
}

Status Context::run(std::span<const AnyValue* const> inputs, std::span<AnyValue* const> outputs,
                    const RunOptions& options, Limits::Clock::time_point since) {
  TREADLE_TRY(begin_run(options, since));
  Status status = bind(inputs, outputs);
  if (status.ok()) status = run_program();
  if (status.ok()) status = collect(outputs);
  end_run(!status.ok());
  return status;
}

// A pooled context keeps neither the caller's tensors alive, nor large outputs that the caller did not ask for.
void Context::end_run(bool failed) {
  frame_.end();
  for (AnyValue& value : unwanted_) {
    if (value.is_tensor() && value.tensor().byte_size() > kKeptBytes) value = {};
  }
  memory_.end();
  if (!failed) return;
  loops_.abandon();
  memory_.renew_account();
}

Status Context::run_program() {
  const ThreadScope scope(program_->threads, polls_.limits().stop_check());
  const DenormalScope mode(program_->denormals);
  Status status;
  if (observer_) {
    observer_->begin(*program_, frame_, loops_);
    status = execute();
    observer_->end();
  } else if (profile_) {
    profile_->begin(program_, memory_, frame_);
    status = execute();
    profile_->end();
  } else {
    status = execute();
  }
  if (iterations_) *iterations_ = {program_, loops_.counts()};
  if (!scope.stopped()) return polls_.progress().finish(std::move(status));
  // A kernel that was told to stop leaves its results half written, and any error it reports is a consequence. The
  // limit that was reached is the error to report.
  Status reached = polls_.limits().check();
  if (reached.ok()) reached = error(Code::kCancelled, "the run was cancelled");
  return std::move(reached).in(status.place());
}

Status Context::bind_inputs(std::span<const AnyValue* const> inputs) {
  const plan::Program& p = *program_;
  for (size_t i = 0; i < p.inputs.size(); ++i) {
    const uint32_t s = p.inputs[i].slot;
    if (s == plan::kNoSlot) continue;
    if (p.slots[s].storage == Storage::kInput) {
      frame_.point(s, const_cast<void*>(inputs[i]->tensor().raw()));
    } else {
      TREADLE_TRY(frame_.set_handle(s, *inputs[i]));
    }
  }
  return {};
}

namespace {

// Whether a run may write `output` straight into the memory of `value`.
bool takes(const AnyValue& value, const plan::Output& output) {
  if (!value.is_tensor()) return false;
  const Tensor& tensor = value.tensor();
  return tensor.type() == output.type.element && tensor.dims() == output.dims && tensor.buffer() &&
         tensor.buffer()->writable();
}

}  // namespace

Status Context::bind(std::span<const AnyValue* const> inputs, std::span<AnyValue* const> outputs) {
  const plan::Program& p = *program_;
  frame_.begin();
  TREADLE_TRY(bind_inputs(inputs));
  size_t new_bytes = 0;  // of outputs that the run writes in place
  for (size_t i = 0; i < p.outputs.size(); ++i) {
    const plan::Output& output = p.outputs[i];
    if (!output.direct) continue;
    AnyValue& result = outputs[i] ? *outputs[i] : unwanted_[i];
    if (!takes(result, output)) {
      new_bytes += output.bytes;
      TREADLE_TRY(memory_.check(new_bytes, output.dims));
      TREADLE_ASSIGN(Tensor tensor, Tensor::allocate(output.type.element, output.dims));
      result = AnyValue(std::move(tensor));
    }
    frame_.point(output.slot, result.tensor().mutable_raw());
  }
  return {};
}

Status Context::collect(std::span<AnyValue* const> outputs) {
  for (size_t i = 0; i < program_->outputs.size(); ++i) {
    const plan::Output& output = program_->outputs[i];
    if (output.direct || !outputs[i]) continue;
    TREADLE_ASSIGN(AnyValue result, frame_.value_of(output.slot, output.type));
    if (result.is_tensor() && result.tensor().buffer()) result.tensor().buffer()->seal();
    write_over(*outputs[i], std::move(result));
  }
  return {};
}

// As "/loop (Loop-16) body, iteration 3: /loop:body/add (Add-14)"
Status Context::place_error(Status status, uint32_t pc) const {
  std::string place;
  const ir::Node* around = nullptr;
  const auto add = [&](const ir::Node& node, std::string_view separator) {
    if (around && (&node == around || is_part(node, *around))) return;
    place += node_place(node);
    place += separator;
  };
  for (size_t i = 0; i < program_->loops.size(); ++i) {
    const plan::Loop& loop = program_->loops[i];
    if (pc <= loop.first || pc >= loop.last || !loops_[i].active) continue;
    add(*loop.node, " ");
    place += fmt::format("body, iteration {}: ", loops_[i].iteration);
    around = loop.node;
  }
  if (const ir::Node* node = program_->node_of[pc]) add(*node, "");
  if (place.ends_with(": ")) place.resize(place.size() - 2);
  return std::move(status).in(place);
}

}  // namespace treadle::run
