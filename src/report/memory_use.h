#pragma once
// What a recorded run held in memory while each node ran: the planned values that are live there, and values of
// run-time size. Inputs, outputs and constants are not part of it.

#include <string>
#include <vector>

#include "run/profile.h"

namespace treadle::report {

struct MemoryStep {
  std::string node, op;  // of a group: its last node, and all operators joined by "+"; copies and jumps: the loop's
  size_t planned = 0;    // bytes of the arena that are in use
  size_t held = 0;       // bytes of run-time size
};

struct HeldValue {
  std::string name;  // of the value in its body; "scratch" and "kept" memory have none
  std::string what;  // "output", "state", "scratch", ...; memory of run-time size that is no value's: "scratch and
                     // spare memory"
  std::string node;  // that makes it
  size_t bytes = 0;
  bool planned = true;  // otherwise the most bytes that it ever had
};

struct MemoryUse {
  size_t arena_bytes = 0;          // larger than what is in use at once: values fit between each other with gaps
  std::vector<MemoryStep> steps;   // nodes in the order of the program; of many that follow each other the largest one
  size_t peak = 0;                 // the step that holds most
  std::vector<HeldValue> holders;  // the largest values that are live there, the largest first
};

MemoryUse memory_use_of(const run::Profile::Run& run);
std::string to_json(const MemoryUse& use);

}  // namespace treadle::report
