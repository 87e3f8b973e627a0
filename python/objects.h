#pragma once
// Python's objects by the limited API of CPython 3.11, the first with buffers: an extension compiled for it loads into
// every later CPython. A borrowed reference is a PyObject*, an owned one an Object.

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <concepts>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace treadle_python::py {

// Thrown if a Python error is pending already. Functions that Python calls then return null (binding.h).
struct Error {};

inline void require(bool is_fine) {
  if (!is_fine) throw Error{};
}

// An owned reference, or none.
class Object {
 public:
  Object() = default;
  ~Object() { Py_XDECREF(pointer_); }
  Object(const Object& other) : pointer_(other.pointer_) { Py_XINCREF(pointer_); }
  Object(Object&& other) noexcept : pointer_(other.release()) {}
  Object& operator=(Object other) noexcept {
    std::swap(pointer_, other.pointer_);
    return *this;
  }
  // Takes over a new reference; null gives an empty object.
  static Object take(PyObject* pointer) {
    Object object;
    object.pointer_ = pointer;
    return object;
  }
  explicit operator bool() const { return pointer_ != nullptr; }
  PyObject* get() const { return pointer_; }
  PyObject* release() { return std::exchange(pointer_, nullptr); }

 private:
  PyObject* pointer_ = nullptr;
};

// Takes the result of a Python function: a new reference, or null with a pending error, which is thrown.
inline Object steal(PyObject* pointer) {
  require(pointer != nullptr);
  return Object::take(pointer);
}
inline Object borrow(PyObject* pointer) {
  Py_XINCREF(pointer);
  return Object::take(pointer);
}
inline Object none() {
  return borrow(Py_None);
}
inline bool is_none(PyObject* object) {
  return object == Py_None;
}

inline Object attribute(PyObject* object, const char* name) {
  return steal(PyObject_GetAttrString(object, name));
}
inline bool has_attribute(PyObject* object, const char* name) {
  const Object found = Object::take(PyObject_GetAttrString(object, name));
  if (!found) PyErr_Clear();
  return static_cast<bool>(found);
}
inline void set_attribute(PyObject* object, const char* name, const Object& value) {
  require(PyObject_SetAttrString(object, name, value.get()) == 0);
}
// With borrowed arguments.
template <std::same_as<PyObject*>... Arguments>
Object call(const Object& callee, Arguments... arguments) {
  return steal(PyObject_CallFunctionObjArgs(callee.get(), arguments..., nullptr));
}
// With arguments as a function with METH_FASTCALL | METH_KEYWORDS gets them, behind `self`.
inline Object call_with(PyObject* callee, PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                        PyObject* names) {
  const Object positional = steal(PyTuple_New(count + 1));
  for (Py_ssize_t i = 0; i <= count; ++i) {
    PyTuple_SetItem(positional.get(), i, Py_NewRef(i == 0 ? self : arguments[i - 1]));
  }
  const Object named = names ? steal(PyDict_New()) : Object();
  for (Py_ssize_t i = 0, n = names ? PyTuple_Size(names) : 0; i < n; ++i) {
    require(PyDict_SetItem(named.get(), PyTuple_GetItem(names, i), arguments[count + i]) == 0);
  }
  return steal(PyObject_Call(callee, positional.get(), named.get()));
}
inline Object import(const char* name) {
  return steal(PyImport_ImportModule(name));
}

// The name of an object's type, as in messages of TypeError.
inline std::string type_name(PyObject* object) {
  const Object name = steal(PyType_GetName(Py_TYPE(object)));
  Py_ssize_t size = 0;
  const char* const data = PyUnicode_AsUTF8AndSize(name.get(), &size);
  require(data != nullptr);
  return {data, static_cast<size_t>(size)};
}

[[noreturn]] inline void type_error(const std::string& message) {
  PyErr_SetString(PyExc_TypeError, message.c_str());
  throw Error{};
}
[[noreturn]] inline void unexpected(const char* expected, PyObject* found) {
  type_error(std::string("expected ") + expected + ", found " + type_name(found));
}

// ---- To C++. A wrong type is a TypeError, a number out of range an OverflowError.

// The text of a str, valid as long as the str.
inline std::string_view text(PyObject* object) {
  if (!PyUnicode_Check(object)) unexpected("str", object);
  Py_ssize_t size = 0;
  const char* const data = PyUnicode_AsUTF8AndSize(object, &size);
  require(data != nullptr);
  return {data, static_cast<size_t>(size)};
}

// The bytes of a bytes object, valid as long as the object; a zero byte follows them.
inline std::string_view bytes(PyObject* object) {
  if (!PyBytes_Check(object)) unexpected("bytes", object);
  return {PyBytes_AsString(object), static_cast<size_t>(PyBytes_Size(object))};
}

template <class T>
struct From;

template <>
struct From<PyObject*> {
  static PyObject* convert(PyObject* object) { return object; }
};
template <>
struct From<std::string_view> {
  static std::string_view convert(PyObject* object) { return text(object); }
};
template <>
struct From<std::string> {
  static std::string convert(PyObject* object) { return std::string(text(object)); }
};
template <>
struct From<const char*> {
  static const char* convert(PyObject* object) { return text(object).data(); }
};
template <>
struct From<bool> {
  static bool convert(PyObject* object) {
    if (!PyBool_Check(object)) unexpected("bool", object);
    return object == Py_True;
  }
};
template <>
struct From<double> {
  static double convert(PyObject* object) {
    const double value = PyFloat_AsDouble(object);
    require(value != -1.0 || !PyErr_Occurred());
    return value;
  }
};
template <std::integral T>
struct From<T> {
  static T convert(PyObject* object) {
    const Object number = steal(PyNumber_Index(object));
    using Wide = std::conditional_t<std::is_signed_v<T>, long long, unsigned long long>;
    Wide value = 0;
    if constexpr (std::is_signed_v<T>) {
      value = PyLong_AsLongLong(number.get());
    } else {
      value = PyLong_AsUnsignedLongLong(number.get());
    }
    require(value != static_cast<Wide>(-1) || !PyErr_Occurred());
    if (value < std::numeric_limits<T>::min() || value > std::numeric_limits<T>::max()) {
      PyErr_Format(PyExc_OverflowError, "%R is out of range", object);
      throw Error{};
    }
    return static_cast<T>(value);
  }
};

template <class T>
decltype(auto) from(PyObject* object) {
  return From<T>::convert(object);
}

// Calls `fn(PyObject*)` for the items of any sequence. An item is owned during the call.
template <class Fn>
void for_each(PyObject* sequence, Fn&& fn) {
  const Object items = steal(PySequence_List(sequence));
  for (Py_ssize_t i = 0, count = PyList_Size(items.get()); i < count; ++i) fn(PyList_GetItem(items.get(), i));
}

template <class T>
struct From<std::vector<T>> {
  static std::vector<T> convert(PyObject* object) {
    std::vector<T> result;
    for_each(object, [&](PyObject* item) { result.push_back(from<T>(item)); });
    return result;
  }
};

template <class T>
struct From<const std::vector<T>&> : From<std::vector<T>> {};

// `fn(PyObject* key, PyObject* value)` must not change the dictionary.
template <class Fn>
void for_each_item(PyObject* dictionary, Fn&& fn) {
  if (!PyDict_Check(dictionary)) unexpected("dict", dictionary);
  Py_ssize_t position = 0;
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  while (PyDict_Next(dictionary, &position, &key, &value)) fn(key, value);
}

// ---- To Python

// Bytes that are not UTF-8 become lone surrogates, which text_of() of arrays.cc turns back into bytes.
inline Object to(std::string_view text) {
  return steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"));
}
inline Object to(const char* text) {
  return to(std::string_view(text));
}
inline Object to(Object object) {
  return object;
}
inline Object to(bool value) {
  return borrow(value ? Py_True : Py_False);
}
template <std::signed_integral T>
Object to(T value) {
  return steal(PyLong_FromLongLong(value));
}
template <std::unsigned_integral T>
Object to(T value) {
  return steal(PyLong_FromUnsignedLongLong(value));
}
template <class T>
Object to(const std::vector<T>& values) {
  Object list = steal(PyList_New(static_cast<Py_ssize_t>(values.size())));
  for (size_t i = 0; i < values.size(); ++i) {
    PyList_SetItem(list.get(), static_cast<Py_ssize_t>(i), to(values[i]).release());
  }
  return list;
}

inline Object to_bytes(const char* data, size_t size) {
  return steal(PyBytes_FromStringAndSize(data, static_cast<Py_ssize_t>(size)));
}

inline Object new_list(size_t size = 0) {
  return steal(PyList_New(static_cast<Py_ssize_t>(size)));
}
// Sets an item of a list from new_list(size); each position once.
inline void set_item(const Object& list, size_t i, Object item) {
  require(PyList_SetItem(list.get(), static_cast<Py_ssize_t>(i), item.release()) == 0);
}
template <class T>
void append(const Object& list, T&& item) {
  require(PyList_Append(list.get(), to(std::forward<T>(item)).get()) == 0);
}

inline Object new_dict() {
  return steal(PyDict_New());
}
template <class T>
void set_item(const Object& dictionary, const char* key, T&& value) {
  require(PyDict_SetItemString(dictionary.get(), key, to(std::forward<T>(value)).get()) == 0);
}

template <class... Items>
Object tuple(Items&&... items) {
  Object result = steal(PyTuple_New(sizeof...(items)));
  Py_ssize_t i = 0;
  (PyTuple_SetItem(result.get(), i++, to(std::forward<Items>(items)).release()), ...);
  return result;
}

// Releases the GIL while it lives.
class Unlocked {
 public:
  Unlocked() : thread_(PyEval_SaveThread()) {}
  ~Unlocked() { PyEval_RestoreThread(thread_); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* const thread_;
};

// Holds the GIL in a thread of the engine while it lives.
class Locked {
 public:
  Locked() : state_(PyGILState_Ensure()) {}
  ~Locked() { PyGILState_Release(state_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  const PyGILState_STATE state_;
};

}  // namespace treadle_python::py
