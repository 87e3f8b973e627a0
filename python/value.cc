// The object behind OrtValue.

#include <algorithm>
#include <cstring>

#include "support.h"

namespace treadle_python {

namespace {

Value from_object(PyObject* object, bool writable) {
  return {to_value(object, nullptr, "value", writable)};
}

Value from_memory(int element, const std::vector<int64_t>& shape, size_t address) {
  return {tensor_from_memory(element, shape, reinterpret_cast<void*>(address), nullptr)};
}

Value of_shape(int element, const std::vector<int64_t>& shape) {
  treadle_value* value = nullptr;
  check(treadle_tensor_create(element, shape.data(), shape.size(), &value));
  return {Owned<treadle_value>(value)};
}

Value empty_value() {
  return {nullptr};
}

Value of_dlpack(PyObject* object) {
  return {from_dlpack(object, "value")};
}

py::Object numpy(const Value& value) {
  if (!value.handle) return py::none();
  treadle_value* copy = nullptr;
  check(treadle_value_copy(value.handle.get(), &copy));
  return to_python(Owned<treadle_value>(copy));
}

py::Object dlpack(const Value& value) {
  return to_dlpack(value.handle.get());
}

int kind(const Value& value) {
  return treadle_value_kind(value.handle.get());
}

int element(const Value& value) {
  return treadle_tensor_element(value.handle.get());
}

std::vector<int64_t> shape(const Value& value) {
  const int64_t* dims = treadle_tensor_dims(value.handle.get());
  return {dims, dims + treadle_tensor_rank(value.handle.get())};
}

size_t bytes(const Value& value) {
  return treadle_tensor_bytes(value.handle.get());
}

size_t address(const Value& value) {
  return reinterpret_cast<size_t>(treadle_tensor_data(value.handle.get()));
}

// Whether the value's only owner may write to its memory.
bool writable(const Value& value) {
  return treadle_tensor_is_exclusive(value.handle.get());
}

py::Object type_text(const Value& value) {
  return value.handle ? take_text(treadle_value_type_text(value.handle.get())) : py::to("");
}

py::Object to_pb(const Value& value, std::string_view name) {
  char* bytes = nullptr;
  size_t size = 0;
  check(treadle_value_to_pb(value.handle.get(), std::string(name).c_str(), &bytes, &size));
  return take_bytes(bytes, size);
}

Value from_pb(PyObject* bytes) {
  const std::string_view message = py::bytes(bytes);
  treadle_value* value = nullptr;
  check(treadle_value_from_pb(message.data(), message.size(), nullptr, &value));
  return {Owned<treadle_value>(value)};
}

void write(Value& value, PyObject* object) {
  const auto source = to_value(object, nullptr, "value");
  treadle_value* to = value.handle.get();
  const size_t rank = treadle_tensor_rank(to);
  const bool same =
      treadle_tensor_element(to) == treadle_tensor_element(source.get()) && rank == treadle_tensor_rank(source.get()) &&
      std::equal(treadle_tensor_dims(to), treadle_tensor_dims(to) + rank, treadle_tensor_dims(source.get()));
  void* memory = treadle_tensor_mutable_data(to);
  if (!same || !memory)
    invalid_argument("only a tensor of the same type and shape, in writable memory, can be updated");
  if (const size_t bytes = treadle_tensor_bytes(to)) std::memcpy(memory, treadle_tensor_data(source.get()), bytes);
}

}  // namespace

void define_value(PyObject* module) {
  py::define_type<Value>(
      module, "Value", {},
      {py::static_method<from_object>("from_object", "object, writable"),
       py::static_method<from_memory>("from_memory", "element, shape, address"),
       py::static_method<of_shape>("of_shape", "element, shape"), py::static_method<empty_value>("empty"),
       py::static_method<from_pb>("from_pb", "message"), py::static_method<of_dlpack>("from_dlpack", "tensor"),
       py::method<to_pb>("to_pb", "name"), py::method<write>("write", "object"), py::method<numpy>("numpy"),
       py::method<dlpack>("dlpack")},
      {py::property<kind>("kind"), py::property<shape>("shape"), py::property<element>("element"),
       py::property<bytes>("bytes"), py::property<type_text>("type_text"), py::property<address>("address"),
       py::property<writable>("writable")});
}

}  // namespace treadle_python
