#include "values.h"

#include <algorithm>
#include <cstring>

#include "memory.h"

namespace treadle::dropin {

namespace {

constexpr int kUint4 = 21, kInt4 = 22, kFloat4 = 23, kUint2 = 24, kInt2 = 25;

bool is_signed(int element) {
  return element == kInt4 || element == kInt2;
}

size_t elements_of(const OrtTensorTypeAndShapeInfo& info) {
  const int64_t count = info.count();
  if (count < 0) refuse_argument("a tensor has sizes of 0 or more, found " + text_of(info));
  return static_cast<size_t>(count);
}

}  // namespace

int Staged::per_byte(int element) {
  switch (element) {
    case kUint4:
    case kInt4:
    case kFloat4:
      return 2;
    case kUint2:
    case kInt2:
      return 4;
    default:
      return 1;
  }
}

Staged::Staged(int element, const int64_t* dims, size_t rank) : info_(describe_tensor(element, dims, rank)) {
  const size_t count = elements_of(info_), in_byte = static_cast<size_t>(per_byte(element));
  if (element == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) {
    texts_.resize(count);
  } else {
    own_.resize((count + in_byte - 1) / in_byte);
    memory_ = own_.data();
    bytes_ = own_.size();
  }
}

Staged::Staged(int element, const int64_t* dims, size_t rank, void* memory, size_t bytes)
    : info_(describe_tensor(element, dims, rank)), memory_(static_cast<unsigned char*>(memory)) {
  const size_t count = elements_of(info_), in_byte = static_cast<size_t>(per_byte(element));
  bytes_ = (count + in_byte - 1) / in_byte;
  if (bytes < bytes_) {
    refuse_argument(text_of(info_) + " takes " + std::to_string(bytes_) + " bytes, found " + std::to_string(bytes));
  }
}

Staged::Staged(const treadle_value* value)
    : Staged(treadle_tensor_element(value), treadle_tensor_dims(value), treadle_tensor_rank(value)) {
  write(value);
}

std::vector<std::string>& Staged::texts() {
  if (info_.element != ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) {
    refuse_argument("expected a tensor of texts, found " + text_of(info_));
  }
  return texts_;
}

void* Staged::memory() {
  if (info_.element == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) {
    refuse_argument("a tensor of texts is read and written by the functions for texts");
  }
  return memory_;
}

Handle Staged::read() const {
  treadle_value* value = nullptr;
  const size_t count = elements_of(info_);
  if (info_.element == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) {
    std::vector<treadle_text> texts;
    texts.reserve(count);
    for (const std::string& text : texts_) texts.push_back({text.data(), text.size()});
    check(treadle_tensor_from_texts(info_.dims.data(), info_.dims.size(), texts.data(), count, &value));
    return own(value);
  }
  check(treadle_tensor_create(info_.element, info_.dims.data(), info_.dims.size(), &value));
  Handle handle = own(value);
  auto* const to = static_cast<unsigned char*>(treadle_tensor_mutable_data(value));
  const size_t in_byte = static_cast<size_t>(per_byte(info_.element)), bits = 8 / in_byte;
  for (size_t i = 0; i < count; ++i) {
    const unsigned char low = memory_[i / in_byte] >> (i % in_byte * bits) & ((1U << bits) - 1);
    const bool negative = is_signed(info_.element) && low >> (bits - 1) != 0;
    to[i] = negative ? static_cast<unsigned char>(low | 0xFFU << bits) : low;
  }
  return handle;
}

void Staged::write(const treadle_value* value) {
  const size_t count = elements_of(info_);
  if (info_.element == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) {
    for (size_t i = 0; i < count; ++i) {
      const treadle_text text = treadle_tensor_text(value, static_cast<int64_t>(i));
      texts_[i].assign(text.data ? text.data : "", text.size);
    }
    return;
  }
  const auto* const from = static_cast<const unsigned char*>(treadle_tensor_data(value));
  const size_t in_byte = static_cast<size_t>(per_byte(info_.element)), bits = 8 / in_byte;
  std::fill_n(memory_, bytes_, 0);
  for (size_t i = 0; i < count; ++i) {
    memory_[i / in_byte] |= static_cast<unsigned char>((from[i] & ((1U << bits) - 1)) << (i % in_byte * bits));
  }
}

void Feeds::add(const OrtValue* value) {
  if (value && value->staged) {
    read_.push_back(value->staged->read());
    values_.push_back(read_.back().get());
  } else {
    values_.push_back(value ? value->handle.get() : nullptr);
  }
}

namespace {

Handle share_handle(const treadle_value* value) {
  treadle_value* copy = nullptr;
  if (value) check(treadle_value_copy(value, &copy));
  return own(copy);
}

// onnxruntime has no optional values: there are only the contents, or NULL.
Handle without_optional(Handle value) {
  while (value && treadle_value_kind(value.get()) == TREADLE_OPTIONAL) {
    treadle_value* inner = nullptr;
    if (treadle_optional_has_value(value.get())) check(treadle_optional_get(value.get(), &inner));
    value = own(inner);
  }
  return value;
}

const treadle_value* tensor_in(const OrtValue* value) {
  require(value, "a value is missing");
  if (!value->is_tensor()) refuse_argument("expected a tensor, found another kind of value");
  return value->handle.get();
}

const void* data_of(const OrtValue* value) {
  const treadle_value* const tensor = tensor_in(value);
  return value->staged ? value->staged->memory() : treadle_tensor_data(tensor);
}

// A result that is a constant of the model is copied before a client may write to it.
void* data_to_write(OrtValue* value) {
  const treadle_value* const tensor = tensor_in(value);
  if (value->staged) return value->staged->memory();
  if (treadle_tensor_count(tensor) > 0 && !treadle_tensor_mutable_data(value->handle.get())) {
    treadle_value* clone = nullptr;
    check(treadle_value_clone(tensor, &clone));
    value->handle = own(clone);
  }
  return treadle_tensor_mutable_data(value->handle.get());
}

std::vector<std::string>& texts_in(const OrtValue* value) {
  tensor_in(value);
  if (!value->staged) refuse_argument("expected a tensor of texts, found " + text_of(value->info()));
  return value->staged->texts();
}

std::string& text_in(const OrtValue* value, size_t index) {
  std::vector<std::string>& texts = texts_in(value);
  if (index >= texts.size()) {
    refuse_argument("there is no text " + std::to_string(index) + " among " + std::to_string(texts.size()));
  }
  return texts[index];
}

OrtTypeInfo type_of(const treadle_value* value) {
  OrtTypeInfo type;
  type.kind = kind_of(treadle_value_kind(value));
  const auto child = [](auto get, const treadle_value* of) {
    treadle_value* part = nullptr;
    check(get(of, &part));
    const Handle handle = own(part);
    return std::make_shared<const OrtTypeInfo>(type_of(part));
  };
  switch (treadle_value_kind(value)) {
    case TREADLE_TENSOR:
      type.tensor =
          describe_tensor(treadle_tensor_element(value), treadle_tensor_dims(value), treadle_tensor_rank(value));
      break;
    case TREADLE_SEQUENCE:
      if (treadle_sequence_size(value) > 0) {
        type.sequence.element =
            child([](const treadle_value* v, treadle_value** out) { return treadle_sequence_at(v, 0, out); }, value);
      }
      break;
    case TREADLE_MAP: {
      treadle_value* keys = nullptr;
      check(treadle_map_keys(value, &keys));
      const Handle handle = own(keys);
      type.map = {treadle_tensor_element(keys), child(treadle_map_values, value)};
      break;
    }
    default:
      break;
  }
  return type;
}

}  // namespace

}  // namespace treadle::dropin

