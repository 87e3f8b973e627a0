// numpy arrays, lists and dictionaries <-> values.

#include <array>
#include <cstring>
#include <span>

#include "gil_held.h"
#include "support.h"

namespace treadle_python {

namespace {

struct ElementRow {
  int element;  // TensorProto.DataType
  int numpy;    // numpy's type number; -1: a type of ml_dtypes
  const char* ml_dtype;
  int bits;
  bool is_signed;
};

constexpr int kFloat = 1, kInt64 = 7, kString = 8, kDouble = 11;
constexpr std::array<ElementRow, 27> kElements = {{
    {1, NPY_FLOAT, nullptr, 32, true},
    {2, NPY_UINT8, nullptr, 8, false},
    {3, NPY_INT8, nullptr, 8, true},
    {4, NPY_UINT16, nullptr, 16, false},
    {5, NPY_INT16, nullptr, 16, true},
    {6, NPY_INT32, nullptr, 32, true},
    {7, NPY_INT64, nullptr, 64, true},
    {9, NPY_BOOL, nullptr, 8, false},
    {10, NPY_HALF, nullptr, 16, true},
    {11, NPY_DOUBLE, nullptr, 64, true},
    {12, NPY_UINT32, nullptr, 32, false},
    {13, NPY_UINT64, nullptr, 64, false},
    {14, NPY_CFLOAT, nullptr, 64, true},
    {15, NPY_CDOUBLE, nullptr, 128, true},
    {16, -1, "bfloat16", 16, true},
    {17, -1, "float8_e4m3fn", 8, true},
    {18, -1, "float8_e4m3fnuz", 8, true},
    {19, -1, "float8_e5m2", 8, true},
    {20, -1, "float8_e5m2fnuz", 8, true},
    {21, -1, "uint4", 4, false},
    {22, -1, "int4", 4, true},
    {23, -1, "float4_e2m1fn", 4, false},
    {24, -1, "float8_e8m0fnu", 8, false},
    {25, -1, "uint2", 2, false},
    {26, -1, "int2", 2, true},
    {27, -1, "float6_e2m3fn", 6, false},
    {28, -1, "float6_e3m2fn", 6, false},
}};

const ElementRow* row_of(int element) {
  for (const ElementRow& row : kElements) {
    if (row.element == element) return &row;
  }
  return nullptr;
}

// Types of ml_dtypes, which get their numbers when the package is imported. It is imported on first need.
struct MlDtypes {
  std::array<PyObject*, kElements.size()> descr{};  // never released; null: this version lacks the type

  static const MlDtypes& get() {
    static const MlDtypes loaded;
    return loaded;
  }

