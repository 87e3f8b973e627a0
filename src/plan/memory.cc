// Best fit, in the order in which slots come to life.
#include "plan/memory.h"

#include <algorithm>
#include <map>

#include "base/stop.h"
#include "plan/roles.h"

namespace treadle::plan {

namespace {

constexpr size_t kArenaAlignment = 64;

class Placement {
 public:
  explicit Placement(Program& program) : p_(program) {}

  void place() {
    find_lifetimes();
    std::vector<uint32_t> order;
    for (uint32_t s = 0; s < p_.slots.size(); ++s) {
      if (p_.slots[s].storage == Storage::kArena && p_.slots[s].first != UINT32_MAX) order.push_back(s);
    }
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return std::pair(p_.slots[a].first, a) < std::pair(p_.slots[b].first, b);
    });
    std::map<size_t, size_t> free_blocks;                     // offset -> size
    std::multimap<uint32_t, std::pair<size_t, size_t>> busy;  // last instruction -> block
    for (uint32_t s : order) {
      if (stop_requested()) return;
      Slot& slot = p_.slots[s];
      while (!busy.empty() && busy.begin()->first < slot.first) {
        release(free_blocks, busy.begin()->second);
        busy.erase(busy.begin());
      }
      const size_t size = std::max((slot.bytes + kArenaAlignment - 1) / kArenaAlignment, size_t{1}) * kArenaAlignment;
      slot.offset = take(free_blocks, size);
      busy.emplace(slot.last, std::pair(slot.offset, size));
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
      for_each_slot(loop.schedule.blocks, [&](const SlotUse& use) { live(use, loop); });
    }
    // Inner loops come after the loops around them; from the inside out, what was there before a loop outlives it.
    for (size_t i = p_.loops.size(); i-- > 0;) {
      if (stop_requested()) return;
      for (Slot& s : p_.slots) {
        if (s.first < p_.loops[i].first && s.last >= p_.loops[i].first && s.last < p_.loops[i].last) {
          s.last = p_.loops[i].last;
        }
      }
    }
    for (const Pipeline& pipeline : p_.pipelines) extend_lifetimes(pipeline);
    // What rows point into stays as long as they are used; rows of rows come after the rows they are taken of.
    for (size_t i = p_.rows.size(); i-- > 0;) {
      Slot& from = p_.slots[p_.rows[i].from];
      from.last = std::max(from.last, p_.slots[p_.rows[i].to].last);
    }
  }

  void live(const SlotUse& use, const Loop& loop) {
    const bool is_pointed_into = use.role == Role::kReadsRows || use.role == Role::kWritesRows;
    const bool is_whole = use.when == When::kEachTrip || is_pointed_into;
    if (is_whole || use.when == When::kBegin) live(use.slot, loop.first);
    if (use.when == When::kBackEdge) live(use.slot, loop.last - 1);
    if (is_whole || use.when == When::kEnd) live(use.slot, loop.last);
  }

  // Its instructions run in any order, so what is alive somewhere in it is so all the time.
  void extend_lifetimes(const Pipeline& pipeline) {
    for (Slot& s : p_.slots) {
      if (s.first == UINT32_MAX || s.first > pipeline.last || s.last < pipeline.first) continue;
      s.first = std::min(s.first, pipeline.first);
      s.last = std::max(s.last, pipeline.last);
    }
  }

  size_t take(std::map<size_t, size_t>& free_blocks, size_t size) {
    auto best = free_blocks.end();
    for (auto it = free_blocks.begin(); it != free_blocks.end(); ++it) {
      if (it->second >= size && (best == free_blocks.end() || it->second < best->second)) best = it;
    }
    if (best == free_blocks.end()) {
      const size_t offset = p_.arena_bytes;
      p_.arena_bytes += size;
      return offset;
    }
    const auto [offset, have] = *best;
    free_blocks.erase(best);
    if (have > size) free_blocks.emplace(offset + size, have - size);
    return offset;
  }

  static void release(std::map<size_t, size_t>& free_blocks, std::pair<size_t, size_t> block) {
    auto [it, fresh] = free_blocks.insert(block);
    TREADLE_ASSERT(fresh);
    if (auto next = std::next(it); next != free_blocks.end() && it->first + it->second == next->first) {
      it->second += next->second;
      free_blocks.erase(next);
    }
    if (it == free_blocks.begin()) return;
    if (auto before = std::prev(it); before->first + before->second == it->first) {
      before->second += it->second;
      free_blocks.erase(it);
    }
  }

  Program& p_;
};

}  // namespace

void place_in_arena(Program& program) {
  Placement(program).place();
}

}  // namespace treadle::plan
