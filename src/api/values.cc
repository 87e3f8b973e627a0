#include <algorithm>
#include <cstring>

#include "api/handles.h"
#include "kernels/convert.h"

using namespace treadle;       // NOLINT(google-build-using-namespace): the whole file speaks of treadle's values
using namespace treadle::api;  // NOLINT(google-build-using-namespace)

namespace {

const Tensor* tensor_of(const treadle_value* value) {
  return value && value->value.is_tensor() ? &value->value.tensor() : nullptr;
}

// `name`: the argument's name.
Status require_kind(const char* name, const treadle_value* value, AnyValue::Kind kind, std::string_view what) {
  TREADLE_TRY(need({{name, value}}));
  if (value->value.kind() == kind) return {};
  return error(Code::kInvalidArgument, "argument '{}': expected {}, found {}", name, what,
               value->value.type().to_string());
}

// The number of elements. Errors: an unknown element type, a negative size, or a product that is too large.
Result<int64_t> checked_count(int element, const int64_t* dims, size_t rank) {
  if (element_type_from_number(element) == ElementType::kUndefined) {
    return error(Code::kInvalidArgument, "there is no element type {}", element);
  }
  TREADLE_TRY(need({{"dims", dims || rank == 0}}));
  const std::span<const int64_t> sizes(dims, rank);
  for (const int64_t d : sizes) {
    if (d < 0) return error(Code::kInvalidArgument, "a size is negative: {}", to_string(Dims(sizes)));
  }
  return element_count(sizes);
}

Result<Dims> checked_dims(int element, const int64_t* dims, size_t rank) {
  TREADLE_TRY(checked_count(element, dims, rank).status());
  return Dims(dims, dims + rank);
}

Result<AnyValue> deep_copy(const AnyValue& value) {
  switch (value.kind()) {
    case AnyValue::Kind::kNone:
      return AnyValue();
    case AnyValue::Kind::kTensor: {
      TREADLE_ASSIGN(Tensor copy, value.tensor().clone());
      return AnyValue(std::move(copy));
    }
    case AnyValue::Kind::kSequence: {
      std::vector<AnyValue> elements;
      elements.reserve(value.sequence().size());
      for (const AnyValue& element : value.sequence().elements()) {
        TREADLE_ASSIGN(AnyValue copy, deep_copy(element));
        elements.push_back(std::move(copy));
      }
      return AnyValue(Sequence(value.sequence().element_type(), std::move(elements)));
    }
    case AnyValue::Kind::kOptional: {
      Optional optional = value.optional();
      if (optional.value) {
        TREADLE_ASSIGN(AnyValue copy, deep_copy(*optional.value));
        optional.value = std::make_shared<const AnyValue>(std::move(copy));
      }
      return AnyValue(std::move(optional));
    }
    case AnyValue::Kind::kMap: {
      TREADLE_ASSIGN(Tensor keys, value.map().keys.clone());
      TREADLE_ASSIGN(Tensor values, value.map().values.clone());
      return AnyValue(Map{std::move(keys), std::move(values)});
    }
  }
  return AnyValue();
}

// Whether every element is a map with the same keys as the first, and numbers of the same type.
bool is_table(const Sequence& sequence) {
  if (sequence.size() == 0 || sequence[0].kind() != AnyValue::Kind::kMap) return false;
  const Map& first = sequence[0].map();
  if (is_string(first.values.type())) return false;
  for (const AnyValue& element : sequence.elements()) {
    if (element.kind() != AnyValue::Kind::kMap) return false;
    const Map& map = element.map();
    if (map.keys.raw() != first.keys.raw() || map.keys.element_count() != first.keys.element_count()) return false;
    if (map.keys.type() != first.keys.type() || map.values.type() != first.values.type()) return false;
  }
  return true;
}

// The values of a table; without a copy if they lie one after the other.
Result<Tensor> table_values(const Sequence& sequence) {
  const Tensor& first = sequence[0].map().values;
  const auto rows = static_cast<int64_t>(sequence.size());
  const size_t row_bytes = first.byte_size();
  const auto* begin = first.data<std::byte>();
  bool in_place = true;
  for (size_t i = 0; i < sequence.size() && in_place; ++i) {
    const Tensor& row = sequence[i].map().values;
    in_place = row.buffer().get() == first.buffer().get() && row.data<std::byte>() == begin + i * row_bytes;
  }
  const Dims dims = {rows, first.element_count()};
  if (in_place) return Tensor::from_buffer(first.type(), dims, first.buffer(), begin);
  TREADLE_ASSIGN(Tensor table, Tensor::allocate(first.type(), dims));
  for (size_t i = 0; i < sequence.size() && row_bytes > 0; ++i) {
    std::memcpy(table.mutable_data<std::byte>() + i * row_bytes, sequence[i].map().values.raw(), row_bytes);
  }
  return table;
}

// The type of an element without sizes, in which elements may differ.
Type element_type_of(const AnyValue& value) {
  return value.is_tensor() ? Type::tensor(value.tensor().type()) : value.type();
}

}  // namespace

