// Best fit, in the order in which slots become live.
#include "plan/memory.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <utility>
#include <vector>

#include "base/stop.h"
#include "plan/nested_ranges.h"
#include "plan/roles.h"

namespace treadle::plan {

namespace {

constexpr size_t kArenaAlignment = 64;

// The unused blocks of the arena; no two are adjacent.
class FreeBlocks {
 public:
  // Takes `size` bytes from the smallest block that is large enough, the first one of several. Returns SIZE_MAX if
  // there is none.
  size_t take(size_t size) {
    const auto best = by_size_.lower_bound({size, 0});
    if (best == by_size_.end()) return SIZE_MAX;
    const auto [have, offset] = *best;
    remove(sizes_.find(offset));
    if (have > size) add(offset + size, have - size);
    return offset;
  }

  void release(size_t offset, size_t size) {
    TREADLE_ASSERT(!sizes_.contains(offset));
    const auto next = sizes_.lower_bound(offset);
    const auto before = next == sizes_.begin() ? sizes_.end() : std::prev(next);
    const bool joins_next = next != sizes_.end() && offset + size == next->first;
    const bool joins_before = before != sizes_.end() && before->first + before->second == offset;
    if (joins_next) {
      size += next->second;
      remove(next);
    }
    if (joins_before) {
      offset = before->first;
      size += before->second;
      remove(before);
    }
    add(offset, size);
  }

 private:
  using Sizes = std::map<size_t, size_t>;

  void add(size_t offset, size_t size) {
    sizes_.emplace(offset, size);
    by_size_.emplace(size, offset);
  }

  void remove(Sizes::iterator block) {
    by_size_.erase({block->second, block->first});
    sizes_.erase(block);
  }

  Sizes sizes_;  // size of the block at each offset
  std::set<std::pair<size_t, size_t>> by_size_;
};

class Placement {
  struct Busy {     // a used block; the block that becomes free first comes first
    uint32_t last;  // the last instruction that uses it
    size_t offset, size;
    auto operator<=>(const Busy&) const = default;
  };

 public:
  explicit Placement(Program& program) : p_(program) {}

  void place() {
    find_lifetimes();
    std::vector<std::pair<uint32_t, uint32_t>> order;  // first instruction, slot
    for (uint32_t s = 0; s < p_.slots.size(); ++s) {
      const Slot& slot = p_.slots[s];
      if (slot.storage == Storage::kArena && slot.first != UINT32_MAX) order.emplace_back(slot.first, s);
    }
    std::sort(order.begin(), order.end());
    FreeBlocks free_blocks;
    std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy;
    for (const auto& [first, s] : order) {
      if (stop_requested()) return;
      Slot& slot = p_.slots[s];
      while (!busy.empty() && busy.top().last < first) {
        free_blocks.release(busy.top().offset, busy.top().size);
        busy.pop();
      }
      const size_t size = std::max((slot.bytes + kArenaAlignment - 1) / kArenaAlignment, size_t{1}) * kArenaAlignment;
      slot.offset = free_blocks.take(size);
      if (slot.offset == SIZE_MAX) slot.offset = std::exchange(p_.arena_bytes, p_.arena_bytes + size);
      busy.push({slot.last, slot.offset, size});
    }
  }

 private:
  void live(uint32_t s, uint32_t at) {
    Slot& slot = p_.slots[s];
    slot.first = std::min(slot.first, at);
    slot.last = std::max(slot.last, at);
  }

  void live(const SlotUse& use, uint32_t at) {
    live(use.slot, at);
    if (use.role != Role::kKeeps) return;
    live(use.slot, 0);
    live(use.slot, static_cast<uint32_t>(p_.code.size() - 1));
  }

  void find_lifetimes() {
    for (uint32_t at = 0; at < p_.code.size(); ++at) {
      if (info(p_.code[at].code).index == IndexOf::kLoop) continue;
      for_each_slot(p_, at, [&](const SlotUse& use) { live(use, at); });
    }
    for (const Loop& loop : p_.loops) {
      for_each_slot(loop, [&](const SlotUse& use) { live(use, loop); });
      for_each_slot(loop.schedule.strips, [&](const SlotUse& use) { live(use, loop); });
    }
    extend_to_ends_of_loops();
    extend_to_pipelines();
    // Memory into which rows point stays live as long as the rows are used. Rows of rows are numbered after the rows of
    // which they are parts.
    for (size_t i = p_.rows.size(); i-- > 0;) {
      Slot& from = p_.slots[p_.rows[i].from];
      from.last = std::max(from.last, p_.slots[p_.rows[i].to].last);
    }
  }

  void live(const SlotUse& use, const Loop& loop) {
    const bool is_pointed_into = use.role == Role::kReadsRows || use.role == Role::kWritesRows;
    const bool is_whole = use.when == When::kEachIteration || is_pointed_into;
    if (is_whole || use.when == When::kBegin) live(use.slot, loop.first);
    if (use.when == When::kBackEdge) live(use.slot, loop.last - 1);
    if (is_whole || use.when == When::kEnd) live(use.slot, loop.last);
  }

  // Extends slots that were live before a loop to the end of the loop.
  void extend_to_ends_of_loops() {
    std::vector<NestedRanges::Range> ranges;  // inner loops follow the loops around them
    for (const Loop& loop : p_.loops) ranges.push_back({loop.first, loop.last});
    const NestedRanges loops(ranges, p_.code.size());
    for (Slot& s : p_.slots) {
      if (const NestedRanges::Range* loop = loops.outermost(s.last, s.first)) s.last = loop->end;
    }
  }

  // The instructions of a pipeline run in any order, so a slot that is live anywhere in it is live throughout.
  void extend_to_pipelines() {
    std::vector<NestedRanges::Range> ranges;
    for (const Pipeline& pipeline : p_.pipelines) ranges.push_back({pipeline.first, pipeline.last + 1});
    const NestedRanges pipelines(ranges, p_.code.size());
    for (Slot& s : p_.slots) {
      if (s.first == UINT32_MAX) continue;
      if (const NestedRanges::Range* at_begin = pipelines.outermost(s.first)) s.first = at_begin->begin;
      if (const NestedRanges::Range* at_end = pipelines.outermost(s.last)) s.last = at_end->end - 1;
    }
  }

  Program& p_;
};

}  // namespace

void place_in_arena(Program& program) {
  Placement(program).place();
}

}  // namespace treadle::plan
