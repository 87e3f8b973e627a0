#include "session/origins.h"

#include <algorithm>

#include "base/spelling.h"
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

template <class Wanted>
std::vector<uint32_t> numbers_of(const ir::Graph& graph, Wanted&& wanted) {
  std::vector<uint32_t> found;
  for (const ir::Value* value : graph.values()) {
    if (!value->name.empty() && wanted(*value)) found.push_back(value->origin);
  }
  return found;
}

Status unknown(const ir::Graph& graph, std::string_view name) {
  Speller speller(name);
  for (const ir::Value* value : graph.values()) speller.offer(value->name);
  const std::string_view best = speller.best();
  std::string hint;
  for (const ir::Value* value : graph.values()) {
    if (hint.empty() && !best.empty() && value->name == best) hint = " (did you mean '" + path_of(*value) + "'?)";
  }
  return error(Code::kInvalidArgument, "the model has no value '{}'{}", name, hint);
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

Result<std::vector<uint32_t>> values_named(const ir::Graph& graph, std::string_view pattern) {
  std::vector<uint32_t> found = numbers_of(graph, [&](const ir::Value& v) { return path_of(v) == pattern; });
  if (found.empty()) found = numbers_of(graph, [&](const ir::Value& v) { return v.name == pattern; });
  if (found.empty() && pattern.find('*') != std::string_view::npos) {
    found = numbers_of(graph, [&](const ir::Value& v) { return matches(path_of(v), pattern); });
  }
  if (found.empty()) return unknown(graph, pattern);
  return found;
}

}  // namespace treadle::session
