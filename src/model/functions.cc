#include "model/functions.h"

#include <algorithm>

#include "base/stack.h"

namespace treadle::model {

namespace {

std::string key(std::string_view domain, std::string_view name, std::string_view overload) {
  std::string result(canonical_domain(domain));
  result += '\0';
  result += name;
  result += '\0';
  result += overload;
  return result;
}

}  // namespace

Result<Opsets> read_opsets(const wire::List<wire::OperatorSetId>& imports) {
  Opsets opsets;
  for (const wire::OperatorSetId& import : imports) {
    const std::string_view domain = canonical_domain(import.domain);
    if (import.version < 1) {
      return error(Code::kInvalidModel, "expected an operator set version of 1 or more for domain \"{}\", found {}",
                   domain, import.version);
    }
    const auto [it, fresh] = opsets.emplace(domain, import.version);
    if (!fresh && it->second != import.version) {
      return error(Code::kInvalidModel, "domain \"{}\" is imported in versions {} and {}", domain, it->second,
                   import.version);
    }
  }
  return opsets;
}

std::string function_name(const wire::FunctionProto& function) {
  std::string result;
  if (!function.domain.empty()) result = fmt::format("{}.", function.domain);
  result += function.name;
  if (!function.overload.empty()) result += fmt::format(":{}", function.overload);
  return result;
}

Status FunctionTable::build(const wire::ModelProto& model, const Opsets& model_opsets) {
  for (const wire::FunctionProto& proto : model.functions) {
    auto opsets = read_opsets(proto.opset_imports);
    if (!opsets.ok()) return std::move(opsets).status().in("function " + function_name(proto));
    opsets->insert(model_opsets.begin(), model_opsets.end());
    const auto [it, fresh] = entries_.try_emplace(key(proto.domain, proto.name, proto.overload));
    if (!fresh) return error(Code::kInvalidModel, "function {} is defined twice", function_name(proto));
    it->second.function = {&proto, std::move(*opsets), 0};
  }
  std::vector<const wire::FunctionProto*> chain;
  for (const wire::FunctionProto& proto : model.functions) {
    TREADLE_TRY(visit(entries_.at(key(proto.domain, proto.name, proto.overload)), chain));
  }
  return {};
}

const Function* FunctionTable::find(const wire::NodeProto& node) const {
  if (entries_.empty()) return nullptr;
  const auto it = entries_.find(key(node.domain, node.op_type, node.overload));
  return it == entries_.end() ? nullptr : &it->second.function;
}

FunctionTable::Entry* FunctionTable::find_entry(const wire::NodeProto& node) {
  const auto it = entries_.find(key(node.domain, node.op_type, node.overload));
  return it == entries_.end() ? nullptr : &it->second;
}

Status FunctionTable::visit(Entry& entry, std::vector<const wire::FunctionProto*>& chain) {
  if (entry.mark == Mark::kDone) return {};
  const wire::FunctionProto& proto = *entry.function.proto;
  if (entry.mark == Mark::kOpen) {
    std::string cycle;
    bool inside = false;
    for (const wire::FunctionProto* caller : chain) {
      inside |= caller == &proto;
      if (inside) cycle += function_name(*caller) + " -> ";
    }
    return error(Code::kInvalidModel, "functions must not be recursive: {}{}", cycle, function_name(proto));
  }
  if (chain.size() >= kMaxImportDepth) {
    return error(Code::kLimit, "functions call each other more than {} deep", kMaxImportDepth);
  }
  TREADLE_TRY(check_stack(chain.size()));
  entry.mark = Mark::kOpen;
  chain.push_back(&proto);
  TREADLE_TRY(visit_calls(proto.nodes, chain, entry.function.nodes));
  chain.pop_back();
  entry.mark = Mark::kDone;
  return {};
}

Status FunctionTable::visit_calls(const wire::List<wire::NodeProto>& nodes,
                                  std::vector<const wire::FunctionProto*>& chain, size_t& count) {
  const auto add = [&](size_t more) { count += std::min(more, SIZE_MAX - count); };
  add(nodes.size());
  for (const wire::NodeProto& node : nodes) {
    if (Entry* callee = find_entry(node)) {
      TREADLE_TRY(visit(*callee, chain));
      add(callee->function.nodes);
    }
    for (const wire::AttributeProto& attribute : node.attributes) {
      if (attribute.g) TREADLE_TRY(visit_calls(attribute.g->nodes, chain, count));
      size_t elsewhere = 0;  // nodes outside of bodies
      for (const wire::GraphProto& graph : attribute.graphs) TREADLE_TRY(visit_calls(graph.nodes, chain, elsewhere));
    }
  }
  return {};
}

}  // namespace treadle::model