extern "C" {

treadle_kind treadle_value_kind(const treadle_value* value) {
  if (!value) return TREADLE_NONE;
  switch (value->value.kind()) {
    case AnyValue::Kind::kNone:
      return TREADLE_NONE;
    case AnyValue::Kind::kTensor:
      return TREADLE_TENSOR;
    case AnyValue::Kind::kSequence:
      return TREADLE_SEQUENCE;
    case AnyValue::Kind::kOptional:
      return TREADLE_OPTIONAL;
    case AnyValue::Kind::kMap:
      return TREADLE_MAP;
  }
  return TREADLE_NONE;
}

char* treadle_value_type_text(const treadle_value* value) {
  return value ? give_or_null([&] { return value->value.type().to_string(); }) : nullptr;
}

treadle_status* treadle_value_copy(const treadle_value* value, treadle_value** copy) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"value", value}, {"copy", copy}}));
    *copy = new_value(value->value);
    return {};
  });
}

treadle_status* treadle_value_clone(const treadle_value* value, treadle_value** clone) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"value", value}, {"clone", clone}}));
    TREADLE_ASSIGN(AnyValue copy, deep_copy(value->value));
    *clone = new_value(std::move(copy));
    return {};
  });
}

void treadle_value_free(treadle_value* value) {
  delete value;
}

treadle_status* treadle_tensor_create(int element, const int64_t* dims, size_t rank, treadle_value** out) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"out", out}}));
    TREADLE_ASSIGN(Dims sizes, checked_dims(element, dims, rank));
    TREADLE_ASSIGN(Tensor tensor, Tensor::allocate(element_type_from_number(element), std::move(sizes)));
    *out = new_value(std::move(tensor));
    return {};
  });
}

treadle_status* treadle_tensor_borrow(int element, const int64_t* dims, size_t rank, void* data, size_t bytes,
                                      bool writable, void (*release)(void* context), void* context,
                                      treadle_value** out) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"out", out}}));
    TREADLE_ASSIGN(const int64_t count, checked_count(element, dims, rank));
    const std::span<const int64_t> sizes(dims, rank);
    const ElementType type = element_type_from_number(element);
    TREADLE_TRY(require(!is_string(type), "strings cannot be borrowed"));
    size_t needed = 0;
    if (__builtin_mul_overflow(static_cast<size_t>(count), byte_width(type), &needed) || needed > bytes) {
      return error(Code::kInvalidArgument, "a tensor {}{} does not fit into {} bytes", name(type),
                   to_string(Dims(sizes)), bytes);
    }
    TREADLE_TRY(need({{"data", data || needed == 0}}));
    const size_t alignment = std::min<size_t>(byte_width(type), alignof(int64_t));
    if (reinterpret_cast<uintptr_t>(data) % alignment != 0) {
      return error(Code::kInvalidArgument, "data of type {} must be aligned to {} bytes", name(type), alignment);
    }
    auto handle = std::make_unique<treadle_value>();
    handle->value = Tensor(type, sizes, count, BufferRef::wrap(data, bytes, writable, release, context));
    *out = handle.release();
    return {};
  });
}

