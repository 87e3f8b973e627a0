#pragma once
// How inference goes into bodies: the policy of the driver behind BodyInference.
//
// Loop states: a body is inferred with the types its states come in with; where a state comes out with another type,
// the two are united (sizes that differ become unknown, unlike ranks drop the shape) and the body is inferred again. A
// size can only lose knowledge, once, so this ends after at most a trip per size and one for the rank.
//
// A state that grows is never smaller than it came in: where a body that is given at least so much hands out at least
// as much, that is known of the state, and its last element is there to be taken.
//
// By onnx's rules a body is inferred once, its declared inputs count, and states of a Loop have no shape.

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
  Reach reach_of_trips(const LoopView& loop) const;
  Result<std::vector<Type>> infer_trips(ir::Region& body, std::vector<Type> inputs, size_t states);
  Result<std::vector<Type>> infer_as_onnx(ir::Region& body, std::vector<Type> inputs);
  void start_trip(ir::Region& body, const std::vector<Type>& inputs);
  void find_least_sizes(const std::vector<Type>& initial, size_t first, size_t states);
  // False: some did not hold, and are forgotten.
  bool keep_least_sizes(const ir::Region& body, const std::vector<Type>& inputs);
  Status know_constant_states();
  void know_loop_inputs(const std::string& trip);
  Result<bool> unite_states(const ir::Region& body, std::vector<Type>& inputs, size_t states);
  // What the body's input is declared as fills in what a union of types gave up. A hint that turns out to be wrong is
  // forgotten, so the fixed point is reached.
  void take_hint(const ir::Region& body, Type& hint, const Type& in, const Type& out, Type& both) const;
  // Unknown, or named only because names are given to what is unknown.
  bool is_nameless(const ir::Region& body, const Dim& size) const;
  std::vector<Type> outputs_of(const ir::Region& body, const std::string& trip) const;

  Inference& driver_;
  ir::Node& node_;
  struct LeastSize {
    size_t input = 0, output = 0;  // of the body
    size_t axis = 0;
    int64_t least = 0;
  };
  // Whether trips were found to change it.
  static bool changes(const LeastSize& size, const std::vector<Type>& inputs);

  std::vector<Type> hints_;  // by state
  std::vector<LeastSize> least_sizes_;
};

}  // namespace treadle
