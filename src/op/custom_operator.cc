#include "op/custom_operator.h"

#include <fmt/format.h>

#include <algorithm>

#include "op/registry.h"
#include "op/type_rules.h"
#include "type/type.h"

namespace treadle {

namespace {

const CustomKernel& kernel_of(const ir::NodeInfo& node) {
  return *node.parsed_as<std::shared_ptr<const CustomKernel>>();
}

Result<std::shared_ptr<const void>> parse_custom(const ir::NodeInfo& node) {
  TREADLE_ASSIGN(auto kernel, node.op->custom->make_kernel(node));
  if (!kernel) return error(Code::kInternal, "the operator made no kernel");
  return std::shared_ptr<const void>(std::make_shared<std::shared_ptr<const CustomKernel>>(std::move(kernel)));
}

// Parses "tensor(float)", "seq(tensor(float))", ... without sizes. Unknown if the name is not a type.
Type type_named(std::string_view name) {
  const auto inside = [&](std::string_view head) -> std::string_view {
    if (!name.starts_with(head) || !name.ends_with(')')) return {};
    return name.substr(head.size(), name.size() - head.size() - 1);
  };
  if (const auto element = inside("tensor("); !element.empty()) {
    const ElementType type = element_type_from_name(element);
    return type == ElementType::kUndefined ? Type() : Type::tensor(type);
  }
  for (const auto& [head, wrap] : {std::pair{"seq(", &Type::sequence}, std::pair{"optional(", &Type::optional}}) {
    const auto child = inside(head);
    if (child.empty()) continue;
    Type type = type_named(child);
    return type.is_known() ? wrap(std::move(type)) : Type();
  }
  return {};
}

// Output types as the record states them. An output whose type the record leaves open has the type of the first input
// that it leaves open.
void infer_from_record(InferContext& ctx) {
  const OpVersion& version = *ctx.node.version;
  const auto is_open = [](const Formal* formal) { return formal && formal->constraint != Formal::kNoConstraint; };
  const Type* first_open = nullptr;
  for (size_t i = 0; i < ctx.inputs.size() && !first_open; ++i) {
    if (is_open(version.input(i)) && ctx.has_input(i)) first_open = ctx.inputs[i];
  }
  for (size_t i = 0; i < ctx.outputs.size(); ++i) {
    const Formal* formal = version.output(i);
    if (!formal) continue;
    if (!is_open(formal)) {
      ctx.set_output(i, type_named(formal->type));
    } else if (first_open && first_open->is_tensor()) {
      ctx.set_output(i, first_open->element);
    }
  }
}

Status infer_custom(InferContext& ctx) {
  infer_from_record(ctx);
  return ctx.node.op->custom->infer(kernel_of(ctx.node), ctx);
}

std::string full_name(const OpDef& op) {
  return fmt::format("{}::{}", op.domain, op.name);
}

// An operator's results must have the types that it announced: nodes behind it were planned for them.
Status check_outputs(const ComputeContext& ctx) {
  std::vector<Type> found;
  for (const AnyValue& input : ctx.inputs) found.push_back(input.type());
  std::vector<const Type*> inputs;
  std::vector<const Tensor*> contents;
  for (size_t i = 0; i < found.size(); ++i) {
    const bool there = !ctx.inputs[i].is_none();
    inputs.push_back(there ? &found[i] : nullptr);
    contents.push_back(there && ctx.inputs[i].is_tensor() ? &ctx.inputs[i].tensor() : nullptr);
  }
  std::vector<Type> outputs(ctx.outputs.size());
  InferContext infer{ctx.node, inputs, contents, {}, outputs, {}, {}};
  TREADLE_TRY(infer_custom(infer));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (ctx.outputs[i].is_none()) {
      return error(Code::kRuntime, "operator {} has not set its output {}, expected {}", full_name(*ctx.node.op), i,
                   outputs[i].is_known() ? outputs[i].to_string() : "a value");
    }
    if (!outputs[i].is_known()) continue;
    const Type type = ctx.outputs[i].type();
    if (!merge(outputs[i], type).ok()) {
      return error(Code::kRuntime, "operator {} gave {} as output {}, and has said that it gives {}",
                   full_name(*ctx.node.op), type.to_string(), i, outputs[i].to_string());
    }
  }
  return {};
}

Status compute_custom(ComputeContext& ctx) {
  for (AnyValue& output : ctx.outputs)
    output = {};  // contents of the last run must not be taken for results of this
                  // one
  TREADLE_TRY(kernel_of(ctx.node).compute(ctx));
  return check_outputs(ctx);
}

constexpr TypeSet kAnyType = [] {
  TypeSet set(types::kAllTensorsIr14);
  set.sequence = set.optional = set.optional_sequence = types::kAllTensorsIr14;
  set.maps = set.sequence_maps = 0xff;
  return set;
}();

Status add_formals(const std::vector<CustomFormal>& from, const char* role, std::vector<Formal>& to,
                   OpVersion& version) {
  for (size_t i = 0; i < from.size(); ++i) {
    const CustomFormal& formal = from[i];
    const bool variadic = formal.arity == Arity::kVariadic || formal.arity == Arity::kVariadicMixed;
    if (variadic && i + 1 < from.size()) {
      return error(Code::kInvalidArgument, "{} {} (\"{}\") is variadic, and only the last one may be", role, i,
                   formal.name);
    }
    std::string type = formal.type;
    if (type.empty()) {
      type = fmt::format("{}{}", role, i);
      version.types.push_back({type, kAnyType});
    } else if (!type_named(type).is_known()) {
      return error(Code::kInvalidArgument,
                   "{} {} (\"{}\") has the type \"{}\", expected one like \"tensor(float)\", or none for any", role, i,
                   formal.name, type);
    }
    const std::string name = formal.name.empty() ? fmt::format("{}{}", role, i) : formal.name;
    const Arity arity = formal.arity == Arity::kVariadic && formal.type.empty() ? Arity::kVariadicMixed : formal.arity;
    to.push_back({name, std::move(type), arity, variadic ? 0 : 1});
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<OpDef>> make_custom_op(CustomRecord record) {
  if (record.name.empty()) return error(Code::kInvalidArgument, "an operator needs a name");
  if (record.since < 1) {
    return error(Code::kInvalidArgument, "operator {} is of version {}, expected 1 or more", record.name, record.since);
  }
  if (record.outputs.empty()) return error(Code::kInvalidArgument, "operator {} has no outputs", record.name);
  auto op = std::make_unique<OpDef>();
  op->domain = record.domain == "ai.onnx" ? std::string() : std::move(record.domain);
  op->name = std::move(record.name);
  OpVersion& version = op->versions.emplace_back();
  version.since = record.since;
  TREADLE_TRY(add_formals(record.inputs, "input", version.inputs, version));
  TREADLE_TRY(add_formals(record.outputs, "output", version.outputs, version));
  version.any_attributes = record.any_attributes;
  for (auto& [name, required] : record.attributes) {
    AttributeDef& attribute = version.attributes.emplace_back();
    attribute.name = std::move(name);
    attribute.required = required;
  }
  version.link();
  op->custom = std::move(record.implementation);
  op->parse = parse_custom;
  op->infer = infer_custom;
  op->compute = compute_custom;
  op->effects = record.pure ? Effects::kCanFail : Effects::kRandom;
  op->no_axes = "the axes of an operator that the program defines are unknown";
  return op;
}

}  // namespace treadle