 private:
  MlDtypes() {
    const py::Object package = py::import("ml_dtypes");
    for (size_t i = 0; i < kElements.size(); ++i) {
      const char* name = kElements[i].ml_dtype;
      if (!name || !py::has_attribute(package.get(), name)) continue;
      PyArray_Descr* d = nullptr;
      const py::Object type = py::attribute(package.get(), name);
      if (PyArray_DescrConverter(type.get(), &d) == NPY_SUCCEED) descr[i] = reinterpret_cast<PyObject*>(d);
    }
  }
};

PyArray_Descr* descr_of(int element) {
  const ElementRow* row = row_of(element);
  if (row && row->numpy >= 0) return PyArray_DescrFromType(row->numpy);
  if (row) {
    PyObject* descr = MlDtypes::get().descr[static_cast<size_t>(row - kElements.data())];
    if (descr) return reinterpret_cast<PyArray_Descr*>(Py_NewRef(descr));
  }
  const char* name = treadle_element_name(element);
  PyErr_Format(PyExc_TypeError, "numpy and ml_dtypes have no type for %s", name ? name : "this element type");
  throw py::Error{};
}

int element_of(PyArray_Descr* descr) {
  const int number = descr->type_num;
  for (const ElementRow& row : kElements) {
    if (row.numpy == number) return row.element;
  }
  switch (number) {
    case NPY_LONGLONG:
      return 7;
    case NPY_ULONGLONG:
      return 13;
    case NPY_OBJECT:
    case NPY_UNICODE:
    case NPY_STRING:
    case NPY_VSTRING:
      return kString;
    case NPY_VOID:  // bytes of one size; records are refused
      return PyDataType_HASFIELDS(descr) || PyDataType_HASSUBARRAY(descr) ? 0 : kString;
    default:
      break;
  }
  if (number < NPY_USERDEF) return 0;
  const MlDtypes& loaded = MlDtypes::get();
  for (size_t i = 0; i < kElements.size(); ++i) {
    if (loaded.descr[i] && reinterpret_cast<PyArray_Descr*>(loaded.descr[i])->type_num == number) {
      return kElements[i].element;
    }
  }
  return 0;
}

void release_object(void* object) {
  if (GilHeld::here()) return Py_DECREF(static_cast<PyObject*>(object));
  if (!Py_IsInitialized()) return;
  const py::Locked locked;
  Py_DECREF(static_cast<PyObject*>(object));
}

// The text that print() shows of an object.
std::string printed(PyObject* object) {
  return std::string(py::text(py::steal(PyObject_Str(object)).get()));
}

// An object as a text, by onnxruntime's rules: None is "None", nan is "nan", and a number the text that Python prints.
// Bytes are taken as the text (onnxruntime makes "b'...'" of them).
treadle_text text_of(PyObject* item, std::string& storage) {
  if (PyUnicode_Check(item)) {
    Py_ssize_t size = 0;
    if (const char* data = PyUnicode_AsUTF8AndSize(item, &size)) return {data, static_cast<size_t>(size)};
    PyErr_Clear();  // lone surrogates, from bytes that were not UTF-8
    py::Object bytes = py::steal(PyUnicode_AsEncodedString(item, "utf-8", "surrogateescape"));
    storage.assign(PyBytes_AsString(bytes.get()), static_cast<size_t>(PyBytes_Size(bytes.get())));
    return {storage.data(), storage.size()};
  }
  if (PyBytes_Check(item)) {
    return {PyBytes_AsString(item), static_cast<size_t>(PyBytes_Size(item))};
  }
  const py::Object printed = py::steal(PyObject_Str(item));
  const treadle_text text = text_of(printed.get(), storage);
  storage.assign(text.data, text.size);  // the text of `printed` is freed
  return {storage.data(), storage.size()};
}

Owned<treadle_value> strings_to_value(const py::Object& array) {
  auto* source = reinterpret_cast<PyArrayObject*>(array.get());
  py::Object objects = py::steal(PyArray_FromArray(source, PyArray_DescrFromType(NPY_OBJECT), NPY_ARRAY_CARRAY_RO));
  auto* a = reinterpret_cast<PyArrayObject*>(objects.get());
  const auto count = static_cast<size_t>(PyArray_SIZE(a));
  auto** items = static_cast<PyObject**>(PyArray_DATA(a));
  std::vector<std::string> storage(count);
  std::vector<treadle_text> texts(count);
  for (size_t i = 0; i < count; ++i) texts[i] = text_of(items[i], storage[i]);
  const std::vector<int64_t> dims(PyArray_DIMS(a), PyArray_DIMS(a) + PyArray_NDIM(a));
  treadle_value* value = nullptr;
  check(treadle_tensor_from_texts(dims.data(), dims.size(), texts.data(), count, &value));
  return Owned<treadle_value>(value);
}

// In elements narrower than a byte, numpy leaves the upper bits open. The engine needs sign bits (or zeros) in them.
Owned<treadle_value> narrow_to_value(PyArrayObject* a, const ElementRow& row) {
  treadle_value* value = nullptr;
  check(treadle_tensor_create(row.element, reinterpret_cast<const int64_t*>(PyArray_DIMS(a)),
                              static_cast<size_t>(PyArray_NDIM(a)), &value));
  Owned<treadle_value> owned(value);
  const auto* from = static_cast<const uint8_t*>(PyArray_DATA(a));
  auto* to = static_cast<uint8_t*>(treadle_tensor_mutable_data(value));
  const int shift = 8 - row.bits;
  for (npy_intp i = 0, n = PyArray_SIZE(a); i < n; ++i) {
    const auto up = static_cast<uint8_t>(from[i] << shift);
    to[i] = row.is_signed ? static_cast<uint8_t>(static_cast<int8_t>(up) >> shift) : static_cast<uint8_t>(up >> shift);
  }
  return owned;
}

static_assert(sizeof(npy_intp) == sizeof(int64_t), "sizes of arrays are passed on as they are");

Owned<treadle_value> array_to_value(py::Object array, const char* name, bool writable) {
  auto* a = reinterpret_cast<PyArrayObject*>(array.get());
  const int element = element_of(PyArray_DESCR(a));
  if (element == 0) {
    invalid_argument(std::string("input '") + name + "': there is no element type for dtype " +
                     printed(reinterpret_cast<PyObject*>(PyArray_DESCR(a))));
  }
  if (element == kString) return strings_to_value(array);
  if (!PyArray_ISCARRAY_RO(a)) {
    array = py::steal(PyArray_CheckFromAny(array.get(), nullptr, 0, 0,
                                           NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED | NPY_ARRAY_NOTSWAPPED, nullptr));
    a = reinterpret_cast<PyArrayObject*>(array.get());
  }
  const ElementRow& row = *row_of(element);
  if (row.bits < 8) return narrow_to_value(a, row);
  treadle_value* value = nullptr;
  check(treadle_tensor_borrow(
      element, reinterpret_cast<const int64_t*>(PyArray_DIMS(a)), static_cast<size_t>(PyArray_NDIM(a)), PyArray_DATA(a),
      static_cast<size_t>(PyArray_NBYTES(a)), writable && PyArray_ISWRITEABLE(a), release_object, array.get(), &value));
  array.release();
  return Owned<treadle_value>(value);
}

bool is_kind(PyArray_Descr* descr, const char* kinds) {
  return strchr(kinds, descr->kind) != nullptr;
}

// Refuses fractions of any kind, which numpy would cut to whole numbers.
void require_whole(PyArrayObject* objects, int declared, const char* name) {
  auto** items = static_cast<PyObject**>(PyArray_DATA(objects));
  for (npy_intp i = 0, n = PyArray_SIZE(objects); i < n; ++i) {
    if (PyIndex_Check(items[i])) continue;
    invalid_argument(std::string("input '") + name + "' takes " + treadle_element_name(declared) + ", found a " +
                     py::type_name(items[i]));
  }
}

// The text of the pending error, which is cleared.
std::string pending_text() {
  PyObject* type = nullptr;
  PyObject* error = nullptr;
  PyObject* trace = nullptr;
  PyErr_Fetch(&type, &error, &trace);
  PyErr_NormalizeException(&type, &error, &trace);
  const py::Object owned[] = {py::Object::take(type), py::Object::take(error), py::Object::take(trace)};
  return py::type_name(error) + ": " + printed(error);
}

// A list as an array of one of numpy's element types; empty, with a pending error, if numpy refuses.
py::Object list_as(PyObject* list, PyArray_Descr* descr) {
  return py::Object::take(PyArray_FromAny(list, descr, 0, 0, NPY_ARRAY_CARRAY_RO | NPY_ARRAY_FORCECAST, nullptr));
}

// Lists and numbers of Python have no element type: they take the declared one, unless that would cut off fractions or
// turn numbers into something else. None is nan among floats; among strings, None and numbers become texts.
Owned<treadle_value> literal_to_value(PyObject* object, const treadle_type* type, const char* name) {
  py::Object array = py::Object::take(PyArray_FromAny(object, nullptr, 0, 0, NPY_ARRAY_CARRAY_RO, nullptr));
  if (!array) {
    if (!PyErr_ExceptionMatches(PyExc_ValueError)) throw py::Error{};
    PyErr_Clear();
    invalid_argument(std::string("input '") + name + "': this " + py::type_name(object) + " has no regular shape");
  }
  auto* a = reinterpret_cast<PyArrayObject*>(array.get());
  const int declared = treadle_type_element(type);
  const int found = element_of(PyArray_DESCR(a));
  const bool is_mixed = PyArray_TYPE(a) == NPY_OBJECT;
  if (declared == kString && found != 0 && (found != kString || is_mixed)) {
    array = list_as(object, PyArray_DescrFromType(NPY_OBJECT));
    py::require(static_cast<bool>(array));
    return strings_to_value(array);
  }
  if (declared == 0 || declared == found || found == 0 || (found == kString && !is_mixed)) {
    return array_to_value(std::move(array), name, false);
  }
  py::Object wanted = py::steal(reinterpret_cast<PyObject*>(descr_of(declared)));
  auto* descr = reinterpret_cast<PyArray_Descr*>(wanted.get());
  const bool whole = is_kind(descr, "biu") || strstr(treadle_element_name(declared), "int");
  if (whole && is_mixed) require_whole(a, declared, name);
  if ((whole && is_kind(PyArray_DESCR(a), "fc") && PyArray_SIZE(a) > 0) ||
      (!is_kind(descr, "c") && is_kind(PyArray_DESCR(a), "c"))) {
    return array_to_value(std::move(array), name, false);  // the engine refuses it, with both types in the message
  }
  array = list_as(object, reinterpret_cast<PyArray_Descr*>(wanted.release()));
  if (!array) {
    invalid_argument(std::string("input '") + name + "' takes " + treadle_element_name(declared) + ": " +
                     pending_text());
  }
  return array_to_value(std::move(array), name, false);
}

Owned<treadle_value> tensor_to_value(PyObject* object, const treadle_type* type, const char* name, bool writable) {
  if (PyArray_Check(object)) return array_to_value(py::borrow(object), name, writable);
  if (PyArray_IsScalar(object, Generic))
    return array_to_value(py::steal(PyArray_FromScalar(object, nullptr)), name, false);
  const bool plain = PyList_Check(object) || PyTuple_Check(object) || PyFloat_Check(object) || PyLong_Check(object) ||
                     PyBool_Check(object) || PyUnicode_Check(object) || PyBytes_Check(object) ||
                     PyComplex_Check(object);
  if (!plain && py::has_attribute(object, "__dlpack__")) return from_dlpack(object, name);
  if (plain || PySequence_Check(object)) return literal_to_value(object, type, name);
  py::Object array = py::steal(PyArray_FromAny(object, nullptr, 0, 0, NPY_ARRAY_CARRAY_RO, nullptr));
  auto* a = reinterpret_cast<PyArrayObject*>(array.get());
  if (PyArray_TYPE(a) == NPY_OBJECT && PyArray_NDIM(a) == 0) {
    invalid_argument(std::string("input '") + name + "' cannot be made from a " + py::type_name(object));
  }
  return array_to_value(std::move(array), name, false);
}

Owned<treadle_value> sequence_to_value(PyObject* object, const treadle_type* type, const char* name) {
  if (PyUnicode_Check(object) || PyDict_Check(object) || !PySequence_Check(object)) {
    invalid_argument(std::string("input '") + name + "' takes a list, not a " + py::type_name(object));
  }
  const treadle_type* child = treadle_type_child(type);
  std::vector<Owned<treadle_value>> elements;
  std::vector<const treadle_value*> handles;
  py::for_each(object, [&](PyObject* item) {
    elements.push_back(to_value(item, child, name));
    handles.push_back(elements.back().get());
  });
  treadle_value* value = nullptr;
  check(treadle_sequence_create(child, handles.data(), handles.size(), &value));
  return Owned<treadle_value>(value);
}

// 1-D, of the given element type.
Owned<treadle_value> items_to_value(const py::Object& items, int element, const char* name) {
  if (element == kString) {
    py::Object array = py::steal(PyArray_FromAny(items.get(), PyArray_DescrFromType(NPY_OBJECT), 1, 1, 0, nullptr));
    return strings_to_value(array);
  }
  py::Object array = py::steal(
      PyArray_FromAny(items.get(), descr_of(element), 1, 1, NPY_ARRAY_CARRAY_RO | NPY_ARRAY_FORCECAST, nullptr));
  return array_to_value(std::move(array), name, false);
}

// Programs expect a RuntimeError if a dict has keys of another type than the map.
void require_keys(PyObject* keys, int element, const char* name) {
  const auto is_key = [&](PyObject* key) {
    return element == kString ? PyUnicode_Check(key) || PyBytes_Check(key) : PyIndex_Check(key) && !PyBool_Check(key);
  };
  py::for_each(keys, [&](PyObject* key) {
    if (is_key(key)) return;
    PyErr_Format(PyExc_RuntimeError,
                 "input '%s': Unexpected key type  %R, it cannot be linked to C type %s; the map's keys are %s", name,
                 Py_TYPE(key), element == kString ? "std::string" : "int64_t", treadle_element_name(element));
    throw py::Error{};
  });
}

Owned<treadle_value> map_to_value(PyObject* object, const treadle_type* type, const char* name) {
  if (!PyDict_Check(object)) {
    invalid_argument(std::string("input '") + name + "' takes a dict, not a " + py::type_name(object));
  }
  const int value_element = treadle_type_element(treadle_type_child(type));
  const py::Object names = py::steal(PyDict_Keys(object));
  require_keys(names.get(), treadle_type_element(type), name);
  const auto keys = items_to_value(names, treadle_type_element(type), name);
  const auto values = items_to_value(py::steal(PyDict_Values(object)), value_element ? value_element : 1, name);
  treadle_value* value = nullptr;
  check(treadle_map_create(keys.get(), values.get(), &value));
  return Owned<treadle_value>(value);
}

py::Object strings_to_python(const treadle_value* tensor, int rank, npy_intp* dims) {
  py::Object array = py::steal(PyArray_SimpleNew(rank, dims, NPY_OBJECT));
  auto** items = static_cast<PyObject**>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(array.get())));
  for (int64_t i = 0, n = treadle_tensor_count(tensor); i < n; ++i) {
    const treadle_text text = treadle_tensor_text(tensor, i);
    Py_XDECREF(std::exchange(items[i], py::to(std::string_view(text.data, text.size)).release()));
  }
  return array;
}

