// Operators written in Python. Their functions run with the GIL, on the thread of the run. An exception comes out of
// the run, with a note that names the place.

#include <string>
#include <vector>

#include "gil_held.h"
#include "support.h"

namespace treadle_python {

namespace {

// The Python functions of an operator, and what one node makes of them.
struct Operator {
  py::Object compute, infer;  // infer may be None
};
struct Kernel {
  Operator* op;
  py::Object attributes;  // a dict
};

// Holds the GIL in a thread of the engine while it lives.
struct InPython {
  py::Locked locked;
  GilHeld held;
};

// "ValueError: expected ..." for the pending error, which stays pending.
std::string pending_text() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  std::string text = "an error of Python's";
  if (value) {
    const py::Object shown = py::Object::take(PyObject_Str(value));
    const py::Object name = py::Object::take(PyType_GetName(Py_TYPE(value)));
    const auto read = [](const py::Object& object) -> std::string {
      const char* const data = object ? PyUnicode_AsUTF8AndSize(object.get(), nullptr) : nullptr;
      return data ? data : "?";
    };
    text = read(name) + ": " + read(shown);
    PyErr_Clear();
  }
  PyErr_Restore(type, value, trace);
  return text;
}

// Runs `fn`. A Python error becomes a status, and stays pending for the function that called the engine on this thread.
template <class Fn>
treadle_status* guarded_call(Fn&& fn) {
  try {
    fn();
    return nullptr;
  } catch (const py::Error&) {
    return treadle_status_create(TREADLE_RUNTIME, pending_text().c_str());
  } catch (const std::exception& error) {
    return treadle_status_create(TREADLE_INTERNAL, error.what());
  }
}

py::Object text_of(treadle_text text) {
  return py::to(std::string_view(text.data, text.size));
}

py::Object attribute_value(const treadle_attribute* attribute) {
  enum Kind { kFloat = 1, kInt = 2, kText = 3, kTensor = 4, kFloats = 6, kInts = 7, kTexts = 8, kTensors = 9 };
  const int kind = treadle_attribute_kind(attribute);
  const auto element = [&](int of, size_t i) -> py::Object {
    switch (of) {
      case kFloat:
      case kFloats:
        return py::steal(PyFloat_FromDouble(treadle_attribute_float(attribute, i)));
      case kInt:
      case kInts:
        return py::to(treadle_attribute_int(attribute, i));
      case kText:
      case kTexts:
        return text_of(treadle_attribute_text(attribute, i));
      case kTensor:
      case kTensors: {
        treadle_value* tensor = nullptr;
        check(treadle_attribute_tensor(attribute, i, &tensor));
        return to_python(Owned<treadle_value>(tensor));
      }
      default:
        invalid_argument(std::string("attribute '") + treadle_attribute_name(attribute) +
                         "' is of a kind that operators in Python do not get");
    }
  };
  if (kind < kFloats) return element(kind, 0);
  const py::Object list = py::new_list();
  for (size_t i = 0; i < treadle_attribute_size(attribute); ++i) py::append(list, element(kind, i));
  return list;
}

treadle_status* make_kernel(void* context, const treadle_node* node, void** kernel) {
  const InPython python;
  return guarded_call([&] {
    py::Object attributes = py::new_dict();
    for (size_t i = 0; i < treadle_node_attribute_count(node); ++i) {
      const treadle_attribute* attribute = treadle_node_attribute_at(node, i);
      py::set_item(attributes, treadle_attribute_name(attribute), attribute_value(attribute));
    }
    *kernel = new Kernel{static_cast<Operator*>(context), std::move(attributes)};
  });
}

void free_kernel(void* kernel) {
  const InPython python;
  delete static_cast<Kernel*>(kernel);
}

void release(void* context) {
  const InPython python;
  delete static_cast<Operator*>(context);
}

// Copies: the engine overwrites inputs of an operator once the operator has run.
py::Object input_of(const treadle_value* value) {
  if (!value) return py::none();
  treadle_value* copy = nullptr;
  check(treadle_value_clone(value, &copy));
  return to_python(Owned<treadle_value>(copy));
}

treadle_status* compute(void* context, treadle_call* call) {
  const InPython python;
  return guarded_call([&] {
    const auto& kernel = *static_cast<Kernel*>(context);
    const treadle_node* node = treadle_call_node(call);
    const py::Object inputs = py::new_list();
    for (size_t i = 0; i < treadle_node_input_count(node); ++i)
      py::append(inputs, input_of(treadle_call_input(call, i)));
    const size_t outputs = treadle_node_output_count(node);
    const py::Object results =
        py::call(kernel.op->compute, inputs.get(), kernel.attributes.get(), py::to(outputs).get());
    size_t i = 0;
    py::for_each(results.get(), [&](PyObject* result) {
      const std::string name = "output " + std::to_string(i);
      const Owned<treadle_value> value = to_value(result, nullptr, name.c_str());
      // Copied, since Python may keep the array and write to it later.
      treadle_value* own = nullptr;
      check(treadle_value_clone(value.get(), &own));
      const Owned<treadle_value> owned(own);
      check(treadle_call_set(call, i++, own));
    });
  });
}

// None, or (element type, sizes). A size is a number, a name, or None if unknown; the sizes are None if the rank is
// unknown.
py::Object type_of_input(const treadle_type* type) {
  if (!type || treadle_type_kind(type) != TREADLE_TENSOR) return py::none();
  const int64_t rank = treadle_type_rank(type);
  if (rank < 0) return py::tuple(treadle_type_element(type), py::none());
  const py::Object sizes = py::new_list();
  for (int64_t axis = 0; axis < rank; ++axis) {
    const int64_t size = treadle_type_dim(type, axis);
    const Owned<char> symbol(size < 0 ? treadle_type_symbol(type, axis) : nullptr);
    py::append(sizes, size >= 0 ? py::to(size) : symbol ? py::to(symbol.get()) : py::none());
  }
  return py::tuple(treadle_type_element(type), sizes);
}

treadle_status* infer(void* context, treadle_inference* inference) {
  const auto& kernel = *static_cast<Kernel*>(context);
  const InPython python;
  if (py::is_none(kernel.op->infer.get())) return nullptr;
  return guarded_call([&] {
    const treadle_node* node = treadle_inference_node(inference);
    const py::Object inputs = py::new_list();
    for (size_t i = 0; i < treadle_node_input_count(node); ++i) {
      py::append(inputs, type_of_input(treadle_inference_input(inference, i)));
    }
    const py::Object results = py::call(kernel.op->infer, inputs.get(), kernel.attributes.get());
    size_t index = 0;
    py::for_each(results.get(), [&](PyObject* result) {  // (element type, sizes), or None
      const size_t output = index++;
      if (py::is_none(result) || output >= treadle_node_output_count(node)) return;
      const py::Object element = py::steal(PySequence_GetItem(result, 0)),
                       sizes = py::steal(PySequence_GetItem(result, 1));
      if (py::is_none(sizes.get())) return;
      std::vector<int64_t> dims;
      std::vector<std::string> names;
      py::for_each(sizes.get(), [&](PyObject* size) {
        const bool named = PyUnicode_Check(size);
        dims.push_back(named || py::is_none(size) ? -1 : py::from<int64_t>(size));
        names.push_back(named ? std::string(py::text(size)) : std::string());
      });
      std::vector<const char*> symbols;
      for (const std::string& name : names) symbols.push_back(name.empty() ? nullptr : name.c_str());
      check(treadle_inference_set_output(inference, output, py::from<int>(element.get()), dims.data(), symbols.data(),
                                         dims.size()));
    });
  });
}

struct FreeOperator {
  void operator()(treadle_operator* p) const { treadle_operator_free(p); }
};

// Each of `inputs` and `outputs`: (name, type or "", arity).
void add_formals(treadle_operator* op, PyObject* formals, decltype(&treadle_operator_input) add) {
  py::for_each(formals, [&](PyObject* formal) {
    const py::Object name = py::steal(PySequence_GetItem(formal, 0)), type = py::steal(PySequence_GetItem(formal, 1)),
                     arity = py::steal(PySequence_GetItem(formal, 2));
    const std::string name_text(py::text(name.get())), type_text(py::text(type.get()));
    check(add(op, name_text.c_str(), type_text.empty() ? nullptr : type_text.c_str(),
              static_cast<treadle_arity>(py::from<int>(arity.get()))));
  });
}

void register_operator(const char* domain, const char* name, int since, PyObject* inputs, PyObject* outputs,
                       PyObject* attributes, bool any_attributes, bool pure, PyObject* compute_function,
                       PyObject* infer_function) {
  treadle_operator* created = nullptr;
  check(treadle_operator_create(domain, name, since, &created));
  const std::unique_ptr<treadle_operator, FreeOperator> op(created);
  add_formals(created, inputs, treadle_operator_input);
  add_formals(created, outputs, treadle_operator_output);
  py::for_each(attributes, [&](PyObject* attribute) {  // (name, whether it is required)
    const py::Object own = py::steal(PySequence_GetItem(attribute, 0)),
                     required = py::steal(PySequence_GetItem(attribute, 1));
    const std::string name_text(py::text(own.get()));
    check(treadle_operator_attribute(created, name_text.c_str(), py::from<bool>(required.get())));
  });
  treadle_operator_any_attributes(created, any_attributes);
  treadle_operator_pure(created, pure);
  auto functions = std::make_unique<Operator>(Operator{py::borrow(compute_function), py::borrow(infer_function)});
  const treadle_operator_functions table = {sizeof table, functions.get(), make_kernel, free_kernel,
                                            compute,      infer,           release};
  check(treadle_operator_set_functions(created, &table));
  [[maybe_unused]] const Operator* const held = functions.release();  // release() frees it
  check(treadle_operator_register(created));
}

}  // namespace

void define_operators(PyObject* module) {
  py::define_functions(module,
                       {py::function<register_operator>(
                           "register_operator",
                           "domain, name, since, inputs, outputs, attributes, any_attributes, pure, compute, infer")});
}

}  // namespace treadle_python
