#include "op/registry.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "base/name_map.h"

namespace treadle {

namespace {

struct Registry {
  std::vector<std::unique_ptr<OpDef>> owned;
  std::vector<const OpDef*> sorted;
  std::vector<std::pair<std::string_view, NameMap<const OpDef*>>> by_domain;

  Registry() {
    for (const OpDefineFn define : generated_op_table()) {
      auto def = std::make_unique<OpDef>();
      OpBuilder builder(*def);
      define(builder);
      TREADLE_ASSERT(!def->versions.empty());
      for (OpVersion& version : def->versions) version.link();
      of_domain(def->domain).emplace(def->name, def.get());
      sorted.push_back(def.get());
      owned.push_back(std::move(def));
    }
    std::sort(sorted.begin(), sorted.end(), [](const OpDef* a, const OpDef* b) {
      return a->domain != b->domain ? a->domain < b->domain : a->name < b->name;
    });
  }

  NameMap<const OpDef*>& of_domain(std::string_view domain) {
    for (auto& [known, ops] : by_domain) {
      if (known == domain) return ops;
    }
    return by_domain.emplace_back(domain, NameMap<const OpDef*>()).second;
  }
};

const Registry& registry() {
  static const Registry* const instance = new Registry;  // never destroyed: programs may outlive static destructors
  return *instance;
}

}  // namespace

const OpDef* find_op(std::string_view domain, std::string_view name) {
  if (domain == "ai.onnx") domain = {};
  for (const auto& [known, ops] : registry().by_domain) {
    if (known != domain) continue;
    const OpDef* const* op = ops.find(name);
    return op ? *op : nullptr;
  }
  return nullptr;
}

const OpDef& require_op(std::string_view name, std::string_view domain) {
  const OpDef* op = find_op(domain, name);
  if (!op) assertion_failed(std::string(name).c_str(), __FILE__, __LINE__);
  return *op;
}

const OpDef& opaque_op() {
  static const OpDef* const op = [] {
    auto* def = new OpDef;
    def->name = "(opaque)";
    def->effects = Effects::kRandom;  // nothing may be concluded
    def->infer = [](InferContext&) { return Status(); };
    OpBuilder(*def).since(1);
    return def;
  }();
  return *op;
}

std::span<const OpDef* const> all_ops() {
  return registry().sorted;
}

}  // namespace treadle
