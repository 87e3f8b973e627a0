#pragma once
// The time of each node over the runs of a profile: its median, and how far the runs differ. Times that another program
// interrupted are left out, and counted.

#include <string>
#include <vector>

#include "run/profile.h"

namespace treadle::report {

struct NodeTime {
  std::string node, op;  // of a group: its last node, and all operators joined by "+"; glue: the loop, or empty
  std::string method;    // how the kernel computes; empty: there is one way
  std::string loop;      // the innermost enclosing loop; empty outside of loops
  bool is_glue = false;  // copies and jumps between nodes
  int64_t count = 0;     // per run
  double ns = 0;         // total of the median run
  double least_ns = 0, most_ns = 0;
};

struct ProfileTimes {
  std::vector<NodeTime> nodes;            // longest time first
  double total_ns = 0;                    // of all nodes
  double fastest_ns = 0, slowest_ns = 0;  // of whole runs
  size_t runs = 0;
  size_t interrupted_runs = 0;               // runs in which at least one node was interrupted
  double interrupted_ns = 0;                 // the longest interruption
  const run::Profile::Run* shown = nullptr;  // the run whose trace is shown: the median of the uninterrupted runs
};

// Whether instructions of this kind run nodes; others are copies, jumps and back edges.
bool is_timed_alone(plan::OpCode code);

// `runs`: at least one, in any order. Of a run of another program than the last run's, only the total time counts.
ProfileTimes times_of(const std::vector<const run::Profile::Run*>& runs);

}  // namespace treadle::report
