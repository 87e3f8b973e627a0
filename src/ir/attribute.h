#pragma once
// Attributes of a node, apart from graphs (those are Regions of the node).

#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "type/tensor.h"
#include "type/type.h"

namespace treadle::ir {

// Numbers of AttributeProto.AttributeType.
enum class AttributeKind : uint8_t {
  kUndefined = 0,
  kFloat = 1,
  kInt = 2,
  kString = 3,
  kTensor = 4,
  kGraph = 5,
  kFloats = 6,
  kInts = 7,
  kStrings = 8,
  kTensors = 9,
  kGraphs = 10,
  kSparseTensor = 11,
  kSparseTensors = 12,
  kTypeProto = 13,
  kTypeProtos = 14,
};

std::string_view kind_name(AttributeKind kind);  // "int", "floats", ...

// A value held elsewhere, so that attributes are small; copies share it.
template <class T>
class Held {
 public:
  Held(T value) : value_(std::make_shared<const T>(std::move(value))) {}  // NOLINT(google-explicit-constructor)
  const T& operator*() const { return *value_; }

 private:
  std::shared_ptr<const T> value_;
};

struct Attribute {
  std::string name;
  AttributeKind kind = AttributeKind::kUndefined;
  // Sparse tensors are held dense.
  std::variant<std::monostate, float, int64_t, std::string, Held<Tensor>, Held<Type>, std::vector<float>,
               std::vector<int64_t>, std::vector<std::string>, std::vector<Tensor>, std::vector<Type>>
      value;

  float as_float() const { return std::get<float>(value); }
  int64_t as_int() const { return std::get<int64_t>(value); }
  const std::string& as_string() const { return std::get<std::string>(value); }
  const Tensor& as_tensor() const { return *std::get<Held<Tensor>>(value); }
  const Type& as_type() const { return *std::get<Held<Type>>(value); }
  std::span<const float> as_floats() const { return std::get<std::vector<float>>(value); }
  std::span<const int64_t> as_ints() const { return std::get<std::vector<int64_t>>(value); }
  std::span<const std::string> as_strings() const { return std::get<std::vector<std::string>>(value); }
  std::span<const Tensor> as_tensors() const { return std::get<std::vector<Tensor>>(value); }

  static Attribute of(std::string name, float v) { return {std::move(name), AttributeKind::kFloat, v}; }
  static Attribute of(std::string name, int64_t v) { return {std::move(name), AttributeKind::kInt, v}; }
  static Attribute of(std::string name, int v) { return of(std::move(name), int64_t{v}); }
  static Attribute of(std::string name, std::string v) {
    return {std::move(name), AttributeKind::kString, std::move(v)};
  }
  static Attribute of(std::string name, Tensor v) { return {std::move(name), AttributeKind::kTensor, std::move(v)}; }
  static Attribute of(std::string name, Type v) { return {std::move(name), AttributeKind::kTypeProto, std::move(v)}; }
  static Attribute of(std::string name, std::vector<int64_t> v) {
    return {std::move(name), AttributeKind::kInts, std::move(v)};
  }
  static Attribute of(std::string name, std::vector<float> v) {
    return {std::move(name), AttributeKind::kFloats, std::move(v)};
  }
  static Attribute of(std::string name, std::vector<std::string> v) {
    return {std::move(name), AttributeKind::kStrings, std::move(v)};
  }
};

// The attributes of one node. Defaults of the operator's version are filled in when a node is made, so a lookup that
// finds nothing means: absent and without default. Copies share what they hold until one of them is changed.
class Attributes {
 public:
  const Attribute* find(std::string_view name) const {
    if (!list_) return nullptr;
    for (const Attribute& a : *list_) {
      if (a.name == name) return &a;
    }
    return nullptr;
  }
  bool has(std::string_view name) const { return find(name) != nullptr; }
  void set(Attribute attribute);
  void erase(std::string_view name);
  void reserve(size_t count) { own().reserve(count); }
  std::span<const Attribute> all() const {
    return list_ ? std::span<const Attribute>(*list_) : std::span<const Attribute>();
  }

  int64_t get_int(std::string_view name, int64_t otherwise = 0) const {
    const Attribute* a = find(name);
    return a ? a->as_int() : otherwise;
  }
  float get_float(std::string_view name, float otherwise = 0) const {
    const Attribute* a = find(name);
    return a ? a->as_float() : otherwise;
  }
  std::string_view get_string(std::string_view name, std::string_view otherwise = {}) const {
    const Attribute* a = find(name);
    return a ? std::string_view(a->as_string()) : otherwise;
  }
  std::span<const int64_t> get_ints(std::string_view name) const {
    const Attribute* a = find(name);
    return a ? a->as_ints() : std::span<const int64_t>();
  }
  std::span<const float> get_floats(std::string_view name) const {
    const Attribute* a = find(name);
    return a ? a->as_floats() : std::span<const float>();
  }
  std::span<const std::string> get_strings(std::string_view name) const {
    const Attribute* a = find(name);
    return a ? a->as_strings() : std::span<const std::string>();
  }

 private:
  std::vector<Attribute>& own();

  std::shared_ptr<std::vector<Attribute>> list_;  // null: none
};

}  // namespace treadle::ir