treadle_status* treadle_tensor_from_texts(const int64_t* dims, size_t rank, const treadle_text* texts, size_t count,
                                          treadle_value** out) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"texts", texts || count == 0}, {"out", out}}));
    TREADLE_ASSIGN(Dims sizes, checked_dims(static_cast<int>(ElementType::kString), dims, rank));
    if (element_count_unchecked(sizes) != static_cast<int64_t>(count)) {
      return error(Code::kInvalidArgument, "{} strings do not make a tensor {}", count, to_string(sizes));
    }
    for (size_t i = 0; i < count; ++i) {
      if (texts[i].data || texts[i].size == 0) continue;
      return error(Code::kInvalidArgument, "element {} of argument 'texts' has {} bytes, and its data is NULL", i,
                   texts[i].size);
    }
    TREADLE_ASSIGN(Tensor tensor, Tensor::allocate(ElementType::kString, std::move(sizes)));
    String* strings = tensor.mutable_data<String>();
    for (size_t i = 0; i < count; ++i) strings[i].assign(texts[i].data, texts[i].size);
    *out = new_value(std::move(tensor));
    return {};
  });
}

int treadle_tensor_element(const treadle_value* tensor) {
  const Tensor* t = tensor_of(tensor);
  return t ? static_cast<int>(t->type()) : 0;
}

size_t treadle_tensor_rank(const treadle_value* tensor) {
  const Tensor* t = tensor_of(tensor);
  return t ? t->dims().size() : 0;
}

const int64_t* treadle_tensor_dims(const treadle_value* tensor) {
  const Tensor* t = tensor_of(tensor);
  return t ? t->dims().data() : nullptr;
}

int64_t treadle_tensor_count(const treadle_value* tensor) {
  const Tensor* t = tensor_of(tensor);
  return t ? t->element_count() : 0;
}

size_t treadle_tensor_bytes(const treadle_value* tensor) {
  const Tensor* t = tensor_of(tensor);
  return t && !is_string(t->type()) ? t->byte_size() : 0;
}

const void* treadle_tensor_data(const treadle_value* tensor) {
  const Tensor* t = tensor_of(tensor);
  return t && !is_string(t->type()) ? t->raw() : nullptr;
}

void* treadle_tensor_mutable_data(treadle_value* tensor) {
  const Tensor* t = tensor_of(tensor);
  if (!t || is_string(t->type()) || !t->buffer() || !t->buffer()->writable()) return nullptr;
  return tensor->value.tensor().mutable_raw();
}

bool treadle_tensor_is_exclusive(const treadle_value* tensor) {
  const Tensor* t = tensor_of(tensor);
  return t && t->exclusive();
}

treadle_status* treadle_tensor_to_doubles(const treadle_value* tensor, double* out) {
  return guarded([&]() -> Status {
    TREADLE_TRY(require_kind("tensor", tensor, AnyValue::Kind::kTensor, "a tensor"));
    const Tensor& t = tensor->value.tensor();
    TREADLE_TRY(need({{"out", out || t.element_count() == 0}}));
    if (is_string(t.type()) || info(t.type()).type_class == TypeClass::kComplex) {
      return error(Code::kInvalidArgument, "elements of type {} are no plain numbers", name(t.type()));
    }
    kernels::cast(t.type(), ElementType::kDouble, t.raw(), out, static_cast<size_t>(t.element_count()));
    return {};
  });
}

treadle_text treadle_tensor_text(const treadle_value* tensor, int64_t index) {
  const Tensor* t = tensor_of(tensor);
  if (!t || !is_string(t->type()) || index < 0 || index >= t->element_count()) return {nullptr, 0};
  const String& text = t->data<String>()[index];
  return {text.data(), text.size()};
}

treadle_status* treadle_sequence_create(const treadle_type* element, const treadle_value* const* values, size_t count,
                                        treadle_value** out) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"element", element || count > 0}, {"out", out}}));
    TREADLE_TRY(need_elements("values", values, count));
    std::vector<AnyValue> elements;
    elements.reserve(count);
    for (size_t i = 0; i < count; ++i) elements.push_back(values[i]->value);
    Type type = element ? *unwrap(element) : element_type_of(elements.front());
    for (size_t i = 0; i < count; ++i) {
      if (!same_structure(type, elements[i].type())) {
        return error(Code::kInvalidArgument, "element {} of a sequence of {} is a {}", i, type.to_string(),
                     elements[i].type().to_string());
      }
    }
    *out = new_value(Sequence(std::move(type), std::move(elements)));
    return {};
  });
}

