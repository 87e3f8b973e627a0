#pragma once
// Where NaN (or whatever is sought) comes from: the instruction that made it of values without it, and the instructions
// through which it went on. Found in one run, in memory that does not grow with the number of iterations.

#include <map>
#include <optional>

#include "report/sought.h"
#include "report/watcher.h"

namespace treadle::report {

// What is sought appears in a value that was made of values without it.
struct Making {
  enum class By : uint8_t { kNode, kInput, kConstant };
  struct Operand {
    uint32_t slot = plan::kNoSlot;
    Seen seen;                     // without its cause
    std::optional<double> number;  // the element from which the result's was made, of elementwise operators
  };
  By by = By::kNode;
  uint32_t pc = 0;                                       // kNode
  uint32_t slot = 0;                                     // the result
  size_t number = 0;                                     // counts makings, in the order of time
  std::vector<std::pair<uint32_t, int64_t>> iterations;  // loops around it, and their iterations
  std::vector<Operand> inputs;                           // kNode: parallel to what the instruction reads
  uint32_t output = 0;                                   // kNode: the number of the result among the node's
  kernels::Statistics result;
  Dims dims;
  int64_t element = -1;  // the first that is sought, in row-major order; -1: unknown
  double value = 0;      // of this element
};

struct Step {
  uint32_t pc = 0;
  int64_t first = -1, last = -1;  // iterations of the innermost loop around it
  int64_t times = 1;
};

// How what is sought came to a value.
struct Cause {
  static constexpr size_t kFirstSteps = 4, kLastSteps = 12;
  std::shared_ptr<const Making> making;
  std::vector<Step> steps;   // the first and the last ones if there are more; none comes twice
  std::vector<Step> around;  // steps that went round to the last one, which may go round again
  size_t left_out = 0;       // steps behind the first kFirstSteps
};

class Finder final : public Listener {
 public:
  explicit Finder(Sought sought) : sought_(std::move(sought)) {}

  const Sought& sought() const { return sought_; }
  // Operands of a node that takes each element from `yes` or `no`.
  struct Choice {
    size_t condition, yes, no;
  };
  // Each place that made what is sought: how often, and the first time.
  struct Place {
    std::shared_ptr<const Making> first;
    int64_t times = 0;
  };
  const std::map<std::pair<Making::By, uint32_t>, Place>& places() const { return places_; }
  // The first element that is sought; -1: there is none, or the slot holds no tensor of numbers. `value`: the element.
  int64_t first_element(const Watcher& watcher, uint32_t slot, double& value) const;

  // The outputs of the program, when the run has ended.
  struct Output {
    kernels::Statistics statistics;
    std::shared_ptr<const Cause> cause;
    Dims dims;
    int64_t element = -1;  // the first that is sought, as in Making
  };
  const std::vector<Output>& outputs() const { return outputs_; }

  void begin(Watcher& watcher) override;
  void finish(Watcher& watcher) override;
  void want(const plan::Program& program, std::vector<bool>& slots) const override;
  Status wrote(Watcher& watcher, const run::Write& write, uint32_t pc, bool is_value) override;

 private:
  void computed(Watcher& watcher, const run::Write& write, uint32_t pc);
  const Cause* cause_among(Watcher& watcher, const run::Write& write, uint32_t pc);
  const std::optional<Choice>& choice_at(const Watcher& watcher, uint32_t pc);
  // Of a complex number the part that is sought, or the real part if neither is.
  double number_at(const Watcher::Elements& of, int64_t element) const;
  std::shared_ptr<const Cause> made(Watcher& watcher, Making making);
  Making making_of(Watcher& watcher, const run::Write& write, uint32_t pc) const;

  Sought sought_;
  size_t makings_ = 0;
  std::vector<Output> outputs_;
  std::map<std::pair<Making::By, uint32_t>, Place> places_;  // by instruction or slot
  std::map<uint32_t, std::optional<Choice>> choices_;        // by instruction, as far as they were asked for
};

}  // namespace treadle::report
