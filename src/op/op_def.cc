#include "op/op_def.h"

#include <algorithm>

#include "op/axis_rules.h"

namespace treadle {

using ir::Attribute;
using ir::AttributeKind;

const AttributeDef* OpVersion::attribute(std::string_view wanted) const {
  for (const AttributeDef& a : attributes) {
    if (a.name == wanted) return &a;
  }
  return nullptr;
}

const TypeConstraint* OpVersion::constraint(std::string_view wanted) const {
  for (const TypeConstraint& t : types) {
    if (t.name == wanted) return &t;
  }
  return nullptr;
}

void OpVersion::link() {
  for (std::vector<Formal>* formals : {&inputs, &outputs}) {
    for (Formal& formal : *formals) {
      const TypeConstraint* found = constraint(formal.type);
      formal.constraint = found ? static_cast<int>(found - types.data()) : Formal::kNoConstraint;
    }
  }
}

const Formal* OpVersion::variadic(const std::vector<Formal>& formals) {
  if (formals.empty()) return nullptr;
  const Formal& last = formals.back();
  return last.arity == Arity::kVariadic || last.arity == Arity::kVariadicMixed ? &last : nullptr;
}

size_t OpVersion::fewest(const std::vector<Formal>& formals) {
  size_t count = 0;
  for (size_t i = 0; i < formals.size(); ++i) {
    if (formals[i].arity == Arity::kSingle) count = i + 1;
    if (formals[i].arity == Arity::kVariadic || formals[i].arity == Arity::kVariadicMixed) {
      count = i + static_cast<size_t>(formals[i].min_arity);
    }
  }
  return count;
}

const OpVersion* OpDef::version_for(int64_t opset) const {
  const OpVersion* found = nullptr;
  for (const OpVersion& v : versions) {
    if (v.since <= opset) found = &v;
  }
  return found;
}

namespace {

template <class T>
void replace_or_append(std::vector<T>& list, T item) {
  auto it = std::find_if(list.begin(), list.end(), [&](const T& x) { return x.name == item.name; });
  if (it != list.end()) {
    *it = std::move(item);
  } else {
    list.push_back(std::move(item));
  }
}

template <class T>
void drop(std::vector<T>& list, std::string_view name) {
  std::erase_if(list, [&](const T& x) { return x.name == name; });
}

}  // namespace

VersionBuilder& VersionBuilder::in(const char* name, const char* type, Arity arity, int min_arity) {
  return replace_or_append(v_.inputs, Formal{name, type, arity, min_arity, Formal::kNoConstraint}), *this;
}
VersionBuilder& VersionBuilder::out(const char* name, const char* type, Arity arity, int min_arity) {
  return replace_or_append(v_.outputs, Formal{name, type, arity, min_arity, Formal::kNoConstraint}), *this;
}
VersionBuilder& VersionBuilder::no_inputs() {
  return v_.inputs.clear(), *this;
}
VersionBuilder& VersionBuilder::no_outputs() {
  return v_.outputs.clear(), *this;
}
VersionBuilder& VersionBuilder::drop_in(const char* name) {
  return drop(v_.inputs, name), *this;
}

VersionBuilder& VersionBuilder::attribute(AttributeDef def) {
  return replace_or_append(v_.attributes, std::move(def)), *this;
}
VersionBuilder& VersionBuilder::attr(const char* name, int64_t value) {
  return attribute({name, AttributeKind::kInt, false, Attribute::of(name, value)});
}
VersionBuilder& VersionBuilder::attr(const char* name, double value) {
  return attribute({name, AttributeKind::kFloat, false, Attribute::of(name, static_cast<float>(value))});
}
VersionBuilder& VersionBuilder::attr(const char* name, const char* value) {
  return attribute({name, AttributeKind::kString, false, Attribute::of(name, std::string(value))});
}
VersionBuilder& VersionBuilder::attr_ints(const char* name, std::vector<int64_t> value) {
  return attribute({name, AttributeKind::kInts, false, Attribute::of(name, std::move(value))});
}
VersionBuilder& VersionBuilder::attr_strings(const char* name, std::vector<std::string> value) {
  return attribute({name, AttributeKind::kStrings, false, Attribute::of(name, std::move(value))});
}
VersionBuilder& VersionBuilder::required(const char* name, AttributeKind kind) {
  return attribute({name, kind, true, {}});
}
VersionBuilder& VersionBuilder::optional(const char* name, AttributeKind kind) {
  return attribute({name, kind, false, {}});
}
VersionBuilder& VersionBuilder::drop_attr(const char* name) {
  return drop(v_.attributes, name), *this;
}

VersionBuilder& VersionBuilder::type(const char* name, TypeSet types) {
  return replace_or_append(v_.types, TypeConstraint{name, types}), *this;
}
VersionBuilder& VersionBuilder::drop_type(const char* name) {
  return drop(v_.types, name), *this;
}
VersionBuilder& VersionBuilder::deprecated() {
  return v_.deprecated = true, *this;
}

VersionBuilder OpBuilder::since(int version) {
  OpVersion next = def.versions.empty() ? OpVersion{} : def.versions.back();
  next.since = version;
  next.deprecated = false;
  def.versions.push_back(std::move(next));
  return VersionBuilder(def.versions.back());
}

namespace {
uint64_t bits(std::initializer_list<int> inputs) {
  uint64_t mask = 0;
  for (int i : inputs) mask |= uint64_t{1} << i;
  return mask;
}
}  // namespace

OpBuilder& OpBuilder::elementwise() {
  def.elementwise = true;
  return sizes(SizeRule::kBroadcast).axes(axes::broadcast, axes::aligned);
}
OpBuilder& OpBuilder::shape_inputs(std::initializer_list<int> inputs) {
  return def.shape_inputs = bits(inputs), *this;
}
OpBuilder& OpBuilder::strided_inputs(std::initializer_list<int> inputs) {
  return def.strided_inputs = bits(inputs), *this;
}

Status parse_attributes(ir::NodeInfo& node) {
  if (!node.op->parse) return {};
  TREADLE_ASSIGN(node.parsed, node.op->parse(node));
  return {};
}

bool hands_on(const ir::Node& node, size_t i) {
  const OpDef& op = *node.op;
  if (op.alias_input >= 0) return i == static_cast<size_t>(op.alias_input);
  if (op.converts) return i == 0;
  const Formal *in = node.version->input(i), *out = node.version->output(0);
  return op.moves_elements && in && out && in->type == out->type;
}

}  // namespace treadle
