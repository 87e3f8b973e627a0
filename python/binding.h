#pragma once
// Functions, methods and types of Python made from those of C++. The extension is private to the package, so arguments
// come by position only. python/treadle/_core.pyi declares them, and a test compares it with the definitions.

#include <array>
#include <cstddef>
#include <exception>
#include <initializer_list>
#include <new>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "objects.h"

namespace treadle_python::py {

// ---- Instances of bound types

// The Python type of T; null until define_type<T>().
template <class T>
inline PyTypeObject* type_of = nullptr;

template <class T>
struct Instance {
  PyObject_HEAD alignas(T) std::byte storage[sizeof(T)];

  T& value() { return *std::launder(reinterpret_cast<T*>(storage)); }
};

template <class T>
T* find_instance(PyObject* object) {
  if (!type_of<T> || !PyObject_TypeCheck(object, type_of<T>)) return nullptr;
  return &reinterpret_cast<Instance<T>*>(object)->value();
}
template <class T>
T& instance(PyObject* object) {
  T* const found = find_instance<T>(object);
  if (!found) type_error("expected a treadle._core object of another type, found " + type_name(object));
  return *found;
}

// For an object whose type Python has checked already, as that of a method.
template <class T>
T& instance_of_method(PyObject* object) {
  return reinterpret_cast<Instance<T>*>(object)->value();
}

template <class T>
void free_instance_memory(PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(reinterpret_cast<PyObject*>(type));  // an object of a heap type has a reference to the type
}

template <class T, class... Arguments>
Object make_of_type(PyTypeObject* type, Arguments&&... arguments) {
  PyObject* const object = PyType_GenericAlloc(type, 0);
  require(object != nullptr);
  try {
    new (reinterpret_cast<Instance<T>*>(object)->storage) T(std::forward<Arguments>(arguments)...);
  } catch (...) {
    free_instance_memory<T>(object);
    throw;
  }
  return Object::take(object);
}

// Makes an object of T's type from the arguments.
template <class T, class... Arguments>
Object make(Arguments&&... arguments) {
  return make_of_type<T>(type_of<T>, std::forward<Arguments>(arguments)...);
}

// Parameters that are references or pointers are instances; a pointer accepts None as null.
template <class T>
struct From<T&> {
  static T& convert(PyObject* object) { return instance<std::remove_const_t<T>>(object); }
};
template <class T>
struct From<T*> {
  static T* convert(PyObject* object) { return is_none(object) ? nullptr : &instance<T>(object); }
};

// ---- Calls

// Runs `fn`. An exception becomes a Python error, and `failed` the result.
template <class Result, class Fn>
Result guarded(Result failed, Fn&& fn) noexcept {
  try {
    return fn();
  } catch (const Error&) {
    return failed;
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return failed;
}

template <class Fn>
struct Signature;
template <class R, class... A>
struct Signature<R (*)(A...)> {
  using Arguments = std::tuple<A...>;
  static constexpr size_t kCount = sizeof...(A);
};
template <class R, class C, class... A>
struct Signature<R (C::*)(A...)> : Signature<R (*)(A...)> {
  using Self = C;
};
template <class R, class C, class... A>
struct Signature<R (C::*)(A...) const> : Signature<R (C::*)(A...)> {};

inline void require_count(Py_ssize_t expected, Py_ssize_t found) {
  if (expected == found) return;
  PyErr_Format(PyExc_TypeError, "expected %zd arguments, found %zd", expected, found);
  throw Error{};
}

// How many arguments `kCall` takes from Python: one less than its parameters if the first is the object.
template <auto kCall, bool kOnObject>
inline constexpr size_t kArgumentCount =
    Signature<decltype(kCall)>::kCount - (kOnObject && !std::is_member_function_pointer_v<decltype(kCall)>);

template <auto kCall, bool kOnObject, size_t... kI>
decltype(auto) call_cpp([[maybe_unused]] PyObject* self, [[maybe_unused]] PyObject* const* arguments,
                        std::index_sequence<kI...>) {
  using Of = Signature<decltype(kCall)>;
  using Arguments = typename Of::Arguments;
  if constexpr (std::is_member_function_pointer_v<decltype(kCall)>) {
    return (instance<typename Of::Self>(self).*kCall)(from<std::tuple_element_t<kI, Arguments>>(arguments[kI])...);
  } else if constexpr (kOnObject) {
    return kCall(from<std::tuple_element_t<0, Arguments>>(self),
                 from<std::tuple_element_t<kI + 1, Arguments>>(arguments[kI])...);
  } else {
    return kCall(from<std::tuple_element_t<kI, Arguments>>(arguments[kI])...);
  }
}

template <auto kCall, bool kOnObject>
PyObject* call_bound(PyObject* self, PyObject* const* arguments) {
  constexpr std::make_index_sequence<kArgumentCount<kCall, kOnObject>> kIndices;
  if constexpr (std::is_void_v<decltype(call_cpp<kCall, kOnObject>(self, arguments, kIndices))>) {
    call_cpp<kCall, kOnObject>(self, arguments, kIndices);
    return none().release();
  } else {
    return to(call_cpp<kCall, kOnObject>(self, arguments, kIndices)).release();
  }
}

template <auto kCall, bool kOnObject>
PyObject* fast_call(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  return guarded(static_cast<PyObject*>(nullptr), [&] {
    require_count(static_cast<Py_ssize_t>(kArgumentCount<kCall, kOnObject>), count);
    return call_bound<kCall, kOnObject>(self, arguments);
  });
}

// ---- Definitions

// For texts that Python refers to; never freed.
inline const char* keep(std::string text) {
  return (new std::string(std::move(text)))->c_str();
}

inline PyMethodDef definition(const char* name, PyObject* (*call)(PyObject*, PyObject* const*, Py_ssize_t), int flags,
                              const std::string& parameters, const char* doc) {
  // The form that inspect.signature() parses.
  const std::string signature = std::string(name) + "(" + parameters + ")\n--\n\n" + doc;
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call)), METH_FASTCALL | flags,
          keep(signature)};
}

