#include "reduce/in_place.h"

#include "reduce/lists.h"
#include "reduce/tensors.h"
#include "wire/clone.h"

namespace treadle::reduce {

namespace {

using Others = std::unordered_map<std::string_view, std::string_view>;

std::string_view other(const Others& others, std::string_view name) {
  const auto found = others.find(name);
  return found == others.end() ? name : found->second;
}

void rename_uses(wire::List<wire::NodeProto>& nodes, const Others& others);

void rename_uses_in(wire::GraphProto& body, const Others& outer) {
  Others others = outer;  // without names that the body defines itself
  for (const wire::ValueInfoProto& input : body.inputs) others.erase(input.name);
  for (const wire::TensorProto& tensor : body.initializers) others.erase(tensor.name);
  for (const wire::NodeProto& node : body.nodes) {
    for (const std::string_view output : node.outputs) others.erase(output);
  }
  rename_uses(body.nodes, others);
  for (wire::ValueInfoProto& output : body.outputs) output.name = other(others, output.name);
}

void rename_uses(wire::List<wire::NodeProto>& nodes, const Others& others) {
  for (wire::NodeProto& node : nodes) {
    for (std::string_view& input : node.inputs) input = other(others, input);
    for (wire::AttributeProto& attribute : node.attributes) {
      if (attribute.g) rename_uses_in(*attribute.g, others);
      for (wire::GraphProto& body : attribute.graphs) rename_uses_in(body, others);
    }
  }
}

// Gives attributes that refer to parameters of the function what the call has for them.
void fill_in_parameters(wire::List<wire::NodeProto>& nodes, const wire::FunctionProto& function,
                        const wire::NodeProto& call, Arena& arena) {
  const auto value_of = [&](std::string_view parameter) -> const wire::AttributeProto* {
    if (const wire::AttributeProto* given = find_attribute(call, parameter)) return given;
    for (const wire::AttributeProto& with_default : function.attribute_protos) {
      if (with_default.name == parameter) return &with_default;
    }
    return nullptr;
  };
  for (wire::NodeProto& node : nodes) {
    erase_if(node.attributes, [&](wire::AttributeProto& attribute) {
      if (attribute.g) fill_in_parameters(attribute.g->nodes, function, call, arena);
      for (wire::GraphProto& body : attribute.graphs) fill_in_parameters(body.nodes, function, call, arena);
      if (attribute.ref_attr_name.empty()) return false;
      const wire::AttributeProto* value = value_of(attribute.ref_attr_name);
      if (!value) return true;
      const std::string_view name = attribute.name;
      attribute = wire::clone(*value, arena);
      attribute.name = name;
      return false;
    });
  }
}

}  // namespace

InsteadOfNode::InsteadOfNode(Candidate& candidate, const Names& names, FreshNames& fresh, size_t scope, size_t node)
    : candidate_(candidate), names_(names), fresh_(fresh), scope_(scope), node_(node) {}

void InsteadOfNode::give(std::string_view input, wire::TensorProto constant) {
  other_[input] = add_constant(constant);
}

std::string_view InsteadOfNode::add_constant(wire::TensorProto constant) {
  constant.name = fresh_.make(constant.name);
  constants_.push_back(constant);
  return constant.name;
}

wire::NodeProto InsteadOfNode::make_node(std::string_view op_type, std::string_view input, std::string_view output) {
  wire::NodeProto node;
  node.op_type = op_type;
  node.inputs.add(candidate_.arena, input);
  node.outputs.add(candidate_.arena, output);
  return node;
}

void InsteadOfNode::give_row(std::string_view input, std::string_view value, int64_t axis) {
  const int64_t first = 0;
  wire::NodeProto& slice = before_.emplace_back(make_node("Gather", value, fresh_.make(input)));
  slice.inputs.add(candidate_.arena, add_constant(int64s_of({&first, 1}, true, "first", candidate_.arena)));
  wire::AttributeProto& attribute = slice.attributes.add(candidate_.arena);
  attribute.name = "axis";
  attribute.type = wire::AttributeProto::kInt;
  attribute.i = axis;
  other_[input] = slice.outputs[0];
}

void InsteadOfNode::take(std::string_view output, std::string_view result) {
  if (!result.empty()) taken_.emplace_back(output, result);
}

void InsteadOfNode::take_row(std::string_view output, std::string_view result, int64_t axis) {
  if (result.empty()) return;
  const std::string_view row = fresh_.make(result);
  take(output, row);
  add_axes(behind_.emplace_back(make_node("Unsqueeze", row, result)), axis);
}

void InsteadOfNode::add_axes(wire::NodeProto& node, int64_t axis) {
  constexpr int64_t kAxesAreInput = 13;  // of Unsqueeze, from this version on
  if (opset_of(candidate_.model) >= kAxesAreInput) {
    node.inputs.add(candidate_.arena, add_constant(int64s_of({&axis, 1}, false, "axes", candidate_.arena)));
    return;
  }
  wire::AttributeProto& attribute = node.attributes.add(candidate_.arena);
  attribute.name = "axes";
  attribute.type = wire::AttributeProto::kInts;
  attribute.ints.add(candidate_.arena, axis);
}

bool InsteadOfNode::put_body(wire::GraphProto& body) {
  if (!body.sparse_initializers.empty()) return false;
  return put(body.nodes, body.initializers);
}

bool InsteadOfNode::put_function(const wire::FunctionProto& function, const wire::NodeProto& call) {
  wire::FunctionProto copy = wire::clone(function, candidate_.arena);  // other calls have their own
  fill_in_parameters(copy.nodes, function, call, candidate_.arena);
  // The function stays while it is called elsewhere, so that each of its names needs another one here.
  for (const wire::NodeProto& node : copy.nodes) {
    for (const std::string_view output : node.outputs) {
      if (!output.empty()) other_.emplace(output, fresh_.make(output));
    }
  }
  return put(copy.nodes, {});
}

// Results of the node keep their names; other names inside get new ones where they occur elsewhere in the model.
void InsteadOfNode::give_names(wire::List<wire::NodeProto>& nodes, const wire::List<wire::TensorProto>& initializers) {
  std::unordered_map<std::string_view, bool> is_result;  // of a node inside, and not yet given a name
  for (const wire::NodeProto& node : nodes) {
    for (const std::string_view output : node.outputs) is_result[output] = true;
  }
  for (auto& [output, result] : taken_) {
    const auto found = is_result.find(output);
    if (found != is_result.end() && found->second) {
      other_[output] = result;
      found->second = false;
      result = {};
    }
  }
  const auto separate = [&](std::string_view name) {
    if (!name.empty() && names_.count(name) > 1) other_.emplace(name, fresh_.make(name));
  };
  for (const wire::NodeProto& node : nodes) {
    for (const std::string_view output : node.outputs) separate(output);
  }
  for (const wire::TensorProto& tensor : initializers) separate(tensor.name);
}

bool InsteadOfNode::put(wire::List<wire::NodeProto>& nodes, const wire::List<wire::TensorProto>& initializers) {
  give_names(nodes, initializers);
  for (const auto& [output, result] : taken_) {
    if (!result.empty()) behind_.insert(behind_.begin(), make_node("Identity", other(other_, output), result));
  }
  rename_uses(nodes, other_);
  for (wire::NodeProto& node : nodes) {
    for (std::string_view& output : node.outputs) output = other(other_, output);
  }
  for (wire::TensorProto tensor : initializers) {
    tensor.name = other(other_, tensor.name);
    constants_.push_back(tensor);
  }
  const Scope& scope = names_.scopes()[scope_];
  std::vector<wire::NodeProto> all;
  for (const wire::TensorProto& tensor : constants_) {
    if (scope.graph) {
      scope.graph->initializers.add(candidate_.arena, tensor);
    } else {
      all.push_back(constant_of(tensor, candidate_.arena));
    }
  }
  all.insert(all.end(), before_.begin(), before_.end());
  all.insert(all.end(), nodes.begin(), nodes.end());
  all.insert(all.end(), behind_.begin(), behind_.end());
  erase_at(scope.nodes(), node_);
  insert_at(scope.nodes(), node_, all, candidate_.arena);
  return true;
}

}  // namespace treadle::reduce
