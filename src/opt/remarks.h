#pragma once
// What rewriting did to loops, written down by each pass while it does it; `treadle explain` shows it.

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace treadle::opt {

enum class Change : uint8_t {
  kLowered,       // the loop is what an operator stands for (`op`: LSTM)
  kFolded,        // a node that depended on constants alone has become one
  kDecided,       // an If whose condition is known: the nodes of that branch took its place
  kElided,        // its result was its operand
  kMerged,        // another node computes the same
  kDropped,       // nobody needs what it gives
  kHoisted,       // the same in every trip: runs once, before the loop
  kBatched,       // depends on scan inputs alone: runs before the loop, for all trips at once
  kScanned,       // picked a row by the trip counter, or a loop that only counts: reads a scan input instead
  kSunk,          // only fed a scan output: runs behind the loop, for all trips at once
  kFused,         // has become part of another node (`into`)
  kSelected,      // an If with cheap branches: both run, and one result is taken
  kMapped,        // a loop that carries nothing: its body runs for all trips at once
  kGuarded,       // a loop whose trips and indices are looked at before it: a Scan if they are counted and inside
  kReassociated,  // a linear recurrence: all trips at once, as a scan over time in blocks
  kRestated,      // simpler nodes compute the same (`into`: which)
  kUnrolled,      // a loop that runs once: its body has taken its place
  kNarrowed,      // its weights are kept in float16 (`into`: how far off they are)
  kUnstacked,     // a state stacked of parts (`into`: which): each part is a state of its own
  kRegrouped,     // the last node of a chain of one operation whose operands are put together in another order
};
inline constexpr int kChangeCount = 20;

std::string_view name(Change change);      // "hoisted"
std::string_view sentence(Change change);  // "runs once, before the loop"

struct Remark {
  Change change{};
  std::string loop;  // name of the innermost loop's node
  std::string node;  // what was changed: name and operator
  std::string op;
  std::string into = {};  // what it has become, or a part of; may be empty
};

class Remarks {
 public:
  const std::vector<Remark>& entries() const { return entries_; }
  void append(const Remarks& other) { entries_.insert(entries_.end(), other.entries_.begin(), other.entries_.end()); }
  void add(Remark entry) { entries_.push_back(std::move(entry)); }

 private:
  std::vector<Remark> entries_;
};

// The innermost loop around what stands in `region`; null outside of loops.
const ir::Node* loop_around(const ir::Region& region);

// Of a node that stands, or stood, in `region`. Nothing is written where there is no remarks, or no loop around.
void note(Remarks* remarks, Change change, const ir::Region& region, const ir::Node& node, std::string_view into = {});
// Of a node that has left the body of `loop`, or has become it.
void note_of_loop(Remarks* remarks, Change change, const ir::Node& loop, const ir::NodeInfo& node,
                  std::string_view into = {});

}  // namespace treadle::opt
