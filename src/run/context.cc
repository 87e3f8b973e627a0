// The interpreter, and what happens before and after it.
#include "run/context.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/thread_pool.h"
#include "op/op_def.h"
#include "op/place.h"
#include "run/profile.h"

namespace treadle::run {

using plan::Slot;
using plan::Storage;

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kKeptBytes = 64 << 10;  // of an output that nobody wants, for the next run

}  // namespace

GrowBuffer::GrowBuffer(GrowBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      capacity_(std::exchange(other.capacity_, 0)),
      account_(other.account_) {}

GrowBuffer::~GrowBuffer() {
  if (capacity_ > 0) account_->subtract(capacity_);
  std::free(data_);
}

bool GrowBuffer::reserve(size_t bytes, MemoryAccount& account) {
  if (bytes <= capacity_) return true;
  // Large blocks are remapped by the allocator, not copied.
  void* grown = std::realloc(data_, bytes);
  if (!grown) return false;
  if (capacity_ > 0) account_->subtract(capacity_);
  account.add(bytes);
  account_ = &account;
  data_ = static_cast<std::byte*>(grown);
  capacity_ = bytes;
  return true;
}

void GrowBuffer::trim(size_t bytes) {
  if (bytes == 0 || bytes >= capacity_ / 2) return;
  void* trimmed = std::realloc(data_, bytes);
  if (!trimmed) return;
  account_->subtract(capacity_ - bytes);
  data_ = static_cast<std::byte*>(trimmed);
  capacity_ = bytes;
}

BufferRef GrowBuffer::take(size_t bytes) {
  if (!data_ || bytes == 0) return BufferRef::allocate(bytes);
  trim(bytes);
  BufferRef taken = BufferRef::wrap(data_, bytes, true, std::free, data_);
  taken->count_on(*account_, std::exchange(capacity_, 0));
  data_ = nullptr;
  return taken;
}

Context::Context(std::shared_ptr<const plan::Program> program, std::shared_ptr<NativeLoops> native, int64_t native_trip)
    : program_(std::move(program)), native_(std::move(native)), native_trip_(native_trip) {
  const plan::Program& p = *program_;
  slots_.resize(p.slots.size(), nullptr);
  first_slots_ = slots_;
  handles_.resize(p.slots.size());
  for (uint32_t s = 0; s < p.slots.size(); ++s) {
    const Slot& slot = p.slots[s];
    if (slot.storage == Storage::kConstant) first_slots_[s] = const_cast<void*>(slot.constant.raw());
    if (slot.storage == Storage::kHandle) handle_slots_.push_back(s);
  }
  for (const plan::DynamicNode& node : p.dynamic) {
    if (node.growth != plan::Growth::kNone) layouts_.resize(p.slots.size());
  }
  unwanted_.resize(p.outputs.size());
  caches_ = std::vector<InlineCache>(p.dynamic.size());
  loops_.resize(p.loops.size());
  for (size_t i = 0; i < p.loops.size(); ++i) loops_[i].outputs.resize(p.loops[i].scan_outputs.size());
  trials_.resize(p.loops.size());
  for (const plan::Pipeline& pipeline : p.pipelines) pipelines_.push_back(std::make_unique<PipelineRun>(pipeline));
}

Status Context::allocate_arena() {
  if (!account_->fits(program_->arena_bytes)) return account_->refusal(program_->arena_bytes, "what the plan holds");
  account_->begin(options_->memory_limit, program_->arena_bytes);
  arena_ = BufferRef::allocate(program_->arena_bytes);
  if (!arena_) return error(Code::kLimit, "no memory for an arena of {} bytes", program_->arena_bytes);
  for (uint32_t s = 0; s < program_->slots.size(); ++s) {
    const Slot& slot = program_->slots[s];
    if (slot.storage == Storage::kArena) first_slots_[s] = arena_->data() + slot.offset;
  }
  return {};
}

Context::~Context() {
  account_->subtract(scratch_bytes());
}

void Context::renew_account() {
  account_->subtract(scratch_bytes());
  account_ = MemoryAccount::make();
  account_->add(scratch_bytes());
}

Status Context::begin_run(const RunOptions& options, Limits::Clock::time_point since) {
  options_ = &options;
  budget_ = {};
  uncounted_ns_ = 0;
  allocations_ = 0;
  misplanned_ = false;
  team_loop_ = UINT32_MAX;
  if (options.memory_limit > 0 && program_->arena_bytes > options.memory_limit) {
    return error(Code::kLimit, "the memory limit of {} bytes is below what the plan needs: {} bytes",
                 options.memory_limit, program_->arena_bytes);
  }
  // Tensors of an earlier run that are still held are no longer this context's business.
  if (account_.use_count() > 1) renew_account();
  account_->begin(options.memory_limit, arena_ ? program_->arena_bytes : 0);
  account_->reset_peak();
  if (!arena_) TREADLE_TRY(allocate_arena());
  limits_.begin(options, since);
  return {};
}

Status Context::run(std::span<const AnyValue* const> inputs, std::span<AnyValue* const> outputs,
                    const RunOptions& options, Limits::Clock::time_point since) {
  TREADLE_TRY(begin_run(options, since));
  Status status = bind(inputs, outputs);
  if (status.ok()) status = run_program();
  if (status.ok()) status = collect(outputs);
  // What the caller gave must not be kept alive by a pooled context, nor much that nobody wants.
  for (const uint32_t s : handle_slots_) handles_[s] = {};
  for (StrideLayout& spread : layouts_) spread.strides.clear();
  for (AnyValue& value : unwanted_) {
    if (value.is_tensor() && value.tensor().byte_size() > kKeptBytes) value = {};
  }
  spare_.clear();
  if (!status.ok()) {
    for (LoopPosition& at : loops_) {
      const size_t count = at.outputs.size();
      at.outputs.clear();
      at.outputs.resize(count);
    }
    renew_account();
  }
  return status;
}

Status Context::run_program() {
  for (LoopPosition& at : loops_) at.active = false;
  const ThreadScope scope(program_->threads, limits_.stop_check());
  Status status;
  if (options_->profile) {
    options_->profile->begin(program_);
    status = execute();
    options_->profile->end();
  } else {
    status = execute();
  }
  if (!scope.stopped()) return status;
  // A kernel that was told to stop has left its results half written. What it says of that is no news.
  Status reached = limits_.check();
  if (reached.ok()) reached = error(Code::kCancelled, "the run was cancelled");
  return std::move(reached).in(status.place());
}

Status Context::bind_inputs(std::span<const AnyValue* const> inputs) {
  const plan::Program& p = *program_;
  for (size_t i = 0; i < p.inputs.size(); ++i) {
    const uint32_t s = p.inputs[i].slot;
    if (s == plan::kNoSlot) continue;
    if (p.slots[s].storage == Storage::kInput) {
      slots_[s] = const_cast<void*>(inputs[i]->tensor().raw());
    } else {
      TREADLE_TRY(set_handle(s, *inputs[i]));
    }
  }
  return {};
}

namespace {

// Whether a run may write its output there.
bool takes(const AnyValue& value, const plan::Output& output) {
  if (!value.is_tensor()) return false;
  const Tensor& tensor = value.tensor();
  return tensor.type() == output.type.element && tensor.dims() == output.dims && tensor.buffer() &&
         tensor.buffer()->writable();
}

}  // namespace

Status Context::bind(std::span<const AnyValue* const> inputs, std::span<AnyValue* const> outputs) {
  const plan::Program& p = *program_;
  std::copy(first_slots_.begin(), first_slots_.end(), slots_.begin());
  TREADLE_TRY(bind_inputs(inputs));
  size_t new_bytes = 0;  // of outputs that the run writes in place
  for (size_t i = 0; i < p.outputs.size(); ++i) {
    const plan::Output& output = p.outputs[i];
    if (!output.direct) continue;
    AnyValue& result = outputs[i] ? *outputs[i] : unwanted_[i];
    if (!takes(result, output)) {
      new_bytes += output.bytes;
      TREADLE_TRY(check_memory(new_bytes, output.dims));
      TREADLE_ASSIGN(Tensor tensor, Tensor::allocate(output.type.element, output.dims));
      result = AnyValue(std::move(tensor));
    }
    slots_[output.slot] = result.tensor().mutable_raw();
  }
  return {};
}

Status Context::collect(std::span<AnyValue* const> outputs) {
  for (size_t i = 0; i < program_->outputs.size(); ++i) {
    const plan::Output& output = program_->outputs[i];
    if (output.direct || !outputs[i]) continue;
    AnyValue& result = *outputs[i];
    TREADLE_ASSIGN(result, value_of(output.slot, output.type));
    if (result.is_tensor() && result.tensor().buffer()) result.tensor().buffer()->seal();
  }
  return {};
}

// "/loop (Loop-16) body, iteration 3: /loop:body/add (Add-14)"
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
    place += fmt::format("body, iteration {}: ", loops_[i].trip);
    around = loop.node;
  }
  if (const ir::Node* node = program_->node_of[pc]) add(*node, "");
  if (place.ends_with(": ")) place.resize(place.size() - 2);
  return std::move(status).in(place);
}

Status Context::poll() {
  TREADLE_TRY(limits_.check_iterations(budget_.trips));
  // A trip takes one unit at least.
  budget_.units = std::min(plan::kPollUnits, limits_.iterations_left(budget_.trips));
  if (team_loop_ != UINT32_MAX) measure_team();
  return limits_.check();
}

void Context::begin_team(uint32_t loop) {
  if (!program_->loops[loop].schedule.may_team) return;
  team_loop_ = loop;
  team_units_ = 0;
  set_team(trials_[loop].team());
}

void Context::end_team(uint32_t loop) {
  if (team_loop_ != loop) return;
  team_loop_ = UINT32_MAX;
  set_team(false);
}

void Context::measure_team() {
  const auto now = Clock::now();
  if (team_units_ > 0) {
    const double ns = std::chrono::duration<double, std::nano>(now - team_since_).count();
    set_team(trials_[team_loop_].took(ns / static_cast<double>(team_units_)));
  }
  team_since_ = now;
  team_units_ = budget_.units;
}

}  // namespace treadle::run