OrtValue::OrtValue(treadle::dropin::Handle value) : handle(treadle::dropin::without_optional(std::move(value))) {
  using treadle::dropin::Staged;
  if (handle && treadle_value_kind(handle.get()) == TREADLE_TENSOR &&
      Staged::stages(treadle_tensor_element(handle.get()))) {
    staged = std::make_shared<Staged>(handle.get());
    handle.reset();
  }
}

OrtValue OrtValue::share() const {
  OrtValue shared;
  shared.handle = treadle::dropin::share_handle(handle.get());
  shared.staged = staged;
  return shared;
}

OrtValue OrtValue::place() {
  using treadle::dropin::check;
  OrtValue shared = share();
  if (staged || !is_tensor()) return shared;
  void* const memory = treadle::dropin::data_to_write(this);
  treadle_value* const tensor = handle.get();
  treadle_value *kept = nullptr, *place = nullptr;
  check(treadle_value_copy(tensor, &kept));
  const auto release = [](void* value) { treadle_value_free(static_cast<treadle_value*>(value)); };
  treadle_status* const status =
      treadle_tensor_borrow(treadle_tensor_element(tensor), treadle_tensor_dims(tensor), treadle_tensor_rank(tensor),
                            memory, treadle_tensor_bytes(tensor), true, release, kept, &place);
  if (status) treadle_value_free(kept);
  check(status);
  shared.handle.reset(place);
  return shared;
}

