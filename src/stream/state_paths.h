#pragma once
// Facts about states in a model's graph: which output an input becomes, and the sizes of a state before the first run.

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace treadle::stream {

// For each input of a graph, the outputs that hold its elements: moved, with new elements appended or written into
// them, or as the last state of a recurrence that began with it.
class StatePaths {
 public:
  explicit StatePaths(const ir::Graph& graph);

  // Whether output `output` is the successor of input `input`. An input that is only moved, or appended to another
  // input, has no successor.
  bool becomes(size_t input, size_t output) const;

 private:
  struct Source {
    bool changed = false;  // elements were added
    bool behind = false;   // it was appended to another input
  };
  using Sources = std::map<size_t, Source>;  // inputs whose elements a value holds

  void walk(const ir::Region& region);
  void visit(const ir::Node& node);
  void visit_bodies(const ir::Node& node);
  void add(const ir::Value* to, const ir::Value* from, bool changed);
  void join(const ir::Node& node, std::span<ir::Value* const> parts, bool in_order);
  bool holds(const ir::Value* v, size_t input) const;

  const ir::Graph& graph_;
  std::unordered_map<const ir::Value*, Sources> sources_;
};

// An input and the output that is its successor, by index in the graph.
struct StatePair {
  size_t input, output;
};

// How a size of a state that the model leaves open was found.
enum class FirstSize : uint8_t {
  kStated,    // the model states it
  kGiven,     // each run returns this size, for any input size
  kGrows,     // each run appends along the axis, so it begins with 0
  kOfInputs,  // the size of that name in other inputs; 1 if there is none
  kKept,      // a run returns the size that it takes, and no other input determines it: 1
  kUnknown,   // unknown: 1
};

struct FirstSizes {
  Shape shape;  // known sizes, and names to be found in other inputs
  std::vector<FirstSize> why;
};

// The initial sizes of the state of each pair.
std::vector<FirstSizes> first_sizes(const ir::Graph& graph, const std::vector<StatePair>& states);

}  // namespace treadle::stream
