#pragma once
// Attributes of a node. Attributes that are graphs are Regions of the node instead.

#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "type/tensor.h"
#include "type/type.h"

namespace treadle::ir {

// The numbers of AttributeProto.AttributeType.
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

// A value on the heap, which keeps attributes small. Copies share it.
template <class T>
class Held {
 public:
  Held(T value) : value_(std::make_shared<const T>(std::move(value))) {}  // NOLINT(google-explicit-constructor)
  const T& operator*() const { return *value_; }

 private:
  std::shared_ptr<const T> value_;
};

// Every file with an operator includes this header, so members that need the variant's functions are compiled once, in
// attribute.cc.
struct Attribute {
  // Sparse tensors are stored as dense ones.
  using Value = std::variant<std::monostate, float, int64_t, std::string, Held<Tensor>, Held<Type>, std::vector<float>,
                             std::vector<int64_t>, std::vector<std::string>, std::vector<Tensor>, std::vector<Type>>;

  Attribute();
  Attribute(std::string name, AttributeKind kind, Value value);
  Attribute(const Attribute&);
  Attribute(Attribute&&) noexcept;
  Attribute& operator=(const Attribute&);
  Attribute& operator=(Attribute&&) noexcept;
  ~Attribute();

  // Each is for attributes of its kind only.
  float as_float() const;
  int64_t as_int() const;
  const std::string& as_string() const;
  const Tensor& as_tensor() const;
  const Type& as_type() const;
  std::span<const float> as_floats() const;
  std::span<const int64_t> as_ints() const;
  std::span<const std::string> as_strings() const;
  std::span<const Tensor> as_tensors() const;

  static Attribute of(std::string name, float v);
  static Attribute of(std::string name, int64_t v);
  static Attribute of(std::string name, int v);
  static Attribute of(std::string name, std::string v);
  static Attribute of(std::string name, Tensor v);
  static Attribute of(std::string name, Type v);
  static Attribute of(std::string name, std::vector<int64_t> v);
  static Attribute of(std::string name, std::vector<float> v);
  static Attribute of(std::string name, std::vector<std::string> v);

  std::string name;
  AttributeKind kind = AttributeKind::kUndefined;
  Value value;
};

// The attributes of one node. A new node gets the defaults of its operator's version, so an attribute that is not found
// is absent and has no default. Copies share their list until one of them changes.
class Attributes {
 public:
  const Attribute* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  void set(Attribute attribute);
  void erase(std::string_view name);
  void reserve(size_t count);
  std::span<const Attribute> all() const {
    return list_ ? std::span<const Attribute>(*list_) : std::span<const Attribute>();
  }

  int64_t get_int(std::string_view name, int64_t otherwise = 0) const;
  float get_float(std::string_view name, float otherwise = 0) const;
  std::string_view get_string(std::string_view name, std::string_view otherwise = {}) const;
  std::span<const int64_t> get_ints(std::string_view name) const;
  std::span<const float> get_floats(std::string_view name) const;
  std::span<const std::string> get_strings(std::string_view name) const;

 private:
  std::vector<Attribute>& own();

  std::shared_ptr<std::vector<Attribute>> list_;  // null: no attributes
};

}  // namespace treadle::ir
