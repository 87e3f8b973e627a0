#pragma once
// Ways to make a model smaller. A step has a list of items in a model; it takes some of them out, or makes them
// smaller. A step does not ask whether the result still fails. Results need not load, but most should.

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "reduce/candidate.h"

namespace treadle::reduce {

class Step {
 public:
  virtual ~Step() = default;
  // In the plural, for people: "nodes".
  virtual const char* name() const = 0;
  // Different ways to do without an item; each is tried.
  virtual size_t ways() const { return 1; }
  // The items that `model` has.
  virtual size_t count(wire::ModelProto& model) const = 0;
  // Changes items [first, last) in one way. False if that cannot be done.
  virtual bool apply(Candidate& candidate, size_t first, size_t last, size_t way) const = 0;
  // Whether it takes out everything from an item on, so that bisection finds the first one that can go.
  virtual bool is_tail() const { return false; }
};

// All steps, those that take out most first.
std::span<const std::unique_ptr<const Step>> steps();

// Made in the files of their subjects.
using Steps = std::vector<std::unique_ptr<const Step>>;
void add_node_steps(Steps& steps);       // outputs, inputs, the tail of the graph, nodes
void add_body_steps(Steps& steps);       // calls of functions, branches, loops: their contents in their place
void add_state_steps(Steps& steps);      // states, scanned inputs and outputs, results of branches
void add_argument_steps(Steps& steps);   // arguments and attributes of nodes
void add_iteration_steps(Steps& steps);  // trip counts
void add_size_steps(Steps& steps);       // sizes of axes
void add_constant_steps(Steps& steps);   // contents of tensors
void add_text_steps(Steps& steps);       // names, descriptions, and what nobody reads

}  // namespace treadle::reduce
