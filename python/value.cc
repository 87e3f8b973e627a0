// The object behind OrtValue.

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>

#include "support.h"

namespace treadle_python {

namespace {

Value from_object(nb::handle object, bool writable) {
  return {to_value(object, nullptr, "value", writable)};
}

Value from_memory(int element, const std::vector<int64_t>& shape, size_t address) {
  return {tensor_from_memory(element, shape, reinterpret_cast<void*>(address), nb::handle())};
}

Value of_shape(int element, const std::vector<int64_t>& shape) {
  treadle_value* value = nullptr;
  check(treadle_tensor_create(element, shape.data(), shape.size(), &value));
  return {Owned<treadle_value>(value)};
}

Value empty_value() {
  return {nullptr};
}

nb::typed<nb::object, nb::any> numpy(const Value& value) {
  if (!value.handle) return nb::none();
  treadle_value* copy = nullptr;
  check(treadle_value_copy(value.handle.get(), &copy));
  return to_python(Owned<treadle_value>(copy));
}

std::vector<int64_t> shape(const Value& value) {
  const int64_t* dims = treadle_tensor_dims(value.handle.get());
  return {dims, dims + treadle_tensor_rank(value.handle.get())};
}

nb::bytes to_pb(const Value& value, const std::string& name) {
  char* bytes = nullptr;
  size_t size = 0;
  check(treadle_value_to_pb(value.handle.get(), name.c_str(), &bytes, &size));
  const Owned<char> owned(bytes);
  return nb::bytes(bytes, size);
}

Value from_pb(nb::bytes bytes) {
  treadle_value* value = nullptr;
  check(treadle_value_from_pb(bytes.c_str(), bytes.size(), nullptr, &value));
  return {Owned<treadle_value>(value)};
}

void write(Value& value, nb::handle object) {
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

void define_value(nb::module_& m) {
  nb::class_<Value>(m, "Value")
      .def_static("from_object", from_object, nb::arg("object"), nb::arg("writable") = false)
      .def_static("from_memory", from_memory)
      .def_static("of_shape", of_shape)
      .def_static("empty", empty_value)
      .def_static("from_pb", from_pb)
      .def_static("from_dlpack", [](nb::handle object) { return Value{from_dlpack(object, "value")}; })
      .def("to_pb", to_pb, nb::arg("name") = "")
      .def("write", write)
      .def("numpy", numpy)
      .def("dlpack", [](const Value& v) { return to_dlpack(v.handle.get()); })
      .def_prop_ro("kind", [](const Value& v) { return static_cast<int>(treadle_value_kind(v.handle.get())); })
      .def_prop_ro("shape", shape)
      .def_prop_ro("element", [](const Value& v) { return treadle_tensor_element(v.handle.get()); })
      .def_prop_ro("bytes", [](const Value& v) { return treadle_tensor_bytes(v.handle.get()); })
      .def_prop_ro(
          "type_text",
          [](const Value& v) { return v.handle ? take_text(treadle_value_type_text(v.handle.get())) : nb::str(""); })
      .def_prop_ro("address",
                   [](const Value& v) { return reinterpret_cast<size_t>(treadle_tensor_data(v.handle.get())); });
}

}  // namespace treadle_python
