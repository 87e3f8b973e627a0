#include "op/schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "kernels/convert.h"

namespace treadle {

namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", c);
    } else {
      out += c;
    }
  }
  return out + '"';
}

template <class List, class Fn>
std::string array(const List& list, Fn&& item) {
  std::string text = "[";
  for (const auto& x : list) {
    if (text.size() > 1) text += ", ";
    text += item(x);
  }
  return text + "]";
}

// Infinities and NaN become strings, since JSON has no such numbers.
std::string number(double value) {
  const std::string text = fmt::format("{}", static_cast<float>(value));
  return std::isfinite(value) ? text : quoted(text);
}

std::string tensor_json(const Tensor& tensor) {
  std::vector<std::string> values;
  for (int64_t i = 0; i < tensor.element_count(); ++i) {
    if (tensor.type() == ElementType::kString) {
      values.push_back(quoted(tensor.data<String>()[i]));
      continue;
    }
    double value = 0;
    const auto* data = static_cast<const std::byte*>(tensor.raw());
    kernels::cast(tensor.type(), ElementType::kDouble, data + static_cast<size_t>(i) * byte_width(tensor.type()),
                  &value, 1);
    values.push_back(number(value));
  }
  return fmt::format(R"({{"type": "{}", "dims": [{}], "values": [{}]}})", name(tensor.type()),
                     fmt::join(tensor.dims(), ", "), fmt::join(values, ", "));
}

std::string value_json(const ir::Attribute& a) {
  using ir::AttributeKind;
  switch (a.kind) {
    case AttributeKind::kFloat:
      return number(a.as_float());
    case AttributeKind::kInt:
      return std::to_string(a.as_int());
    case AttributeKind::kString:
      return quoted(a.as_string());
    case AttributeKind::kFloats:
      return array(a.as_floats(), number);
    case AttributeKind::kInts:
      return fmt::format("[{}]", fmt::join(a.as_ints(), ", "));
    case AttributeKind::kStrings:
      return array(a.as_strings(), quoted);
    case AttributeKind::kTensor:
      return tensor_json(a.as_tensor());
    default:
      return "null";
  }
}

std::string_view option(const Formal& formal) {
  if (formal.arity == Arity::kSingle) return "single";
  return formal.arity == Arity::kOptional ? "optional" : "variadic";
}

std::string formal_json(const Formal& formal) {
  return fmt::format(R"({{"name": {}, "type": {}, "option": "{}", "homogeneous": {}, "min_arity": {}}})",
                     quoted(formal.name), quoted(formal.type), option(formal), formal.arity != Arity::kVariadicMixed,
                     formal.min_arity);
}

std::string attribute_json(const AttributeDef& def) {
  std::string text = fmt::format(R"({{"name": {}, "type": "{}", "required": {})", quoted(def.name),
                                 ir::kind_name(def.kind), def.required);
  if (def.has_default()) text += fmt::format(R"(, "default": {})", value_json(def.default_value));
  return text + "}";
}

std::string constraint_json(const TypeConstraint& constraint) {
  std::string types;
  std::string_view rest;
  const std::string listed = constraint.types.to_string();
  for (rest = listed; !rest.empty();) {
    const size_t end = rest.find(", ");
    types += (types.empty() ? "" : ", ") + quoted(rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 2);
  }
  return fmt::format(R"({{"name": {}, "types": [{}]}})", quoted(constraint.name), types);
}

bool is_variadic(const Formal& formal) {
  return formal.arity == Arity::kVariadic || formal.arity == Arity::kVariadicMixed;
}

// null: any number.
std::string most(const std::vector<Formal>& formals) {
  return !formals.empty() && is_variadic(formals.back()) ? "null" : std::to_string(formals.size());
}

std::string version_json(const OpVersion& v) {
  return fmt::format(
      R"({{"since": {}, "deprecated": {}, "min_inputs": {}, "max_inputs": {}, "min_outputs": {}, "max_outputs": {}, )"
      R"("inputs": {}, "outputs": {}, "attributes": {}, "types": {}}})",
      v.since, v.deprecated, v.min_inputs(), most(v.inputs), v.min_outputs(), most(v.outputs),
      array(v.inputs, formal_json), array(v.outputs, formal_json), array(v.attributes, attribute_json),
      array(v.types, constraint_json));
}

std::string_view effects_text(const OpDef& op) {
  if (op.effects == Effects::kTotal) return "total";
  return op.effects == Effects::kCanFail ? "can fail" : "random";
}

// ---- For people

