#include "op/print.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/harmless.h"
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

template <class Values>
std::string declarations(const Values& values) {
  std::string text;
  for (const ir::Value* v : values) {
    text += text.empty() ? "" : ", ";
    text += v ? fmt::format("%{}: {}", v->name, v->type.to_string()) : std::string("-");
  }
  return text;
}

template <class Values>
std::string uses(const Values& values) {
  std::string text;
  for (const ir::Value* v : values) text += (text.empty() ? "" : ", ") + value_text(v);
  return text;
}

// A line, whatever names and texts in it hold.
std::string line(const std::string& margin, const std::string& what) {
  return margin + harmless(what) + "\n";
}

void print_node(const ir::Node& node, int indent, std::string& text) {
  const std::string margin(static_cast<size_t>(indent), ' ');
  std::string what = fmt::format("{} = {}({})", declarations(node.outputs), operator_text(node), uses(node.inputs));
  for (const ir::Attribute& a : node.attributes.all()) {
    if (a.name != kNamedAs) what += " " + attribute_text(a);
  }
  if (const WrittenOperator* written = written_operator(node)) what += "  # " + written->reason;
  text += line(margin, what);
  for (const auto& region : node.regions) {
    text += margin + "  " + region->attribute + ":\n" + print(*region, indent + 4);
  }
}

}  // namespace

std::string print(const ir::Region& region, int indent) {
  const std::string margin(static_cast<size_t>(indent), ' ');
  std::string text = line(margin, "(" + declarations(region.inputs) + ")");
  for (const auto& node : region.nodes) print_node(*node, indent, text);
  return text + line(margin, "return " + uses(region.outputs));
}

std::string print(const ir::Graph& graph) {
  return print(graph.top());
}

}  // namespace treadle