void free_capsule(PyObject* capsule) {
  treadle_value_free(static_cast<treadle_value*>(PyCapsule_GetPointer(capsule, nullptr)));
}

constexpr size_t kCopiedBytes = 1024;  // smaller results are copied, which is cheaper than keeping the engine's memory
                                       // alive

py::Object tensor_to_python(Owned<treadle_value>& value) {
  const treadle_value* tensor = value.get();
  const int element = treadle_tensor_element(tensor);
  auto* dims = const_cast<npy_intp*>(reinterpret_cast<const npy_intp*>(treadle_tensor_dims(tensor)));
  const auto rank = static_cast<int>(treadle_tensor_rank(tensor));
  if (element == kString) {
    const Owned<treadle_value> taken = std::move(value);
    return strings_to_python(tensor, rank, dims);
  }
  const ElementRow& row = *row_of(element);
  const size_t bytes = treadle_tensor_bytes(tensor);
  const bool exclusive = treadle_tensor_is_exclusive(tensor);
  const bool lend = row.bits >= 8 && bytes > kCopiedBytes && exclusive;
  void* data = lend ? const_cast<void*>(treadle_tensor_data(tensor)) : nullptr;
  py::Object array = py::steal(PyArray_NewFromDescr(&PyArray_Type, descr_of(element), rank, dims, nullptr, data,
                                                    lend ? NPY_ARRAY_CARRAY : 0, nullptr));
  auto* a = reinterpret_cast<PyArrayObject*>(array.get());
  if (lend) {
    py::Object capsule = py::steal(PyCapsule_New(value.get(), nullptr, free_capsule));
    [[maybe_unused]] auto* kept_by_capsule = value.release();
    py::require(PyArray_SetBaseObject(a, capsule.release()) == 0);
    return array;
  }
  const auto* from = static_cast<const uint8_t*>(treadle_tensor_data(tensor));
  auto* to = static_cast<uint8_t*>(PyArray_DATA(a));
  if (row.bits < 8) {
    const auto mask = static_cast<uint8_t>((1 << row.bits) - 1);
    for (size_t i = 0; i < bytes; ++i) to[i] = from[i] & mask;
  } else if (bytes > 0) {
    std::memcpy(to, from, bytes);
  }
  if (!exclusive || bytes > kCopiedBytes) value.reset();
  return array;
}