std::string formal_text(const Formal& formal) {
  std::string text = fmt::format("{}: {}", formal.name, formal.type);
  if (formal.arity == Arity::kOptional) text += " (optional)";
  if (is_variadic(formal)) text += fmt::format(" ({} or more", formal.min_arity);
  if (formal.arity == Arity::kVariadic) text += ", of one type)";
  if (formal.arity == Arity::kVariadicMixed) text += ", each of its own type)";
  return text;
}

std::string attribute_text(const AttributeDef& def) {
  std::string text = fmt::format("{}: {}", def.name, ir::kind_name(def.kind));
  if (def.required) text += " (required)";
  if (def.has_default()) text += " = " + value_json(def.default_value);
  return text;
}

// Shortens "tensor(float), tensor(double), seq(tensor(float))" to "tensor(float|double), seq(tensor(float))".
std::string types_text(const TypeSet& types) {
  const std::string listed = types.to_string();
  std::string text;
  std::string_view around;  // the text before the element type that was written last
  for (std::string_view rest = listed; !rest.empty();) {
    const size_t end = std::min(rest.find(", "), rest.size());
    const std::string_view one = rest.substr(0, end);
    rest = rest.substr(std::min(end + 2, rest.size()));
    const size_t open = one.rfind('(') + 1, close = one.find(')');
    if (one.substr(0, open) == around) {
      text.insert(text.find_last_not_of(')') + 1, fmt::format("|{}", one.substr(open, close - open)));
    } else {
      text += (text.empty() ? "" : ", ") + std::string(one);
      around = one.substr(0, open);
    }
  }
  return text;
}

std::string constraint_text(const TypeConstraint& constraint) {
  return constraint.name + ": " + types_text(constraint.types);
}

// A list under its heading: what is new or different since `before`, then the names of what was removed.
template <class T>
void append_changes(std::string& text, std::string_view heading, const std::vector<T>& before,
                    const std::vector<T>& after, std::string (*line)(const T&)) {
  const auto find = [](const std::vector<T>& list, const T& wanted) -> const T* {
    for (const T& x : list) {
      if (x.name == wanted.name) return &x;
    }
    return nullptr;
  };
  for (const T& x : after) {
    const T* old = find(before, x);
    if (!old || line(*old) != line(x)) text += fmt::format("    {:<10} {}\n", heading, line(x));
  }
  for (const T& x : before) {
    if (!find(after, x)) text += fmt::format("    {:<10} no {} any more\n", heading, x.name);
  }
}

// Compares constraints type by type, since few change completely.
void append_type_changes(std::string& text, const OpVersion& before, const OpVersion& after) {
  for (const TypeConstraint& x : after.types) {
    const TypeConstraint* old = before.constraint(x.name);
    if (old && old->types == x.types) continue;
    const TypeSet added = old ? x.types - old->types : TypeSet();
    if (old && (old->types | x.types) == x.types) {
      text += fmt::format("    {:<10} {}: also {}\n", "types", x.name, types_text(added));
    } else {
      text += fmt::format("    {:<10} {}\n", "types", constraint_text(x));
    }
  }
  for (const TypeConstraint& x : before.types) {
    if (!after.constraint(x.name)) text += fmt::format("    {:<10} no {} any more\n", "types", x.name);
  }
}

std::string version_text(const OpVersion& before, const OpVersion& v) {
  std::string text;
  append_changes(text, "input", before.inputs, v.inputs, formal_text);
  append_changes(text, "output", before.outputs, v.outputs, formal_text);
  append_changes(text, "attribute", before.attributes, v.attributes, attribute_text);
  append_type_changes(text, before, v);
  if (text.empty() && !v.deprecated) text = "    as before\n";
  return fmt::format("  since {}{}\n{}", v.since, v.deprecated ? ", deprecated" : "", text);
}

}  // namespace

std::string schema_json(const OpDef& op) {
  return fmt::format(R"({{"name": {}, "domain": {}, "effects": "{}", "tiers": {}, "versions": {}}})", quoted(op.name),
                     quoted(op.domain), effects_text(op), op.runs() ? R"(["reference", "program"])" : "[]",
                     array(op.versions, version_json));
}

std::string schema_text(const OpDef& op) {
  std::string text = fmt::format(
      "{} ({}), {}\n", op.name, op.domain.empty() ? "ai.onnx" : op.domain,
      op.runs() ? fmt::format("{}; reference and program run all its types", effects_text(op)) : "known but not run");
  static const OpVersion nothing;
  const OpVersion* before = &nothing;
  for (const OpVersion& v : op.versions) {
    text += version_text(*before, v);
    before = &v;
  }
  return text;
}

}  // namespace treadle
