#include "model/value_file.h"

#include <cstring>
#include <deque>

#include "model/tensor_reader.h"
#include "model/tensor_writer.h"
#include "wire/parse.h"
#include "wire/serialize.h"

namespace treadle::model {

namespace {

const Type& child_of(const Type& type) {
  static const Type unknown{};
  return type.child ? *type.child : unknown;
}

class ValueReader {
 public:
  explicit ValueReader(TensorReader& tensors) : tensors_(tensors) {}

  Result<AnyValue> read(const wire::TensorProto& proto) {
    TREADLE_ASSIGN(Tensor tensor, tensors_.read(proto));
    return AnyValue(std::move(tensor));
  }

  Result<AnyValue> read(const wire::SparseTensorProto& proto) {
    TREADLE_ASSIGN(Tensor tensor, tensors_.read_dense(proto));
    return AnyValue(std::move(tensor));
  }

  Result<AnyValue> read(const wire::SequenceProto& proto, const Type& type) {
    std::vector<AnyValue> elements;
    const Type& declared = child_of(type);
    TREADLE_TRY(append(proto.tensors, elements));
    TREADLE_TRY(append(proto.sparse_tensors, elements));
    TREADLE_TRY(append(proto.sequences, elements, declared));
    TREADLE_TRY(append(proto.maps, elements));
    TREADLE_TRY(append(proto.optionals, elements, declared));
    Type element = declared;
    if (!declared.is_known() && !elements.empty()) {
      element = elements[0].type();
      for (const AnyValue& value : elements) {
        TREADLE_ASSIGN(element, unite(element, value.type()));
      }
    }
    return AnyValue(Sequence(std::move(element), std::move(elements)));
  }

  Result<AnyValue> read(const wire::OptionalProto& proto, const Type& type) {
    Optional optional{child_of(type), nullptr};
    AnyValue value;
    if (proto.tensor) {
      TREADLE_ASSIGN(value, read(*proto.tensor));
    } else if (proto.sparse_tensor) {
      TREADLE_ASSIGN(value, read(*proto.sparse_tensor));
    } else if (proto.sequence) {
      TREADLE_ASSIGN(value, read(*proto.sequence, child_of(type)));
    } else if (proto.map) {
      TREADLE_ASSIGN(value, read(*proto.map));
    } else if (proto.optional) {
      TREADLE_ASSIGN(value, read(*proto.optional, child_of(type)));
    }
    if (!value.is_none()) {
      if (!optional.element_type.is_known()) optional.element_type = value.type();
      optional.value = std::make_shared<const AnyValue>(std::move(value));
    }
    return AnyValue(std::move(optional));
  }

  Result<AnyValue> read(const wire::MapProto& proto) {
    TREADLE_ASSIGN(Tensor keys, read_keys(proto));
    const wire::List<wire::TensorProto>& entries = proto.values.tensors;
    if (entries.size() != static_cast<size_t>(keys.element_count())) {
      return error(Code::kInvalidModel, "expected a value for each of {} keys of a map, found {}", keys.element_count(),
                   entries.size());
    }
    if (entries.empty()) {
      TREADLE_ASSIGN(Tensor none, Tensor::allocate(ElementType::kFloat, {0}));
      return AnyValue(Map{std::move(keys), std::move(none)});
    }
    Tensor values;
    for (size_t i = 0; i < entries.size(); ++i) {
      TREADLE_ASSIGN(const Tensor entry, tensors_.read(entries[i]));
      if (i == 0) {
        TREADLE_ASSIGN(values, Tensor::allocate(entry.type(), {static_cast<int64_t>(entries.size())}));
      }
      if (entry.element_count() != 1 || entry.type() != values.type()) {
        return error(Code::kInvalidModel, "expected a scalar {} as value of a map, found {}{}", name(values.type()),
                     name(entry.type()), to_string(entry.dims()));
      }
      copy_element(entry, values, i);
    }
    return AnyValue(Map{std::move(keys), std::move(values)});
  }

 private:
  template <class Proto, class... Declared>
  Status append(const wire::List<Proto>& protos, std::vector<AnyValue>& elements, const Declared&... declared) {
    for (const Proto& proto : protos) {
      TREADLE_ASSIGN(AnyValue value, read(proto, declared...));
      elements.push_back(std::move(value));
    }
    return {};
  }

  static Result<Tensor> read_keys(const wire::MapProto& proto) {
    if (!proto.string_keys.empty() || proto.key_type == static_cast<int32_t>(ElementType::kString)) {
      TREADLE_ASSIGN(Tensor keys,
                     Tensor::allocate(ElementType::kString, {static_cast<int64_t>(proto.string_keys.size())}));
      std::copy(proto.string_keys.begin(), proto.string_keys.end(), keys.mutable_data<String>());
      return keys;
    }
    return Tensor::of_int64(proto.keys);
  }

  static void copy_element(const Tensor& from, Tensor& to, size_t i) {
    if (is_string(from.type())) {
      to.mutable_data<String>()[i] = *from.data<String>();
    } else {
      const size_t width = byte_width(from.type());
      std::memcpy(to.mutable_data<std::byte>() + i * width, from.raw(), width);
    }
  }

  TensorReader& tensors_;
};

// Builds messages whose views point into the values and into texts of this object.
class ValueWriter {
 public:
  wire::TensorProto tensor(const Tensor& tensor, std::string_view name = {}) {
    return write_tensor(tensor, name, arena_);
  }

