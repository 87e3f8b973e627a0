#include "type/any_value.h"

namespace treadle {

Sequence::Sequence(Type element_type)
    : element_type_(std::move(element_type)), storage_(std::make_shared<std::vector<AnyValue>>()) {}

Sequence::Sequence(Type element_type, std::vector<AnyValue> elements)
    : element_type_(std::move(element_type)),
      storage_(std::make_shared<std::vector<AnyValue>>(std::move(elements))),
      size_(storage_->size()) {}

const AnyValue& Sequence::operator[](size_t i) const {
  return (*storage_)[i];
}

std::span<const AnyValue> Sequence::elements() const {
  return storage_ ? std::span<const AnyValue>(storage_->data(), size_) : std::span<const AnyValue>();
}

Sequence Sequence::appended(AnyValue value) const& {
  return Sequence(*this).appended(std::move(value));
}

Sequence Sequence::appended(AnyValue value) && {
  if (!storage_ || storage_->size() != size_) {
    // A longer sequence already uses this storage, so the copy gets storage of its own.
    const auto old = elements();
    storage_ = std::make_shared<std::vector<AnyValue>>(old.begin(), old.end());
  }
  storage_->push_back(std::move(value));
  ++size_;
  return std::move(*this);
}

Sequence Sequence::inserted(size_t position, AnyValue value) const {
  if (position == size_) return appended(std::move(value));
  const auto old = elements();
  std::vector<AnyValue> copy;
  copy.reserve(size_ + 1);
  copy.assign(old.begin(), old.end());
  copy.insert(copy.begin() + static_cast<std::ptrdiff_t>(position), std::move(value));
  return Sequence(element_type_, std::move(copy));
}

Sequence Sequence::erased(size_t position) const {
  Sequence out = *this;
  if (position + 1 == size_) {
    --out.size_;
    return out;
  }
  const auto old = elements();
  std::vector<AnyValue> copy(old.begin(), old.end());
  copy.erase(copy.begin() + static_cast<std::ptrdiff_t>(position));
  return Sequence(element_type_, std::move(copy));
}

Type AnyValue::type() const {
  switch (kind_) {
    case Kind::kNone:
      return {};
    case Kind::kTensor:
      return Type::tensor(tensor_.type(), to_shape(tensor_.dims()));
    case Kind::kSequence:
      return Type::sequence(sequence().element_type());
    case Kind::kOptional:
      return Type::optional(optional().element_type);
    case Kind::kMap:
      return Type::map(map().keys.type(), Type::tensor(map().values.type(), {}));
  }
  return {};
}

bool identical(const AnyValue& a, const AnyValue& b) {
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case AnyValue::Kind::kNone:
      return true;
    case AnyValue::Kind::kTensor:
      return identical(a.tensor(), b.tensor());
    case AnyValue::Kind::kSequence: {
      const auto x = a.sequence().elements();
      const auto y = b.sequence().elements();
      return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                        [](const AnyValue& p, const AnyValue& q) { return identical(p, q); });
    }
    case AnyValue::Kind::kOptional: {
      const auto& x = a.optional().value;
      const auto& y = b.optional().value;
      return !x || !y ? !x == !y : identical(*x, *y);
    }
    case AnyValue::Kind::kMap:
      return identical(a.map().keys, b.map().keys) && identical(a.map().values, b.map().values);
  }
  return false;
}

}  // namespace treadle