// Element i of a tensor as int, float or str; none for other types.
py::Object item_to_python(const treadle_value* tensor, int element, size_t i) {
  switch (element) {
    case kInt64:
      return py::to(static_cast<const int64_t*>(treadle_tensor_data(tensor))[i]);
    case kFloat:
      return py::steal(
          PyFloat_FromDouble(static_cast<double>(static_cast<const float*>(treadle_tensor_data(tensor))[i])));
    case kDouble:
      return py::steal(PyFloat_FromDouble(static_cast<const double*>(treadle_tensor_data(tensor))[i]));
    case kString: {
      const treadle_text text = treadle_tensor_text(tensor, static_cast<int64_t>(i));
      return py::to(std::string_view(text.data, text.size));
    }
    default:
      return {};
  }
}

std::vector<py::Object> items_to_python(Owned<treadle_value> tensor) {
  const int element = treadle_tensor_element(tensor.get());
  const auto count = static_cast<size_t>(treadle_tensor_count(tensor.get()));
  std::vector<py::Object> items;
  items.reserve(count);
  if (element == kInt64 || element == kFloat || element == kDouble || element == kString) {
    for (size_t i = 0; i < count; ++i) {
      items.push_back(item_to_python(tensor.get(), element, i));
    }
    return items;
  }
  const py::Object list = py::call(py::attribute(tensor_to_python(tensor).get(), "tolist"));
  py::for_each(list.get(), [&](PyObject* item) { items.push_back(py::borrow(item)); });
  return items;
}

