#include "plan/releases.h"

#include <algorithm>

#include "plan/nested_ranges.h"

namespace treadle::plan {

namespace {

class Releases {
 public:
  explicit Releases(Program& program)
      : p_(program),
        end_(static_cast<uint32_t>(p_.code.size() - 1)),
        loops_(bodies(p_), p_.code.size()),
        last_(p_.slots.size()),
        is_input_(p_.slots.size()) {
    for (size_t s = 0; s < p_.slots.size(); ++s) last_[s] = p_.slots[s].last;
  }

  void place() {
    extend_lifetimes();
    for (Loop& loop : p_.loops) loop.in_loop = outermost_loop(loop.first) != nullptr;
    for (uint32_t at = 0; at < end_; ++at) {
      if (is_dynamic(p_.code[at].code)) p_.dynamic[p_.code[at].index].in_loop = outermost_loop(at) != nullptr;
    }
    std::vector<std::vector<uint32_t>*> takers(p_.code.size());  // by instruction: the list for handles that die there
    for (uint32_t at = end_; at-- > 0;) {
      takers[at] = list_of(p_.code[at]);
      if (!takers[at]) takers[at] = takers[at + 1];
    }
    for (uint32_t s = 1; s < p_.slots.size(); ++s) {
      if (p_.slots[s].storage != Storage::kHandle || p_.slots[s].first == UINT32_MAX || last_[s] >= end_) continue;
      std::vector<uint32_t>* taker = takers[last_[s]];
      if (taker) taker->push_back(s);
      Loop* outermost = is_input_[s] ? nullptr : outermost_loop(p_.slots[s].first);
      if (outermost && taker != &outermost->releases && last_[s] < outermost->last) outermost->releases.push_back(s);
    }
  }

 private:
  // Extends lifetimes beyond those of planned memory: outputs, inputs (live before the first instruction) and branches.
  void extend_lifetimes() {
    for (const Output& output : p_.outputs) last_[output.slot] = end_;
    for (const Input& input : p_.inputs) {
      is_input_[input.slot] = true;
      uint32_t& last = last_[input.slot];
      if (const Loop* loop = outermost_loop(last)) last = std::max(last, loop->last);
    }
    const NestedRanges branches(choices(), p_.code.size());
    for (size_t s = 0; s < p_.slots.size(); ++s) {
      const int64_t made = is_input_[s] ? -1 : int64_t{p_.slots[s].first};
      if (const NestedRanges::Range* choice = branches.outermost(last_[s], made)) last_[s] = choice->end;
    }
  }

  // The ranges of branches: from each branch to the instruction before the end of both sides.
  std::vector<NestedRanges::Range> choices() const {
    std::vector<NestedRanges::Range> out;
    for (uint32_t at = 0; at < end_; ++at) {
      if (p_.code[at].code == OpCode::kBranchUnless) out.push_back({at, p_.code[p_.code[at].target - 1].target});
    }
    return out;
  }

  // The bodies of all loops in order (outer ones come first).
  static std::vector<NestedRanges::Range> bodies(const Program& program) {
    std::vector<NestedRanges::Range> out;
    for (const Loop& loop : program.loops) out.push_back({loop.first + 1, loop.last});
    return out;
  }

  std::vector<uint32_t>* list_of(const Instruction& in) {
    if (is_dynamic(in.code)) return &p_.dynamic[in.index].releases;
    return in.code == OpCode::kLoopEnd ? &p_.loops[in.index].releases : nullptr;
  }

  // The outermost loop whose body contains an instruction; null if there is none.
  Loop* outermost_loop(uint32_t at) {
    const NestedRanges::Range* body = loops_.outermost(at);
    return body ? &p_.loops[loops_.index(*body)] : nullptr;
  }

  Program& p_;
  const uint32_t end_;
  const NestedRanges loops_;
  std::vector<uint32_t> last_;
  std::vector<bool> is_input_;
};

}  // namespace

void place_releases(Program& program) {
  Releases(program).place();
}

}  // namespace treadle::plan
