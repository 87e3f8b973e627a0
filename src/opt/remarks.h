#pragma once
// A list of the changes that passes make to loops. Each pass adds its own; `treadle explain` prints them.

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace treadle::opt {

enum class Change : uint8_t {
  kLowered,   // the loop stands for an operator (`op`: LSTM)
  kFolded,    // a node that depended on constants alone became one
  kDecided,   // the condition of an If is known: the nodes of one branch replaced the If
  kElided,    // its result equalled its operand
  kMerged,    // another node computes the same
  kDropped,   // its results are unused
  kHoisted,   // the same in every iteration: runs once, before the loop
  kBatched,   // depends on scan inputs alone: runs before the loop, for all iterations at once
  kScanned,   // picked a row by the trip counter, or a loop that only counts: reads a scan input instead
  kSunk,      // only scan outputs needed it: runs behind the loop, for all iterations at once
  kFused,     // became part of another node (`into`)
  kSelected,  // an If with cheap branches: both run, and one result is taken
  kMapped,    // a loop that carries nothing: its body runs for all iterations at once
  kGuarded,   // an If in front of the loop checks iterations and indices; the loop is a Scan if they are fit for one
  kReassociated,  // a linear recurrence: all iterations at once, as a scan over time in blocks
  kRestated,      // simpler nodes compute the same (`into`: their operators)
  kUnrolled,      // a loop that runs once: its body replaced it
  kNarrowed,      // its weights are kept in float16 (`into`: their error)
  kUnstacked,     // a state stacked of parts (`into`: its name): each part is a state of its own
  kRegrouped,     // the last node of a chain of one operation whose operands are combined in another order
};
inline constexpr int kChangeCount = 20;

std::string_view name(Change change);      // "hoisted"
std::string_view sentence(Change change);  // "runs once, before the loop"

struct Remark {
  Change change{};
  std::string loop;  // name of the innermost loop's node
  std::string node;  // the changed node: name and operator
  std::string op;
  std::string into = {};  // the node that it became, or became a part of; may be empty
};

class Remarks {
 public:
  const std::vector<Remark>& entries() const { return entries_; }
  void append(const Remarks& other) { entries_.insert(entries_.end(), other.entries_.begin(), other.entries_.end()); }
  void add(Remark entry) { entries_.push_back(std::move(entry)); }

 private:
  std::vector<Remark> entries_;
};

// The innermost loop around `region`; null outside of loops.
const ir::Node* loop_around(const ir::Region& region);

// Adds a remark about a node that is, or was, in `region`. Does nothing without remarks, or outside of loops.
void note(Remarks* remarks, Change change, const ir::Region& region, const ir::Node& node, std::string_view into = {});
// Adds a remark about a node that left the body of `loop`, or replaced the loop.
void note_of_loop(Remarks* remarks, Change change, const ir::Node& loop, const ir::NodeInfo& node,
                  std::string_view into = {});

}  // namespace treadle::opt