py::Object dict_of(std::span<const py::Object> names, std::span<const py::Object> items) {
  py::Object result = py::new_dict();
  for (size_t i = 0; i < names.size(); ++i) {
    py::require(PyDict_SetItem(result.get(), names[i].get(), items[i].get()) == 0);
  }
  return result;
}

py::Object map_to_python(const treadle_value* map) {
  treadle_value* keys = nullptr;
  check(treadle_map_keys(map, &keys));
  const std::vector<py::Object> names = items_to_python(Owned<treadle_value>(keys));
  treadle_value* values = nullptr;
  check(treadle_map_values(map, &values));
  return dict_of(names, items_to_python(Owned<treadle_value>(values)));
}

// Maps with the same keys, as one table: each key becomes an object once, and the maps are not visited one by one. None
// for any other sequence.
py::Object table_to_python(const treadle_value* sequence) {
  treadle_value* keys = nullptr;
  treadle_value* values = nullptr;
  check(treadle_sequence_table(sequence, &keys, &values));
  const Owned<treadle_value> table(values);
  if (!keys) return {};
  const std::vector<py::Object> names = items_to_python(Owned<treadle_value>(keys));
  const int element = treadle_tensor_element(values);
  if (element != kInt64 && element != kFloat && element != kDouble) return {};
  const auto rows = static_cast<size_t>(treadle_tensor_dims(values)[0]);
  py::Object items = py::new_list(rows);
  std::vector<py::Object> row(names.size());
  for (size_t i = 0; i < rows; ++i) {
    for (size_t k = 0; k < row.size(); ++k) {
      row[k] = item_to_python(values, element, i * row.size() + k);
    }
    py::set_item(items, i, dict_of(names, row));
  }
  return items;
}

