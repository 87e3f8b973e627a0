#include <memory>
#include <new>
#include <span>
#include <vector>

#include "api/handles.h"
#include "base/spelling.h"
#include "op/registry.h"
#include "op/schema.h"

namespace {

// Operators for users: without domain "treadle", which only lowerings use. Empty if there is no memory to list them.
std::span<const treadle::OpDef* const> operators() noexcept {
  try {
    static const auto* const list = [] {
      auto made = std::make_unique<std::vector<const treadle::OpDef*>>();
      for (const treadle::OpDef* op : treadle::all_ops()) {
        if (op->domain != "treadle") made->push_back(op);
      }
      return made.release();
    }();
    return *list;
  } catch (const std::bad_alloc&) {
    return {};
  }
}

const treadle::OpDef* operator_at(size_t index) {
  return index < operators().size() ? operators()[index] : nullptr;
}

char* describe(size_t index, std::string (*description)(const treadle::OpDef&)) {
  const treadle::OpDef* op = operator_at(index);
  return op ? treadle::api::give_or_null([&] { return description(*op); }) : nullptr;
}

}  // namespace

extern "C" {

size_t treadle_operator_count(void) {
  return operators().size();
}

const char* treadle_operator_name(size_t index) {
  const treadle::OpDef* op = operator_at(index);
  return op ? op->name.c_str() : nullptr;
}

const char* treadle_operator_domain(size_t index) {
  const treadle::OpDef* op = operator_at(index);
  return op ? op->domain.c_str() : nullptr;
}

size_t treadle_operator_version_count(size_t index) {
  const treadle::OpDef* op = operator_at(index);
  return op ? op->versions.size() : 0;
}

int treadle_operator_version(size_t index, size_t version) {
  const treadle::OpDef* op = operator_at(index);
  return op && version < op->versions.size() ? op->versions[version].since : 0;
}

const char* treadle_operator_like(const char* name) {
  if (!name) return nullptr;
  try {
    treadle::Speller speller(name);
    for (const treadle::OpDef* op : operators()) speller.offer(op->name);
    // The name is a whole string of the registry, which ends with a zero byte.
    return speller.best().empty() ? nullptr : speller.best().data();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

char* treadle_operator_json(size_t index) {
  return describe(index, treadle::schema_json);
}

char* treadle_operator_text(size_t index) {
  return describe(index, treadle::schema_text);
}

}  // extern "C"
