#include "op/print.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "op/place.h"
#include "op/registry.h"
#include "op/written_operator.h"

namespace treadle {

namespace {

std::string value_text(const ir::Value* v) {
  if (!v) return "-";
  return v->is_constant() ? "const " + v->name + ": " + v->type.to_string() : "%" + v->name;
}

std::string attribute_text(const ir::Attribute& a) {
  using ir::AttributeKind;
  switch (a.kind) {
    case AttributeKind::kFloat:
      return fmt::format("{}={}", a.name, a.as_float());
    case AttributeKind::kInt:
      return fmt::format("{}={}", a.name, a.as_int());
    case AttributeKind::kString:
      return fmt::format("{}=\"{}\"", a.name, a.as_string());
    case AttributeKind::kInts:
      return fmt::format("{}=[{}]", a.name, fmt::join(a.as_ints(), ","));
    case AttributeKind::kFloats:
      return fmt::format("{}=[{}]", a.name, fmt::join(a.as_floats(), ","));
    case AttributeKind::kStrings:
      return fmt::format("{}=[{}]", a.name, fmt::join(a.as_strings(), ","));
    default:
      return fmt::format("{}=<{}>", a.name, ir::kind_name(a.kind));
  }
}

// Null for a node with a known operator.
const WrittenOperator* written_operator(const ir::Node& node) {
  return node.op == &opaque_op() && node.parsed ? &node.parsed_as<WrittenOperator>() : nullptr;
}

std::string operator_text(const ir::Node& node) {
  if (const WrittenOperator* written = written_operator(node)) return written->name;
  return fmt::format("{}{}-{}", node.op->domain.empty() ? "" : node.op->domain + ".", node.op->name,
                     node.version->since);
}

std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

void print_node(const ir::Node& node, int indent, std::string& text) {
  const std::string margin(static_cast<size_t>(indent), ' ');
  text += margin;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const ir::Value* v = node.outputs[i];
    text += (i ? ", " : "") + (v ? fmt::format("%{}: {}", v->name, v->type.to_string()) : std::string("-"));
  }
  text += " = " + operator_text(node) + "(";
  for (size_t i = 0; i < node.inputs.size(); ++i) text += (i ? ", " : "") + value_text(node.inputs[i]);
  text += ")";
  for (const ir::Attribute& a : node.attributes.all()) {
    if (a.name != kNamedAs) text += " " + attribute_text(a);
  }
  if (const WrittenOperator* written = written_operator(node)) text += "  # " + one_line(written->reason);
  text += "\n";
  for (const auto& region : node.regions) {
    text += margin + "  " + region->attribute + ":\n" + print(*region, indent + 4);
  }
}

}  // namespace

std::string print(const ir::Region& region, int indent) {
  const std::string margin(static_cast<size_t>(indent), ' ');
  std::string text = margin + "(";
  for (size_t i = 0; i < region.inputs.size(); ++i) {
    const ir::Value* v = region.inputs[i];
    text += (i ? ", " : "") + (v ? fmt::format("%{}: {}", v->name, v->type.to_string()) : std::string("-"));
  }
  text += ")\n";
  for (const auto& node : region.nodes) print_node(*node, indent, text);
  text += margin + "return ";
  for (size_t i = 0; i < region.outputs.size(); ++i) text += (i ? ", " : "") + value_text(region.outputs[i]);
  return text + "\n";
}

std::string print(const ir::Graph& graph) {
  return print(graph.top());
}

}  // namespace treadle