bool OrtValue::is_tensor() const {
  return staged || (handle && treadle_value_kind(handle.get()) == TREADLE_TENSOR);
}

bool OrtValue::is_absent() const {
  return !staged && (!handle || treadle_value_kind(handle.get()) == TREADLE_NONE);
}

OrtTensorTypeAndShapeInfo OrtValue::info() const {
  if (staged) return staged->info();
  const treadle_value* const tensor = treadle::dropin::tensor_in(this);
  return treadle::dropin::describe_tensor(treadle_tensor_element(tensor), treadle_tensor_dims(tensor),
                                          treadle_tensor_rank(tensor));
}

namespace treadle::dropin::api {

void CreateTensorAsOrtValue(OrtAllocator*, const int64_t* dims, size_t rank, ONNXTensorElementDataType element,
                            OrtValue** out) {
  if (Staged::stages(element)) {
    *out = new OrtValue(std::make_shared<Staged>(element, dims, rank));
    return;
  }
  treadle_value* value = nullptr;
  check(treadle_tensor_create(element, dims, rank, &value));
  *out = new OrtValue(own(value));
}

void CreateTensorWithDataAsOrtValue(const OrtMemoryInfo* memory, void* data, size_t bytes, const int64_t* dims,
                                    size_t rank, ONNXTensorElementDataType element, OrtValue** out) {
  require_cpu(memory);
  if (element == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) refuse_argument("texts cannot be borrowed");
  if (Staged::stages(element)) {
    *out = new OrtValue(std::make_shared<Staged>(element, dims, rank, data, bytes));
    return;
  }
  treadle_value* value = nullptr;
  check(treadle_tensor_borrow(element, dims, rank, data, bytes, true, nullptr, nullptr, &value));
  *out = new OrtValue(own(value));
}

void CreateTensorWithDataAndDeleterAsOrtValue(OrtAllocator* deleter, void* data, size_t bytes, const int64_t* dims,
                                              size_t rank, ONNXTensorElementDataType element, OrtValue** out) {
  require(deleter, "the allocator that frees the memory is missing");
  needed_member("OrtAllocator::Free", deleter->Free);
  if (Staged::stages(element)) refuse_argument("only elements of whole bytes can be handed over");
  struct Owner {
    OrtAllocator* deleter;
    void* data;
  };
  auto* const owner = new Owner{deleter, data};
  const auto release = [](void* context) {
    const std::unique_ptr<Owner> owned(static_cast<Owner*>(context));
    owned->deleter->Free(owned->deleter, owned->data);
  };
  treadle_value* value = nullptr;
  treadle_status* const status = treadle_tensor_borrow(element, dims, rank, data, bytes, true, release, owner, &value);
  if (status) delete owner;  // the memory stays the client's
  check(status);
  *out = new OrtValue(own(value));
}

void ReleaseValue(OrtValue* value) {
  delete value;
}

void IsTensor(const OrtValue* value, int* out) {
  *out = value->is_tensor() ? 1 : 0;
}

void IsSparseTensor(const OrtValue*, int* out) {
  *out = 0;
}

void HasValue(const OrtValue* value, int* out) {
  *out = value->is_absent() ? 0 : 1;
}

void GetTensorMutableData(OrtValue* value, void** out) {
  *out = data_to_write(value);
}

void GetTensorData(const OrtValue* value, const void** out) {
  *out = data_of(value);
}

void GetTensorSizeInBytes(const OrtValue* value, size_t* out) {
  const treadle_value* const tensor = tensor_in(value);
  if (value->staged) value->staged->memory();  // throws for texts
  *out = value->staged ? value->staged->bytes() : treadle_tensor_bytes(tensor);
}

void TensorAt(OrtValue* value, const int64_t* position, size_t count, void** out) {
  const OrtTensorTypeAndShapeInfo info = value->info();
  if (value->staged) refuse_argument("elements of " + text_of(info) + " have no address of their own");
  if (count != info.dims.size()) {
    refuse_argument("expected a position of " + std::to_string(info.dims.size()) + " numbers, found " +
                    std::to_string(count));
  }
  int64_t at = 0;
  for (size_t i = 0; i < count; ++i) {
    if (position[i] < 0 || position[i] >= info.dims[i]) {
      refuse_argument("position " + std::to_string(position[i]) + " is outside of axis " + std::to_string(i) + " of " +
                      text_of(info));
    }
    at = at * info.dims[i] + position[i];
  }
  *out = static_cast<char*>(data_to_write(value)) + static_cast<size_t>(at) * treadle_element_width(info.element);
}

void GetTensorTypeAndShape(const OrtValue* value, OrtTensorTypeAndShapeInfo** out) {
  *out = new OrtTensorTypeAndShapeInfo(value->info());
}

void GetTensorElementTypeAndShapeDataReference(const OrtValue* value, ONNXTensorElementDataType* element,
                                               const int64_t** dims, size_t* rank) {
  const treadle_value* const tensor = tensor_in(value);
  const OrtTensorTypeAndShapeInfo* const info = value->staged ? &value->staged->info() : nullptr;
  *element = static_cast<ONNXTensorElementDataType>(info ? info->element : treadle_tensor_element(tensor));
  *dims = info ? info->dims.data() : treadle_tensor_dims(tensor);
  *rank = info ? info->dims.size() : treadle_tensor_rank(tensor);
}

void GetTypeInfo(const OrtValue* value, OrtTypeInfo** out) {
  if (value->is_absent()) {
    *out = nullptr;
  } else if (value->staged) {
    *out = new OrtTypeInfo{.kind = ONNX_TYPE_TENSOR, .tensor = value->info()};
  } else {
    *out = new OrtTypeInfo(type_of(value->handle.get()));
  }
}

void GetValueType(const OrtValue* value, ONNXType* out) {
  *out = value->staged   ? ONNX_TYPE_TENSOR
         : value->handle ? kind_of(treadle_value_kind(value->handle.get()))
                         : ONNX_TYPE_UNKNOWN;
}

void GetTensorMemoryInfo(const OrtValue*, const OrtMemoryInfo** out) {
  *out = &cpu_memory();
}

// --- texts

void FillStringTensor(OrtValue* value, const char* const* texts, size_t count) {
  std::vector<std::string>& to = texts_in(value);
  if (count != to.size()) {
    refuse_argument("expected " + std::to_string(to.size()) + " texts, found " + std::to_string(count));
  }
  for (size_t i = 0; i < count; ++i) {
    if (!texts[i]) refuse_argument("text " + std::to_string(i) + " is NULL");
    to[i] = texts[i];
  }
}

void FillStringTensorElement(OrtValue* value, const char* text, size_t index) {
  text_in(value, index) = text;
}

void GetResizedStringTensorElementBuffer(OrtValue* value, size_t index, size_t bytes, char** buffer) {
  std::string& text = text_in(value, index);
  text.resize(bytes);
  *buffer = text.data();
}

void GetStringTensorDataLength(const OrtValue* value, size_t* out) {
  *out = 0;
  for (const std::string& text : texts_in(value)) *out += text.size();
}

// All texts in one array of bytes, and their beginnings.
void GetStringTensorContent(const OrtValue* value, void* bytes, size_t size, size_t* offsets, size_t count) {
  const std::vector<std::string>& texts = texts_in(value);
  if (count < texts.size()) {
    refuse_argument("expected room for " + std::to_string(texts.size()) + " offsets, found " + std::to_string(count));
  }
  size_t at = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].size() > size - at) refuse_argument("the texts take more than " + std::to_string(size) + " bytes");
    std::memcpy(static_cast<char*>(bytes) + at, texts[i].data(), texts[i].size());
    offsets[i] = at;
    at += texts[i].size();
  }
}

