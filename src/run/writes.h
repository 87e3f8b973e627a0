#pragma once
// Which slots each instruction of a program writes, and where their contents come from: for observers of a run, whose
// instructions run one by one (run/observer.h).

#include <cstdint>
#include <span>
#include <vector>

#include "plan/program.h"

namespace treadle::run {

struct Write {
  enum class How : uint8_t {
    kComputes,  // contents of its own, made of what the instruction reads, or of slot `from` if that is given
    kTakes,     // the contents of slot `from`
    kAdds,      // a row more, which has the contents of slot `from`
    kEmpties,   // rows of a loop that begins: there are none yet
  };
  uint32_t slot = plan::kNoSlot;
  How how = How::kComputes;
  uint32_t from = plan::kNoSlot;
  uint32_t output = 0;  // kComputes: which output of the instruction's node
};

class Writes {
 public:
  explicit Writes(const plan::Program& program);

  // What instruction `pc` has written when `next` is the one to run now. All slots `from` are meant as they were before
  // the first of these writes.
  std::span<const Write> of(uint32_t pc, uint32_t next) const {
    return enters(pc, next) ? by_pc_[pc].entering : by_pc_[pc].writes;
  }
  // The slots that instruction `pc` reads to compute its outputs, in the order of the node's inputs.
  std::span<const uint32_t> reads(uint32_t pc) const { return by_pc_[pc].reads; }
  // Whether an iteration of the loop of `pc` begins with `next`.
  bool enters(uint32_t pc, uint32_t next) const { return by_pc_[pc].body == next && next != 0; }

 private:
  struct Instruction {
    std::vector<Write> writes;
    std::vector<Write> entering;  // the writes, if an iteration begins
    std::vector<uint32_t> reads;
    uint32_t body = 0;  // the first instruction of the body, of a loop that the instruction begins or repeats; else 0
  };
  void add_loop(const plan::Loop& loop);

  std::vector<Instruction> by_pc_;
};

}  // namespace treadle::run
