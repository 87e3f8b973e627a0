#pragma once
// Replaces a node by the contents of its body, or of the function that it calls.

#include <string_view>
#include <unordered_map>
#include <vector>

#include "reduce/candidate.h"

namespace treadle::reduce {

class InsteadOfNode {
 public:
  // Several nodes may be replaced one after the other, from the last one of the model to the first. `names`: those that
  // the model had before the first was replaced. `fresh`: the same for all of them.
  InsteadOfNode(Candidate& candidate, const Names& names, FreshNames& fresh, size_t scope, size_t node);

  // An input of the contents becomes this value from outside, this constant, or the first slice of a value along an
  // axis.
  void give(std::string_view input, std::string_view value) { other_[input] = value; }
  void give(std::string_view input, wire::TensorProto constant);
  void give_row(std::string_view input, std::string_view value, int64_t axis);
  // A result of the node becomes this output of the contents, or a tensor with it as the only slice along an axis.
  void take(std::string_view output, std::string_view result);
  void take_row(std::string_view output, std::string_view result, int64_t axis);

  // Replaces the node; call one of them once, as the last function. False if that cannot be done.
  bool put_body(wire::GraphProto& body);
  bool put_function(const wire::FunctionProto& function, const wire::NodeProto& call);

 private:
  using Others = std::unordered_map<std::string_view, std::string_view>;

  void give_names(wire::List<wire::NodeProto>& nodes, const wire::List<wire::TensorProto>& initializers);
  bool put(wire::List<wire::NodeProto>& nodes, const wire::List<wire::TensorProto>& initializers);
  std::string_view add_constant(wire::TensorProto constant);
  wire::NodeProto make_node(std::string_view op_type, std::string_view input, std::string_view output);
  void add_axes(wire::NodeProto& node, int64_t axis);

  Candidate& candidate_;
  const Names& names_;
  FreshNames& fresh_;
  const size_t scope_, node_;
  Others other_;  // names inside -> names outside
  std::vector<std::pair<std::string_view, std::string_view>> taken_;
  std::vector<wire::NodeProto> before_, behind_;
  std::vector<wire::TensorProto> constants_;
};

}  // namespace treadle::reduce
