#include "ir/attribute.h"

#include <algorithm>

namespace treadle::ir {

std::string_view kind_name(AttributeKind kind) {
  static constexpr std::string_view kNames[] = {
      "undefined", "float",   "int",    "string",        "tensor",         "graph",      "floats",      "ints",
      "strings",   "tensors", "graphs", "sparse_tensor", "sparse_tensors", "type_proto", "type_protos",
  };
  const auto i = static_cast<size_t>(kind);
  return i < std::size(kNames) ? kNames[i] : "undefined";
}

Attribute::Attribute() = default;
Attribute::Attribute(std::string n, AttributeKind k, Value v) : name(std::move(n)), kind(k), value(std::move(v)) {}
Attribute::Attribute(const Attribute&) = default;
Attribute::Attribute(Attribute&&) noexcept = default;
Attribute& Attribute::operator=(const Attribute&) = default;
Attribute& Attribute::operator=(Attribute&&) noexcept = default;
Attribute::~Attribute() = default;

float Attribute::as_float() const {
  return std::get<float>(value);
}
int64_t Attribute::as_int() const {
  return std::get<int64_t>(value);
}
const std::string& Attribute::as_string() const {
  return std::get<std::string>(value);
}
const Tensor& Attribute::as_tensor() const {
  return *std::get<Held<Tensor>>(value);
}
const Type& Attribute::as_type() const {
  return *std::get<Held<Type>>(value);
}
std::span<const float> Attribute::as_floats() const {
  return std::get<std::vector<float>>(value);
}
std::span<const int64_t> Attribute::as_ints() const {
  return std::get<std::vector<int64_t>>(value);
}
std::span<const std::string> Attribute::as_strings() const {
  return std::get<std::vector<std::string>>(value);
}
std::span<const Tensor> Attribute::as_tensors() const {
  return std::get<std::vector<Tensor>>(value);
}

Attribute Attribute::of(std::string name, float v) {
  return {std::move(name), AttributeKind::kFloat, v};
}
Attribute Attribute::of(std::string name, int64_t v) {
  return {std::move(name), AttributeKind::kInt, v};
}
Attribute Attribute::of(std::string name, int v) {
  return of(std::move(name), int64_t{v});
}
Attribute Attribute::of(std::string name, std::string v) {
  return {std::move(name), AttributeKind::kString, std::move(v)};
}
Attribute Attribute::of(std::string name, Tensor v) {
  return {std::move(name), AttributeKind::kTensor, std::move(v)};
}
Attribute Attribute::of(std::string name, Type v) {
  return {std::move(name), AttributeKind::kTypeProto, std::move(v)};
}
Attribute Attribute::of(std::string name, std::vector<int64_t> v) {
  return {std::move(name), AttributeKind::kInts, std::move(v)};
}
Attribute Attribute::of(std::string name, std::vector<float> v) {
  return {std::move(name), AttributeKind::kFloats, std::move(v)};
}
Attribute Attribute::of(std::string name, std::vector<std::string> v) {
  return {std::move(name), AttributeKind::kStrings, std::move(v)};
}

const Attribute* Attributes::find(std::string_view name) const {
  if (!list_) return nullptr;
  for (const Attribute& a : *list_) {
    if (a.name == name) return &a;
  }
  return nullptr;
}

void Attributes::reserve(size_t count) {
  own().reserve(count);
}

int64_t Attributes::get_int(std::string_view name, int64_t otherwise) const {
  const Attribute* a = find(name);
  return a ? a->as_int() : otherwise;
}

float Attributes::get_float(std::string_view name, float otherwise) const {
  const Attribute* a = find(name);
  return a ? a->as_float() : otherwise;
}

std::string_view Attributes::get_string(std::string_view name, std::string_view otherwise) const {
  const Attribute* a = find(name);
  return a ? std::string_view(a->as_string()) : otherwise;
}

std::span<const int64_t> Attributes::get_ints(std::string_view name) const {
  const Attribute* a = find(name);
  return a ? a->as_ints() : std::span<const int64_t>();
}

std::span<const float> Attributes::get_floats(std::string_view name) const {
  const Attribute* a = find(name);
  return a ? a->as_floats() : std::span<const float>();
}

std::span<const std::string> Attributes::get_strings(std::string_view name) const {
  const Attribute* a = find(name);
  return a ? a->as_strings() : std::span<const std::string>();
}

std::vector<Attribute>& Attributes::own() {
  if (!list_) {
    list_ = std::make_shared<std::vector<Attribute>>();
  } else if (list_.use_count() > 1) {
    auto copy = std::make_shared<std::vector<Attribute>>();
    copy->reserve(list_->size() + 2);  // a list is copied in order to add to it
    copy->assign(list_->begin(), list_->end());
    list_ = std::move(copy);
  }
  return *list_;
}

void Attributes::set(Attribute attribute) {
  std::vector<Attribute>& list = own();
  for (Attribute& a : list) {
    if (a.name == attribute.name) {
      a = std::move(attribute);
      return;
    }
  }
  list.push_back(std::move(attribute));
}

void Attributes::erase(std::string_view name) {
  if (has(name)) std::erase_if(own(), [&](const Attribute& a) { return a.name == name; });
}

}  // namespace treadle::ir