inline std::string joined(const char* first, const char* parameters) {
  const bool some = *parameters != '\0';
  const std::string self = first;
  return self + (some && !self.empty() ? ", " : "") + parameters + (some || !self.empty() ? ", /" : "");
}

// `parameters`: the names of the arguments, separated by commas.
template <auto kFunction>
PyMethodDef function(const char* name, const char* parameters = "", const char* doc = "") {
  return definition(name, fast_call<kFunction, false>, 0, joined("$module", parameters), doc);
}
// A member function, or a function whose first parameter is the object.
template <auto kMethod>
PyMethodDef method(const char* name, const char* parameters = "", const char* doc = "") {
  return definition(name, fast_call<kMethod, true>, 0, joined("$self", parameters), doc);
}
// A function of the object and of raw arguments: `count` by position, then those that `names` names (a tuple; null:
// none).
using RawCall = Object (*)(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names);
template <RawCall kCall>
PyObject* keyword_call(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return guarded(static_cast<PyObject*>(nullptr), [&] { return kCall(self, arguments, count, names).release(); });
}

// A method of T's type that calls `kCall`, with the signature and docstring of the Python method `function`.
template <class T, RawCall kCall>
Object method_like(PyObject* function, const std::string& signature) {
  const Object doc = attribute(function, "__doc__");
  const char* const name = keep(std::string(text(attribute(function, "__name__").get())));
  auto* const call = reinterpret_cast<void (*)()>(keyword_call<kCall>);
  auto& kept = *new PyMethodDef{name, reinterpret_cast<PyCFunction>(call), METH_FASTCALL | METH_KEYWORDS,
                                keep(name + signature + "\n--\n\n" + std::string(text(doc.get())))};
  Object method = steal(PyDescr_NewMethod(type_of<T>, &kept));
  auto* const type = reinterpret_cast<PyObject*>(type_of<T>);
  set_attribute(type, name, method);                                                        // pickle looks for it there
  set_attribute(type, ("_" + std::string(name) + "_of_python").c_str(), borrow(function));  // for the documentation
  return method;
}

