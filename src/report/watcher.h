#pragma once
// Watches the slots of a run of an observed plan (SessionOptions::observed): when each was written, by which
// instruction, in which iteration, and the statistics of its contents. Listeners are told of each write.

#include <memory>
#include <vector>

#include "kernels/statistics.h"
#include "run/observer.h"
#include "run/writes.h"
#include "type/any_value.h"

namespace treadle::report {

struct Cause;  // report/causes.h

// The contents of a slot.
struct Seen {
  kernels::Statistics statistics;
  uint32_t pc = UINT32_MAX;              // the instruction that computed them; UINT32_MAX: the caller or the model
  int64_t iteration = -1;                // of the innermost loop around it
  std::shared_ptr<const Cause> cause{};  // if what is sought is in them
};

// Of a tensor of texts only the number of elements.
kernels::Statistics statistics_of(const Tensor& tensor);

class Watcher;

class Listener {
 public:
  virtual ~Listener() = default;
  // A run begins; inputs and constants have been seen.
  virtual void begin(Watcher& watcher) = 0;
  // Marks in `slots`, which is parallel to the program's, the slots whose statistics it reads.
  virtual void want(const plan::Program& program, std::vector<bool>& slots) const = 0;
  // `write` was done by instruction `pc`; `is_value`: a value of the model has now got these contents. Otherwise they
  // are on their way to one: rows of a loop that has not ended, states behind the last iteration.
  virtual Status wrote(Watcher& watcher, const run::Write& write, uint32_t pc, bool is_value) = 0;
  // The run has ended without an error; its outputs are still in their slots.
  virtual void finish(Watcher&) {}
};

class Watcher final : public run::Observer {
 public:
  explicit Watcher(std::vector<Listener*> listeners) : listeners_(std::move(listeners)) {}

  void begin(const plan::Program& program, const run::Frame& frame, const run::Loops& loops) override;
  Status ran(uint32_t pc, uint32_t next) override;
  void end() override;

  bool has_begun() const { return program_ != nullptr; }
  // Whether the last run was watched from its beginning to its end.
  bool is_complete() const { return is_complete_; }

  int64_t instructions() const { return instructions_; }  // that have run

  // --- for listeners
  const plan::Program& program() const { return *program_; }
  Seen& seen(uint32_t slot) { return seen_[slot]; }
  std::span<const uint32_t> reads(uint32_t pc) const { return writes_->reads(pc); }
  // The innermost loop around an instruction; -1: none. The back edge of a loop is in the loop.
  int loop_around(uint32_t pc) const { return loop_of_[pc]; }
  // The loops around an instruction, outermost first.
  std::vector<uint32_t> loops_around(uint32_t pc) const;
  // The current iteration of a loop, or its last one.
  int64_t iteration(uint32_t loop) const { return iterations_[loop]; }
  int64_t iteration_at(uint32_t pc) const {
    return loop_of_[pc] < 0 ? -1 : iterations_[static_cast<size_t>(loop_of_[pc])];
  }
  // Sets `iterations` to those of the loops around an instruction, the outermost first. Entries beyond these loops
  // stay; loops beyond these entries are left out.
  void iterations_around(uint32_t pc, std::span<int64_t> iterations) const;
  // The address of a slot's elements if it holds a tensor of numbers, and their number; otherwise null.
  struct Elements {
    const void* data = nullptr;
    ElementType type = ElementType::kUndefined;
    Dims dims;
    int64_t count = 0;
  };
  Elements elements_of(uint32_t slot) const;
  // A value that shares no memory with the run. `type`: its own, with other sizes than the slot's if it is a reshaped
  // one.
  Result<AnyValue> copy_of(uint32_t slot, const Type& type) const;
  kernels::Statistics statistics_of(uint32_t slot) const;

 private:
  void prepare();  // for another program than the last
  Status computed_all(std::span<const run::Write> writes, uint32_t pc);
  void find_wanted();
  Status tell(const run::Write& write, uint32_t pc, bool is_value);
  kernels::Statistics computed(const run::Write& write, uint32_t pc) const;
  Status wrote(uint32_t pc, uint32_t next);
  Status write_rows(std::span<const run::Write> writes, uint32_t pc);
  Status write_values(std::span<const run::Write> writes, uint32_t pc, uint32_t next);

  std::vector<Listener*> listeners_;
  const plan::Program* program_ = nullptr;
  const run::Frame* frame_ = nullptr;
  const run::Loops* loops_ = nullptr;
  std::unique_ptr<run::Writes> writes_;
  std::vector<int> loop_of_;         // by instruction
  std::vector<int> parent_;          // by loop: the loop around it, or -1
  std::vector<size_t> depth_;        // by loop: how many loops are around it
  std::vector<int64_t> counts_;      // by slot of planned memory: its elements
  std::vector<bool> only_computes_;  // by instruction: it takes no contents of other slots
  std::vector<bool> wanted_;         // by slot: statistics
  std::vector<int64_t> iterations_;  // by loop
  std::vector<Seen> seen_;           // by slot
  std::vector<Seen> taken_;          // scratch
  int64_t instructions_ = 0;
  bool is_complete_ = false;
};

}  // namespace treadle::report
