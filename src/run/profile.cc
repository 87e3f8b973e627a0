#include "run/profile.h"

#include <algorithm>

#include "run/frame.h"
#include "run/memory.h"

namespace treadle::run {

std::vector<int> innermost_loops(const plan::Program& program) {
  std::vector<int> loops(program.code.size(), -1);
  // Outer loops have smaller numbers, so inner ones overwrite them. kLoopBegin and kLoopNext belong to the code around
  // a loop.
  for (size_t i = 0; i < program.loops.size(); ++i) {
    const plan::Loop& loop = program.loops[i];
    for (uint32_t pc = loop.first + 1; pc < loop.last; ++pc) loops[pc] = static_cast<int>(i);
  }
  return loops;
}

Profile::Profile(size_t runs) {
  constexpr size_t kMaxEvents = size_t{1} << 20, kMaxEventsTogether = size_t{1} << 22;
  max_events_ = std::min(kMaxEvents, kMaxEventsTogether / std::max<size_t>(runs, 1));
  constexpr int kLooks = 64;
  const int64_t begin = clock_ns();
  for (int i = 0; i < kLooks; ++i) clock_ns();
  clock_cost_ns_ = (clock_ns() - begin) / kLooks;
}

void Profile::begin(std::shared_ptr<const plan::Program> program, const RunMemory& memory, const Frame& frame) {
  loop_of_ = innermost_loops(*program);
  memory_ = &memory;
  frame_ = &frame;
  open_held_ = memory.account()->live();
  peak_ = memory.peak();
  Run& run = runs_.emplace_back();
  run.sums.resize(program->code.size());
  run.value_bytes.resize(program->slots.size());
  run.program = std::move(program);
  open_ = kNothing;
}

void Profile::close(int64_t now) {
  if (open_ == kNothing) return;
  const int64_t ns = std::max<int64_t>(now - open_ns_ - clock_cost_ns_, 0);
  Run& run = runs_.back();
  Sum& sum = run.sums[open_];
  ++sum.count;
  sum.ns += static_cast<double>(ns);
  run.total_ns += static_cast<double>(ns);
  if (run.events.size() < max_events_) {
    run.events.push_back({open_ns_, ns, open_iteration_, open_});
  } else {
    ++run.left_out;
  }
  look_at_memory();
}

namespace {

// What a value takes by itself. Strings count as their places, not their letters.
size_t bytes_of(const AnyValue& value) {
  if (value.is_tensor()) return value.tensor().byte_size();
  if (value.kind() != AnyValue::Kind::kSequence) return 0;
  constexpr size_t kLookedAt = 4096;  // elements; the others count like these
  const auto elements = value.sequence().elements();
  size_t bytes = 0;
  for (const AnyValue& element : elements.first(std::min(elements.size(), kLookedAt))) bytes += bytes_of(element);
  return elements.size() <= kLookedAt ? bytes : bytes / kLookedAt * elements.size();
}

}  // namespace

void Profile::look_at_memory() {
  Run& run = runs_.back();
  const plan::Instruction& in = run.program->code[open_];
  const size_t held = memory_->account()->live(), peak = memory_->peak();
  size_t& most = run.sums[open_].held;
  most = std::max({most, open_held_, held, peak > peak_ ? peak : 0});
  open_held_ = held;
  peak_ = peak;
  const auto look = [&](uint32_t s) {
    if (s == plan::kNoSlot || !frame_->is_handle(s)) return;
    run.value_bytes[s] = std::max(run.value_bytes[s], bytes_of(frame_->handle(s)));
  };
  if (plan::is_dynamic(in.code)) {
    for (const uint32_t s : run.program->dynamic[in.index].outputs) look(s);
  } else if (in.code == plan::OpCode::kLoopEnd) {
    for (const plan::LoopState& state : run.program->loops[in.index].states) look(state.final);
    for (const plan::ScanOutput& scan : run.program->loops[in.index].scan_outputs) look(scan.whole);
  }
}

void Profile::end() {
  close(clock_ns());
  open_ = kNothing;
  memory_ = nullptr;
  frame_ = nullptr;
}

std::vector<const Profile::Run*> Profile::runs() const {
  std::vector<const Run*> runs;
  for (const Run& run : runs_) runs.push_back(&run);
  return runs;
}

}  // namespace treadle::run
