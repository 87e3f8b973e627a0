#pragma once
// How inference goes into bodies: the policy of the driver behind BodyInference.
//
// Loop states: a body is inferred with the types its states come in with; where a state comes out with another type,
// the two are united (sizes that differ become unknown, unlike ranks drop the shape) and the body is inferred again. A
// size can only lose knowledge, once, so this ends after at most a trip per size and one for the rank.
//
// By onnx's rules a body is inferred once, its declared inputs count, and states of a Loop have no shape.

#include "infer/inference.h"

namespace treadle {

class Inference::Bodies final : public BodyInference {
 public:
  Bodies(Inference& driver, ir::Node& node) : driver_(driver), node_(node) {}

  const ir::Region* region(const char* attribute) const override { return node_.region(attribute); }
  Result<std::vector<Type>> infer(const char* attribute, std::vector<Type> inputs, size_t states) override;

 private:
  Result<std::vector<Type>> infer_as_onnx(ir::Region& body, std::vector<Type> inputs);
  void start_trip(ir::Region& body, const std::vector<Type>& inputs);
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
  std::vector<Type> hints_;  // by state
};

}  // namespace treadle
