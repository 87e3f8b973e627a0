#include "api/handles.h"
#include "op/registry.h"

namespace {

const treadle::OpDef* operator_at(size_t index) {
  const auto ops = treadle::all_ops();
  return index < ops.size() ? ops[index] : nullptr;
}

}  // namespace

extern "C" {

size_t treadle_operator_count(void) {
  return treadle::all_ops().size();
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

}  // extern "C"
