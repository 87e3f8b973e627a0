#include "session/origins.h"

#include <algorithm>

#include "base/spelling.h"
#include "op/op_def.h"
#include "type/type.h"

namespace treadle::session {

namespace {

// Whether `text` is `pattern`, in which a "*" stands for any letters.
bool matches(std::string_view text, std::string_view pattern) {
  size_t at = 0, in = 0, star = std::string_view::npos, from = 0;
  while (at < text.size()) {
    if (in < pattern.size() && pattern[in] == '*') {
      star = in++;
      from = at;
    } else if (in < pattern.size() && pattern[in] == text[at]) {
      ++in, ++at;
    } else if (star != std::string_view::npos) {
      in = star + 1;
      at = ++from;
    } else {
      return false;
    }
  }
  return std::all_of(pattern.begin() + static_cast<std::ptrdiff_t>(in), pattern.end(), [](char c) { return c == '*'; });
}

bool is_loop(const ir::Node& node) {
  return node.op->control == Control::kLoop || node.op->control == Control::kScan;
}

}  // namespace

void number_values(ir::Graph& graph) {
  uint32_t number = 0;
  for (ir::Value* value : graph.values()) value->origin = ++number;
}

std::string path_of(const ir::Value& value) {
  const ir::Node* const around = value.owner && !value.is_constant() ? value.owner->parent_node : nullptr;
  if (!around) return std::string(value.name);
  return around->name + ":" + value.owner->attribute + "/" + std::string(value.name);
}

ModelValues::ModelValues(const ir::Graph& graph) : graph_(graph) {
  entries_.reserve(graph.values().size());
  for (const ir::Value* value : graph.values()) {
    Entry& entry = entries_.emplace_back();
    entry.path = path_of(*value);
    const ir::Region* around = value->is_constant() ? nullptr : value->owner;
    for (; around && around->parent_node; around = around->parent_region()) {
      if (is_loop(*around->parent_node)) entry.loops.emplace_back(around->parent_node->name);
    }
    std::reverse(entry.loops.begin(), entry.loops.end());
  }
}

template <class Wanted>
std::vector<uint32_t> ModelValues::numbers_of(Wanted&& wanted) const {
  std::vector<uint32_t> found;
  for (const ir::Value* value : graph_.values()) {
    if (!value->name.empty() && wanted(*value)) found.push_back(value->origin);
  }
  return found;
}

Status ModelValues::unknown(std::string_view name, bool is_rewritten) const {
  Speller speller(name);
  for (const ir::Value* value : graph_.values()) speller.offer(value->name);
  const std::string_view best = speller.best();
  std::string hint;
  for (const ir::Value* value : graph_.values()) {
    if (hint.empty() && !best.empty() && value->name == best) hint = " (did you mean '" + path_of(*value) + "'?)";
  }
  return error(Code::kInvalidArgument, "the model has no value '{}'{}{}", name, hint,
               is_rewritten && hint.empty() ? ", or loading has folded it: open the session with optimize = 0" : "");
}

Result<std::vector<uint32_t>> ModelValues::named(std::string_view pattern, bool is_rewritten) const {
  std::vector<uint32_t> found = numbers_of([&](const ir::Value& v) { return (*this)[v.origin].path == pattern; });
  if (found.empty()) found = numbers_of([&](const ir::Value& v) { return v.name == pattern; });
  if (found.empty() && pattern.find('*') != std::string_view::npos) {
    found = numbers_of([&](const ir::Value& v) { return matches((*this)[v.origin].path, pattern); });
  }
  if (found.empty()) return unknown(pattern, is_rewritten);
  return found;
}

}  // namespace treadle::session
