#include "report/iterations.h"

#include <fmt/format.h>

#include "base/json.h"
#include "op/op_def.h"

namespace treadle::report {

using run::Iterations;
using run::LoopCount;

namespace {

// Native code does not count iterations of an inner loop of planned length: the loop always makes all of them.
bool is_planned(const plan::Loop& loop) {
  return loop.in_loop && loop.is_scan && loop.known_iterations >= 0;
}

std::string count_text(const plan::Loop& loop, const LoopCount& count) {
  if (is_planned(loop)) return fmt::format("{} iterations each time", loop.known_iterations);
  std::string all = fmt::format("{} iteration{}", count.iterations, count.iterations == 1 ? "" : "s");
  if (count.times == 1) return all;
  if (count.times == 0) return "did not run";
  const double mean = static_cast<double>(count.iterations) / static_cast<double>(count.times);
  return fmt::format("{}, {:.4g} each of {} times", all, mean, count.times);
}

bool is_idle(const plan::Loop& loop, const LoopCount& count) {
  return is_planned(loop) ? loop.known_iterations == 0 : count.iterations == 0;
}

std::string json_of(const plan::Loop& loop, const LoopCount& count, int parent) {
  JsonObject json;
  json.text("node", loop.node->name).text("op", loop.node->op->name);
  json.raw("parent", parent < 0 ? "null" : std::to_string(parent));
  if (is_planned(loop)) {
    json.integer("iterations_each_time", loop.known_iterations);
  } else {
    json.integer("times", count.times).integer("iterations", count.iterations);
  }
  return json.str();
}

// By loop: the enclosing loop, or -1.
std::vector<int> parents_of(const plan::Program& program) {
  const std::vector<int> innermost = run::innermost_loops(program);
  std::vector<int> parents;
  for (const plan::Loop& loop : program.loops) parents.push_back(innermost[loop.first]);
  return parents;
}

size_t depth_of(const std::vector<int>& parents, size_t loop) {
  size_t depth = 0;
  for (int at = parents[loop]; at >= 0; at = parents[static_cast<size_t>(at)]) ++depth;
  return depth;
}

}  // namespace

Iterations iterations_of(const run::Profile::Run& run) {
  Iterations made{.program = run.program, .loops = {}};
  // The back edge stands before the loop's end, and runs once per iteration.
  for (const plan::Loop& loop : run.program->loops) {
    made.loops.push_back({.times = run.sums[loop.first].count, .iterations = run.sums[loop.last - 1].count});
  }
  return made;
}

std::string to_text(const Iterations& iterations) {
  std::string text;
  if (!iterations.program) return text;
  const std::vector<int> parents = parents_of(*iterations.program);
  for (size_t i = 0; i < iterations.loops.size(); ++i) {
    const plan::Loop& loop = iterations.program->loops[i];
    text += fmt::format("{:{}}{} ({})  {}\n", "", 2 * depth_of(parents, i), loop.node->name.view(), loop.node->op->name,
                        count_text(loop, iterations.loops[i]));
  }
  return text;
}

std::string loops_json(const Iterations& iterations) {
  std::vector<std::string> items;
  if (!iterations.program) return json_array(items);
  const std::vector<int> parents = parents_of(*iterations.program);
  for (size_t i = 0; i < iterations.loops.size(); ++i) {
    items.push_back(json_of(iterations.program->loops[i], iterations.loops[i], parents[i]));
  }
  return json_array(items);
}

std::string to_json(const Iterations& iterations) {
  std::vector<std::string> idle;
  for (size_t i = 0; i < iterations.loops.size(); ++i) {
    const plan::Loop& loop = iterations.program->loops[i];
    if (is_idle(loop, iterations.loops[i])) idle.push_back(json_text(loop.node->name.view()));
  }
  return JsonObject().raw("loops", loops_json(iterations)).raw("idle", json_array(idle)).str();
}

}  // namespace treadle::report
