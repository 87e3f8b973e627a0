#pragma once
// What each node took over the runs of a profile: its median, and how far the runs lie apart. A time that something
// else on the machine interrupted is left out, and counted.

#include <string>
#include <vector>

#include "run/profile.h"

namespace treadle::report {

struct NodeTime {
  std::string node, op;  // of a group: its last node, and all operators joined by "+"; glue: the loop, or empty
  std::string loop;      // the innermost one around it; empty outside of loops
  bool is_glue = false;  // copies and jumps around nodes
  int64_t count = 0;     // of one run
  double ns = 0;         // together, in the median run
  double least_ns = 0, most_ns = 0;
};

struct ProfileTimes {
  std::vector<NodeTime> nodes;            // those that took longest first
  double total_ns = 0;                    // of all nodes
  double fastest_ns = 0, slowest_ns = 0;  // of whole runs
  size_t runs = 0;
  size_t interrupted_runs = 0;               // in which at least one node was interrupted
  double interrupted_ns = 0;                 // the longest interruption
  const run::Profile::Run* shown = nullptr;  // whose trace is shown: the median of the runs that nothing interrupted
};

// Whether instructions of this kind run nodes: all others are copies, jumps and back edges.
bool is_timed_alone(plan::OpCode code);

// `runs`: at least one, in any order. Runs of another program than the last one's count as whole runs alone.
ProfileTimes times_of(const std::vector<const run::Profile::Run*>& runs);

}  // namespace treadle::report
