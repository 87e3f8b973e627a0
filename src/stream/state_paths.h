#pragma once
// What a model's graph says of its states: which output an input becomes, and how large a state is when nothing has
// been kept yet.

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace treadle::stream {

// For each input of a graph the outputs that hold what the input brought: moved, with something new behind it or
// written into it, or as the last state of a recurrence that began with it.
class StatePaths {
 public:
  explicit StatePaths(const ir::Graph& graph);

  // Whether output `output` is what input `input` becomes. What is merely moved becomes nothing, nor does what is
  // appended to another input.
  bool becomes(size_t input, size_t output) const;

 private:
  struct Source {
    bool changed = false;  // something was added
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

// An input and the output that is its successor, by their places in the graph.
struct StatePair {
  size_t input, output;
};

// How a state's sizes are found that the model leaves open.
enum class FirstSize : uint8_t {
  kStated,    // by the model
  kGiven,     // each run gives this size, whatever it takes
  kGrows,     // each run appends along the axis: it begins with 0
  kOfInputs,  // the size of that name in other inputs; 1 where there is none
  kKept,      // a run gives what it is given, and no other input says how much: 1
  kUnknown,   // nothing is known of it: 1
};

struct FirstSizes {
  Shape shape;  // known sizes, and names to be looked for in other inputs
  std::vector<FirstSize> why;
};

// Of each pair the sizes that the state begins with.
std::vector<FirstSizes> first_sizes(const ir::Graph& graph, const std::vector<StatePair>& states);

}  // namespace treadle::stream