void GetStringTensorElementLength(const OrtValue* value, size_t index, size_t* out) {
  *out = text_in(value, index).size();
}

void GetStringTensorElement(const OrtValue* value, size_t size, size_t index, void* out) {
  const std::string& text = text_in(value, index);
  if (text.size() > size) {
    refuse_argument("text " + std::to_string(index) + " takes " + std::to_string(text.size()) +
                    " bytes, found room for " + std::to_string(size));
  }
  require(out || text.empty(), "GetStringTensorElement: argument 4 (void*) is NULL");
  if (!text.empty()) std::memcpy(out, text.data(), text.size());
}

// --- sequences and maps

void GetValueCount(const OrtValue* value, size_t* out) {
  const treadle_kind kind = value->handle ? treadle_value_kind(value->handle.get()) : TREADLE_NONE;
  if (kind != TREADLE_SEQUENCE && kind != TREADLE_MAP) refuse_argument("expected a sequence or a map");
  *out = kind == TREADLE_MAP ? 2 : treadle_sequence_size(value->handle.get());
}

// Index 0 of a map is the keys, index 1 the values.
void GetValue(const OrtValue* value, int index, OrtAllocator*, OrtValue** out) {
  size_t count = 0;
  GetValueCount(value, &count);
  if (index < 0 || static_cast<size_t>(index) >= count) {
    refuse_argument("there is no value " + std::to_string(index) + " among " + std::to_string(count));
  }
  const treadle_value* const whole = value->handle.get();
  treadle_value* part = nullptr;
  if (treadle_value_kind(whole) == TREADLE_SEQUENCE) {
    check(treadle_sequence_at(whole, static_cast<size_t>(index), &part));
  } else {
    check(index == 0 ? treadle_map_keys(whole, &part) : treadle_map_values(whole, &part));
  }
  *out = new OrtValue(own(part));
}

