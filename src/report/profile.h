#pragma once
// What a profile (run/profile.h) says to people, all of it of the median run.

#include <string>
#include <vector>

#include "run/profile.h"

namespace treadle::report {

struct ProfileNode {
  std::string node, op;  // of a group: its last node, and all operators joined by "+"; glue: the loop, or empty
  std::string loop;      // the innermost one around it; empty outside of loops
  bool is_glue = false;  // copies and jumps around nodes
  int64_t count = 0;
  double ns = 0;  // together
};

// Those that took longest first.
std::vector<ProfileNode> nodes_of(const run::Profile& profile);

std::string to_text(const run::Profile& profile);
std::string to_json(const run::Profile& profile);
// Chrome's trace events, which Perfetto shows: loops hold iterations, iterations hold nodes.
std::string to_trace(const run::Profile& profile);

}  // namespace treadle::report
