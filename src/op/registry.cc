#include "op/registry.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/name_map.h"
#include "op/custom_operator.h"

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

const OpDef* find_own_op(std::string_view domain, std::string_view name) {
  for (const auto& [known, ops] : registry().by_domain) {
    if (known != domain) continue;
    const OpDef* const* op = ops.find(name);
    return op ? *op : nullptr;
  }
  return nullptr;
}

// Operators that programs have added. Look-ups take no lock: a published map never changes, and adding an operator
// publishes a new map.
using Added = std::map<std::pair<std::string_view, std::string_view>, const OpDef*>;
std::atomic<const Added*> added{nullptr};

const OpDef* find_added_op(std::string_view domain, std::string_view name) {
  const Added* const list = added.load(std::memory_order_acquire);
  if (!list) return nullptr;
  const auto it = list->find({domain, name});
  return it == list->end() ? nullptr : it->second;
}

}  // namespace

const OpDef* find_op(std::string_view domain, std::string_view name) {
  if (domain == "ai.onnx") domain = {};
  const OpDef* const own = find_own_op(domain, name);
  return own ? own : find_added_op(domain, name);
}

Status add_op(std::unique_ptr<OpDef> op) {
  if (find_own_op(op->domain, op->name)) {
    return error(Code::kInvalidArgument, "treadle has an operator {} of domain \"{}\" itself", op->name,
                 op->domain.empty() ? "ai.onnx" : op->domain);
  }
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const Added* const before = added.load(std::memory_order_relaxed);
  auto after = before ? std::make_unique<Added>(*before) : std::make_unique<Added>();
  const OpDef* const kept = op.release();
  after->insert_or_assign({kept->domain, kept->name}, kept);
  // The key of a replaced record stays valid: records are never freed.
  added.store(after.release(), std::memory_order_release);
  return {};
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
    def->effects = Effects::kRandom;  // nothing may be concluded about it
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
