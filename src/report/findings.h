#pragma once
// The results of a search for NaN (report/causes.h) as names and numbers, and as text and JSON.

#include <optional>
#include <string>
#include <vector>

#include "report/causes.h"
#include "session/origins.h"

namespace treadle::report {

struct FoundValue {
  std::string name, label, type;  // path within the model, and its last part
  kernels::Statistics statistics;
  std::string made_by;             // "Sub /Scan_1:body/Sub_2"; empty: the caller or the model
  std::vector<std::string> loops;  // around its maker, the outermost first
  int64_t iteration = -1;          // of the innermost of them when it was made
  std::optional<double> number;    // the element from which the result's was made
};

struct FoundStep {
  std::string node, op, loop;                // `loop`: the innermost around it; empty outside of loops
  bool is_row = false;                       // it went into a row of a result of the loop `node`
  int64_t first = -1, last = -1, times = 1;  // iterations of `loop`
};

// A place where what is sought was made of values without it.
struct FoundPlace {
  enum class By : uint8_t { kNode, kInput, kConstant } by = By::kNode;
  std::string node, op;  // of a constant: the node that made it of other constants, before the run; else empty
  std::vector<std::pair<std::string, int64_t>> iterations;  // loops around it and their iterations, outermost first
  std::vector<FoundValue> inputs;
  FoundValue result;
  std::vector<int64_t> element;  // the first in the result; empty: unknown, or a scalar's
  bool has_element = false;
  double number = 0;  // of this element
  int64_t times = 1;  // how often it was made there
};

struct FoundOutput {
  std::string name;
  kernels::Statistics statistics;
  bool has_element = false;
  std::vector<int64_t> element;  // the first that is sought
  size_t place = SIZE_MAX;       // index into Findings::places; SIZE_MAX: it is not in this output
  std::vector<FoundStep> path;   // from that place to this output
  size_t left_out = 0;           // steps of the path, behind the first four
};

// The node of the first place as a model of its own (report/lone_node.h).
struct SavedNode {
  std::string folder;   // empty: nothing was saved
  std::string problem;  // why nothing was saved, or what the saved model does not do
};

struct Findings {
  std::string sought;              // "nan"
  std::vector<FoundPlace> places;  // those that reached an output first
  std::vector<FoundOutput> outputs;
  size_t reached = 0;                    // how many of the places reached an output
  int64_t values = 0, instructions = 0;  // how many values were looked at, by how many instructions
  bool is_complete = true;               // false: the run failed
  std::optional<SavedNode> saved;        // if that was asked for and something was found

  bool any() const { return !places.empty(); }
};

// `outputs`: the names of the outputs of the model.
Findings findings_of(const Finder& finder, Watcher& watcher, const session::ModelValues& model,
                     std::span<const std::string> outputs);

std::string to_text(const Findings& findings);
std::string to_json(const Findings& findings);

}  // namespace treadle::report