py::Object sequence_to_python(const treadle_value* sequence) {
  py::Object table = table_to_python(sequence);
  if (table) return table;
  const py::Object items = py::new_list();
  for (size_t i = 0, n = treadle_sequence_size(sequence); i < n; ++i) {
    treadle_value* element = nullptr;
    check(treadle_sequence_at(sequence, i, &element));
    py::append(items, to_python(Owned<treadle_value>(element)));
  }
  return items;
}

}  // namespace

Owned<treadle_value> to_value(PyObject* object, const treadle_type* type, const char* name, bool writable) {
  if (py::is_none(object)) return nullptr;
  if (const Value* const given = py::find_instance<Value>(object)) {
    treadle_value* copy = nullptr;
    check(treadle_value_copy(given->handle.get(), &copy));
    return Owned<treadle_value>(copy);
  }
  switch (treadle_type_kind(type)) {
    case TREADLE_SEQUENCE:
      return sequence_to_value(object, type, name);
    case TREADLE_MAP:
      return map_to_value(object, type, name);
    case TREADLE_OPTIONAL: {
      const auto inner = to_value(object, treadle_type_child(type), name);
      treadle_value* value = nullptr;
      check(treadle_optional_create(treadle_type_child(type), inner.get(), &value));
      return Owned<treadle_value>(value);
    }
    default:
      return tensor_to_value(object, type, name, writable);
  }
}

Owned<treadle_value> tensor_from_memory(int element, const std::vector<int64_t>& shape, void* data, PyObject* owner) {
  size_t bytes = treadle_element_width(element);
  for (const int64_t d : shape) bytes *= static_cast<size_t>(d);
  treadle_value* value = nullptr;
  check(treadle_tensor_borrow(element, shape.data(), shape.size(), data, bytes, true, owner ? release_object : nullptr,
                              owner, &value));
  Py_XINCREF(owner);
  return Owned<treadle_value>(value);
}

py::Object to_python(Owned<treadle_value>& value) {
  if (treadle_value_kind(value.get()) == TREADLE_TENSOR) return tensor_to_python(value);
  const Owned<treadle_value> taken = std::move(value);
  switch (treadle_value_kind(taken.get())) {
    case TREADLE_SEQUENCE:
      return sequence_to_python(taken.get());
    case TREADLE_MAP:
      return map_to_python(taken.get());
    case TREADLE_OPTIONAL: {
      if (!treadle_optional_has_value(taken.get())) return py::none();
      treadle_value* inner = nullptr;
      check(treadle_optional_get(taken.get(), &inner));
      return to_python(Owned<treadle_value>(inner));
    }
    default:
      return py::none();
  }
}

int element_of_dtype(PyObject* dtype) {
  PyArray_Descr* descr = nullptr;
  py::require(PyArray_DescrConverter(dtype, &descr) == NPY_SUCCEED);
  const py::Object owned = py::steal(reinterpret_cast<PyObject*>(descr));
  return element_of(descr);
}

}  // namespace treadle_python