size_t treadle_sequence_size(const treadle_value* sequence) {
  return sequence && sequence->value.kind() == AnyValue::Kind::kSequence ? sequence->value.sequence().size() : 0;
}

treadle_status* treadle_sequence_at(const treadle_value* sequence, size_t index, treadle_value** out) {
  return guarded([&]() -> Status {
    TREADLE_TRY(require_kind("sequence", sequence, AnyValue::Kind::kSequence, "a sequence"));
    TREADLE_TRY(need({{"out", out}}));
    const size_t size = sequence->value.sequence().size();
    if (index >= size) return error(Code::kInvalidArgument, "a sequence of {} has no element {}", size, index);
    *out = new_value(sequence->value.sequence()[index]);
    return {};
  });
}

treadle_status* treadle_optional_create(const treadle_type* element, const treadle_value* value, treadle_value** out) {
  return guarded([&]() -> Status {
    TREADLE_TRY(need({{"element", element || value}, {"out", out}}));
    Optional optional;
    optional.element_type = element ? *unwrap(element) : element_type_of(value->value);
    if (value) optional.value = std::make_shared<const AnyValue>(value->value);
    *out = new_value(std::move(optional));
    return {};
  });
}

bool treadle_optional_has_value(const treadle_value* optional) {
  return optional && optional->value.kind() == AnyValue::Kind::kOptional && optional->value.optional().value;
}

treadle_status* treadle_optional_get(const treadle_value* optional, treadle_value** out) {
  return guarded([&]() -> Status {
    TREADLE_TRY(require_kind("optional", optional, AnyValue::Kind::kOptional, "an optional"));
    TREADLE_TRY(need({{"out", out}}));
    TREADLE_TRY(require(optional->value.optional().value != nullptr, "the optional is empty"));
    *out = new_value(*optional->value.optional().value);
    return {};
  });
}

treadle_status* treadle_map_create(const treadle_value* keys, const treadle_value* values, treadle_value** out) {
  return guarded([&]() -> Status {
    TREADLE_TRY(require_kind("keys", keys, AnyValue::Kind::kTensor, "a tensor of keys"));
    TREADLE_TRY(require_kind("values", values, AnyValue::Kind::kTensor, "a tensor of values"));
    TREADLE_TRY(need({{"out", out}}));
    const Tensor& k = keys->value.tensor();
    const Tensor& v = values->value.tensor();
    TREADLE_TRY(require(k.rank() == 1 && k.dims() == v.dims(), "keys and values must be 1-D and equally long"));
    TREADLE_TRY(require(is_string(k.type()) || is_integer(k.type()), "keys are integers or strings"));
    *out = new_value(Map{k, v});
    return {};
  });
}

treadle_status* treadle_map_keys(const treadle_value* map, treadle_value** out) {
  return guarded([&]() -> Status {
    TREADLE_TRY(require_kind("map", map, AnyValue::Kind::kMap, "a map"));
    TREADLE_TRY(need({{"out", out}}));
    *out = new_value(map->value.map().keys);
    return {};
  });
}

treadle_status* treadle_map_values(const treadle_value* map, treadle_value** out) {
  return guarded([&]() -> Status {
    TREADLE_TRY(require_kind("map", map, AnyValue::Kind::kMap, "a map"));
    TREADLE_TRY(need({{"out", out}}));
    *out = new_value(map->value.map().values);
    return {};
  });
}

treadle_status* treadle_sequence_table(const treadle_value* sequence, treadle_value** keys, treadle_value** values) {
  return guarded([&]() -> Status {
    TREADLE_TRY(require_kind("sequence", sequence, AnyValue::Kind::kSequence, "a sequence"));
    TREADLE_TRY(need({{"keys", keys}, {"values", values}}));
    *keys = *values = nullptr;
    if (!is_table(sequence->value.sequence())) return {};
    TREADLE_ASSIGN(Tensor table, table_values(sequence->value.sequence()));
    *keys = new_value(sequence->value.sequence()[0].map().keys);
    *values = new_value(std::move(table));
    return {};
  });
}

}  // extern "C"
