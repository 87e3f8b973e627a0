#pragma once
// A value at run time: tensor, sequence, optional or map. Copies are cheap and share contents.

#include <memory>
#include <string>
#include <vector>

#include "type/tensor.h"
#include "type/type.h"

namespace treadle {

class AnyValue;

// A sequence is a prefix of shared storage. Appending to the longest prefix extends the storage in place. So building a
// sequence of n elements one by one costs O(n), and older prefixes do not change.
class Sequence {
 public:
  Sequence() = default;
  explicit Sequence(Type element_type);
  Sequence(Type element_type, std::vector<AnyValue> elements);

  const Type& element_type() const { return element_type_; }
  size_t size() const { return size_; }
  const AnyValue& operator[](size_t i) const;
  std::span<const AnyValue> elements() const;

  Sequence appended(AnyValue value) const&;
  Sequence appended(AnyValue value) &&;
  Sequence inserted(size_t position, AnyValue value) const;
  Sequence erased(size_t position) const;

 private:
  Type element_type_;
  std::shared_ptr<std::vector<AnyValue>> storage_;
  size_t size_ = 0;
};

struct Optional {
  Type element_type;
  std::shared_ptr<const AnyValue> value;  // null: empty
};

// Keys (int64 or string) in order of insertion, and as many values of one element type (a 1-D tensor).
struct Map {
  Tensor keys;
  Tensor values;
};

class AnyValue {
 public:
  enum class Kind : uint8_t { kNone, kTensor, kSequence, kOptional, kMap };

  AnyValue() = default;
  AnyValue(Tensor tensor) : kind_(Kind::kTensor), tensor_(std::move(tensor)) {}
  AnyValue(Sequence sequence) : kind_(Kind::kSequence), other_(std::make_shared<Other>(std::move(sequence))) {}
  AnyValue(Optional optional) : kind_(Kind::kOptional), other_(std::make_shared<Other>(std::move(optional))) {}
  AnyValue(Map map) : kind_(Kind::kMap), other_(std::make_shared<Other>(std::move(map))) {}

  Kind kind() const { return kind_; }
  bool is_none() const { return kind_ == Kind::kNone; }
  bool is_tensor() const { return kind_ == Kind::kTensor; }
  const Tensor& tensor() const { return tensor_; }
  Tensor& tensor() { return tensor_; }
  const Sequence& sequence() const { return other_->sequence; }
  const Optional& optional() const { return other_->optional; }
  const Map& map() const { return other_->map; }

  // The type, with known sizes.
  Type type() const;

 private:
  struct Other {
    explicit Other(Sequence s) : sequence(std::move(s)) {}
    explicit Other(Optional o) : optional(std::move(o)) {}
    explicit Other(Map m) : map(std::move(m)) {}
    Sequence sequence;
    Optional optional;
    Map map;
  };
  Kind kind_ = Kind::kNone;
  Tensor tensor_;
  std::shared_ptr<Other> other_;
};

bool identical(const AnyValue& a, const AnyValue& b);

}  // namespace treadle