  wire::SequenceProto sequence(const Sequence& sequence, std::string_view name = {}) {
    wire::SequenceProto proto;
    if (!name.empty()) proto.name = name;
    proto.elem_type = kind_of(sequence.element_type());
    for (const AnyValue& value : sequence.elements()) {
      switch (value.kind()) {
        case AnyValue::Kind::kNone:
          break;
        case AnyValue::Kind::kTensor:
          proto.elem_type = wire::kTensorValue;
          proto.tensors.add(arena_, tensor(value.tensor()));
          break;
        case AnyValue::Kind::kSequence:
          proto.elem_type = wire::kSequenceValue;
          proto.sequences.add(arena_, this->sequence(value.sequence()));
          break;
        case AnyValue::Kind::kOptional:
          proto.elem_type = wire::kOptionalValue;
          proto.optionals.add(arena_, optional(value.optional()));
          break;
        case AnyValue::Kind::kMap:
          proto.elem_type = wire::kMapValue;
          proto.maps.add(arena_, map(value.map()));
          break;
      }
    }
    return proto;
  }

  wire::OptionalProto optional(const Optional& optional, std::string_view name = {}) {
    wire::OptionalProto proto;
    if (!name.empty()) proto.name = name;
    proto.elem_type = kind_of(optional.element_type);
    if (!optional.value) return proto;
    const AnyValue& value = *optional.value;
    switch (value.kind()) {
      case AnyValue::Kind::kNone:
        break;
      case AnyValue::Kind::kTensor:
        proto.elem_type = wire::kTensorValue;
        proto.tensor = arena_.make<wire::TensorProto>(tensor(value.tensor()));
        break;
      case AnyValue::Kind::kSequence:
        proto.elem_type = wire::kSequenceValue;
        proto.sequence = arena_.make<wire::SequenceProto>(sequence(value.sequence()));
        break;
      case AnyValue::Kind::kOptional:
        proto.elem_type = wire::kOptionalValue;
        proto.optional = arena_.make<wire::OptionalProto>(this->optional(value.optional()));
        break;
      case AnyValue::Kind::kMap:
        proto.elem_type = wire::kMapValue;
        proto.map = arena_.make<wire::MapProto>(map(value.map()));
        break;
    }
    return proto;
  }

  wire::MapProto map(const Map& map, std::string_view name = {}) {
    wire::MapProto proto;
    if (!name.empty()) proto.name = name;
    proto.key_type = static_cast<int32_t>(map.keys.type());
    if (is_string(map.keys.type())) {
      for (const String& key : map.keys.span<String>()) proto.string_keys.add(arena_, key);
    } else {
      const auto keys = map.keys.to_int64s();
      proto.keys.append(arena_, keys.begin(), keys.end());
    }
    proto.values.elem_type = wire::kTensorValue;
    for (int64_t i = 0; i < map.values.element_count(); ++i) {
      const std::byte* element = map.values.data<std::byte>() + static_cast<size_t>(i) * byte_width(map.values.type());
      proto.values.tensors.add(arena_,
                               tensor(Tensor::from_buffer(map.values.type(), {}, map.values.buffer(), element)));
    }
    return proto;
  }

 private:
  static wire::ValueKind kind_of(const Type& type) {
    switch (type.kind) {
      case Type::Kind::kUnknown:
        return wire::kUndefinedValue;
      case Type::Kind::kTensor:
        return wire::kTensorValue;
      case Type::Kind::kSparseTensor:
        return wire::kSparseTensorValue;
      case Type::Kind::kSequence:
        return wire::kSequenceValue;
      case Type::Kind::kOptional:
        return wire::kOptionalValue;
      case Type::Kind::kMap:
        return wire::kMapValue;
    }
    return wire::kUndefinedValue;
  }

  Arena arena_;
};

}  // namespace

namespace {

Result<AnyValue> read_value(const std::shared_ptr<wire::MappedFile>& file, const Type& type, TensorReader& tensors) {
  const std::string_view bytes = file->bytes();
  ValueReader reader(tensors);
  switch (type.kind) {
    case Type::Kind::kUnknown:
    case Type::Kind::kTensor: {
      TREADLE_ASSIGN(const auto proto, wire::parse_tensor(bytes));
      return reader.read(*proto);
    }
    case Type::Kind::kSparseTensor: {
      TREADLE_ASSIGN(const auto proto, wire::parse_sparse_tensor(bytes));
      return reader.read(*proto);
    }
    case Type::Kind::kSequence: {
      TREADLE_ASSIGN(const auto proto, wire::parse_sequence(bytes));
      return reader.read(*proto, type);
    }
    case Type::Kind::kOptional: {
      TREADLE_ASSIGN(const auto proto, wire::parse_optional(bytes));
      return reader.read(*proto, type);
    }
    case Type::Kind::kMap: {
      TREADLE_ASSIGN(const auto proto, wire::parse_map(bytes));
      return reader.read(*proto);
    }
  }
  return error(Code::kInternal, "a type of no kind");
}

}  // namespace

Result<AnyValue> read_value(const std::shared_ptr<wire::MappedFile>& file, const Type& type) {
  TensorReader tensors(file, file->data_folders());
  tensors.unshare_copies();
  tensors.copy_contents();
  auto value = read_value(file, type, tensors);
  TREADLE_TRY(tensors.unchanged());
  return value;
}

Result<std::string> write_value(const AnyValue& value, std::string_view name) {
  ValueWriter writer;
  switch (value.kind()) {
    case AnyValue::Kind::kNone:
      break;
    case AnyValue::Kind::kTensor:
      return wire::serialize(writer.tensor(value.tensor(), name));
    case AnyValue::Kind::kSequence:
      return wire::serialize(writer.sequence(value.sequence(), name));
    case AnyValue::Kind::kOptional:
      return wire::serialize(writer.optional(value.optional(), name));
    case AnyValue::Kind::kMap:
      return wire::serialize(writer.map(value.map(), name));
  }
  return error(Code::kInvalidArgument, "expected a value to write, found none");
}

}  // namespace treadle::model