template <auto kFunction>
PyMethodDef static_method(const char* name, const char* parameters = "", const char* doc = "") {
  return definition(name, fast_call<kFunction, false>, METH_STATIC, joined("", parameters), doc);
}

template <auto kGet>
PyObject* get_bound(PyObject* self, void*) {
  return guarded(static_cast<PyObject*>(nullptr), [&] { return call_bound<kGet, true>(self, nullptr); });
}
template <auto kSet>
int set_bound(PyObject* self, PyObject* value, void*) {
  return guarded(-1, [&] {
    if (!value) type_error("an attribute of this object cannot be deleted");
    [[maybe_unused]] const Object nothing = Object::take(call_bound<kSet, true>(self, &value));
    return 0;
  });
}
template <auto kGet>
PyGetSetDef property(const char* name, const char* doc = nullptr) {
  return {name, get_bound<kGet>, nullptr, doc, nullptr};
}
template <auto kGet, auto kSet>
PyGetSetDef property(const char* name, const char* doc = nullptr) {
  return {name, get_bound<kGet>, set_bound<kSet>, doc, nullptr};
}

template <class T, class... Arguments>
PyObject* construct(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  return guarded(static_cast<PyObject*>(nullptr), [&] {
    if (keywords && PyDict_Size(keywords) > 0) type_error("arguments are given by position");
    require_count(sizeof...(Arguments), PyTuple_Size(arguments));
    return [&]<size_t... kI>(std::index_sequence<kI...>) {
      return make_of_type<T>(type, from<Arguments>(PyTuple_GetItem(arguments, kI))...);
    }(std::index_sequence_for<Arguments...>())
               .release();
  });
}

template <class T>
void destroy(PyObject* object) {
  reinterpret_cast<Instance<T>*>(object)->value().~T();
  free_instance_memory<T>(object);
}

// How instances are made: by Python with arguments of these types or, by default, only by make().
struct Constructor {
  newfunc construct = nullptr;
  unsigned flags = Py_TPFLAGS_DISALLOW_INSTANTIATION;
};
template <class T, class... Arguments>
Constructor constructor(unsigned flags = 0) {
  return {construct<T, Arguments...>, flags};
}

// For base classes of Python's classes, which interpret the arguments themselves.
template <class T>
Constructor base_constructor() {
  return {[](PyTypeObject* type, PyObject*, PyObject*) {
            return guarded(static_cast<PyObject*>(nullptr), [&] { return make_of_type<T>(type).release(); });
          },
          Py_TPFLAGS_BASETYPE};
}

// Makes the Python type of T, and adds it to the module.
template <class T>
void define_type(PyObject* module, const std::string& name, Constructor constructor,
                 std::initializer_list<PyMethodDef> methods, std::initializer_list<PyGetSetDef> properties = {}) {
  // Python refers to these tables as long as the type lives.
  auto& kept_methods = *new std::vector<PyMethodDef>(methods);
  kept_methods.push_back({});
  auto& kept_properties = *new std::vector<PyGetSetDef>(properties);
  kept_properties.push_back({});
  std::vector<PyType_Slot> slots = {{Py_tp_dealloc, reinterpret_cast<void*>(destroy<T>)},
                                    {Py_tp_methods, kept_methods.data()},
                                    {Py_tp_getset, kept_properties.data()}};
  if (constructor.construct) slots.push_back({Py_tp_new, reinterpret_cast<void*>(constructor.construct)});
  slots.push_back({});
  PyType_Spec spec = {keep("treadle._core." + name), sizeof(Instance<T>), 0,
                      static_cast<unsigned>(Py_TPFLAGS_DEFAULT) | constructor.flags, slots.data()};
  const Object type = steal(PyType_FromSpec(&spec));
  type_of<T> = reinterpret_cast<PyTypeObject*>(borrow(type.get()).release());
  require(PyModule_AddObjectRef(module, name.c_str(), type.get()) == 0);
}

inline void define_functions(PyObject* module, std::initializer_list<PyMethodDef> functions) {
  auto& kept = *new std::vector<PyMethodDef>(functions);
  kept.push_back({});
  require(PyModule_AddFunctions(module, kept.data()) == 0);
}

}  // namespace treadle_python::py