void CreateValue(const OrtValue* const* values, size_t count, ONNXType kind, OrtValue** out) {
  Feeds parts;
  for (size_t i = 0; i < count; ++i) parts.add(values[i]);
  treadle_value* whole = nullptr;
  if (kind == ONNX_TYPE_SEQUENCE) {
    for (size_t i = 0; i < count; ++i) {
      const treadle_kind found = treadle_value_kind(parts.values()[i]);
      require(found == TREADLE_TENSOR || found == TREADLE_MAP, "a sequence is made of tensors or of maps");
    }
    check(treadle_sequence_create(nullptr, parts.values(), count, &whole));
  } else if (kind == ONNX_TYPE_MAP) {
    require(count == 2, "a map is made of two tensors: its keys and its values");
    check(treadle_map_create(parts.values()[0], parts.values()[1], &whole));
  } else {
    refuse_argument("only sequences and maps are made of values");
  }
  *out = new OrtValue(own(whole));
}

void CopyTensors(const OrtEnv*, const OrtValue* const* from, OrtValue* const* to, OrtSyncStream*, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const OrtTensorTypeAndShapeInfo info = from[i]->info(), room = to[i]->info();
    if (info.element != room.element || info.dims != room.dims) {
      refuse_argument("expected a tensor " + text_of(info) + " to copy to, found " + text_of(room));
    }
    if (info.element == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) {
      texts_in(to[i]) = texts_in(from[i]);
      continue;
    }
    size_t bytes = 0;
    GetTensorSizeInBytes(from[i], &bytes);
    if (bytes > 0) std::memcpy(data_to_write(to[i]), data_of(from[i]), bytes);
  }
}

}  // namespace treadle::dropin::api
