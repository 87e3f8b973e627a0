#pragma once
// How inference handles bodies; the driver's implementation of BodyInference.
//
// States of loops: a body is inferred with the types with which its states enter. If a state leaves with another type,
// the two are united (sizes that differ become unknown, different ranks drop the shape) and the body is inferred again.
// Each size and each rank can become unknown only once, so the repetition ends.
//
// Least sizes: if a state is never smaller on leaving than on entering, given that it enters with at least its initial
// size, then the initial size is a lower bound in every iteration. So its last element is known to exist.
//
// By onnx's rules a body is inferred once with the declared types of its inputs, and states of a Loop have no shape.

#include "infer/inference.h"
#include "op/loop_view.h"

namespace treadle {

class Inference::Bodies final : public BodyInference {
 public:
  Bodies(Inference& driver, ir::Node& node) : driver_(driver), node_(node) {}

  const ir::Region* region(const char* attribute) const override { return node_.region(attribute); }
  Result<std::vector<Type>> infer(const char* attribute, std::vector<Type> inputs, size_t states) override;

 private:
  // Whether a run reaches the bodies.
  Reach reach() const;
  Reach reach_of_iterations(const LoopView& loop) const;
  Result<std::vector<Type>> infer_iterations(ir::Region& body, std::vector<Type> inputs, size_t states);
  Result<std::vector<Type>> infer_as_onnx(ir::Region& body, std::vector<Type> inputs);
  void start_iteration(ir::Region& body, const std::vector<Type>& inputs);
  void find_least_sizes(const std::vector<Type>& initial, size_t first, size_t states);
  // False: some least sizes did not hold, and were dropped.
  bool keep_least_sizes(const ir::Region& body, const std::vector<Type>& inputs);
  Status share_facts_of_constant_states();
  void set_loop_input_facts(const std::string& iteration);
  Result<bool> unite_states(const ir::Region& body, std::vector<Type>& inputs, size_t states);
  // Fills sizes that unite() gave up with those of the input's declaration. A hint that turns out to be wrong is
  // dropped, so the fixed point is reached.
  void take_hint(const ir::Region& body, Type& hint, const Type& in, const Type& out, Type& both) const;
  // Whether a size is unknown, or has only a name that inference gave to an unknown size.
  bool is_nameless(const ir::Region& body, const Dim& size) const;
  std::vector<Type> outputs_of(const ir::Region& body, const std::string& iteration) const;

  Inference& driver_;
  ir::Node& node_;
  struct LeastSize {
    size_t input = 0, output = 0;  // positions among inputs and outputs of the body
    size_t axis = 0;
    int64_t least = 0;
  };
  // Whether the size is known to change between iterations.
  static bool changes(const LeastSize& size, const std::vector<Type>& inputs);

  std::vector<Type> hints_;  // by state: the declared type
  std::vector<LeastSize> least_sizes_;
};

}  // namespace treadle
