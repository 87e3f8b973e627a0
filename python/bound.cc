// Runs and steps over arrays that stay bound.
#include "session.h"

namespace treadle_python {

namespace {

PyArrayObject* as_array(PyObject* object) {
  return reinterpret_cast<PyArrayObject*>(object);
}

bool is_over(const treadle_value* value, const py::Object& array) {
  return array && treadle_tensor_data(value) == PyArray_DATA(as_array(array.get()));
}

// The value over the memory of an array, which it must not copy.
Owned<treadle_value> in_place(PyObject* object, const treadle_type* type, const char* name, bool writable) {
  if (!PyArray_Check(object)) {
    py::type_error("'" + std::string(name) + "' is a " + py::type_name(object) +
                   ": binding takes numpy arrays, which are read and written in place");
  }
  Owned<treadle_value> value = to_value(object, type, name, writable);
  const bool is_over_it = value && treadle_tensor_data(value.get()) == PyArray_DATA(as_array(object));
  if (is_over_it && (!writable || treadle_tensor_is_exclusive(value.get()))) return value;
  invalid_argument("the array for '" + std::string(name) +
                   "' cannot be used in place: expected a contiguous, aligned array of the element type" +
                   (writable ? ", which may be written" : ""));
}

}  // namespace

BoundArrays::BoundArrays(const Session& session, PyObject* feed, PyObject* outputs, size_t count)
    : arrays_(count), handles_(count, nullptr) {
  py::for_each_item(feed, [&](PyObject* name, PyObject* array) {
    fed_.push_back(py::borrow(name));
    fed_.push_back(py::borrow(array));
    names_.push_back(py::from<const char*>(name));
    owned_.push_back(in_place(array, session.input_type(names_.back()), names_.back(), false));
    values_.push_back(owned_.back().get());
  });
  size_t i = 0;
  if (py::is_none(outputs)) return;
  py::for_each(outputs, [&](PyObject* array) {
    if (i < count && !py::is_none(array)) take_array(i, py::borrow(array));
    ++i;
  });
}

void BoundArrays::take_array(size_t output, py::Object array) {
  handles_[output] = in_place(array.get(), nullptr, "an output", true).release();
  arrays_[output] = std::move(array);
}

bool BoundArrays::make_arrays() {
  bool any = false;
  for (size_t i = 0; i < handles_.size(); ++i) {
    if (arrays_[i] || treadle_tensor_bytes(handles_[i]) == 0) continue;
    Owned<treadle_value> value(std::exchange(handles_[i], nullptr));
    treadle_value* clone = nullptr;
    check(treadle_value_clone(value.get(), &clone));
    py::Object array = to_python(Owned<treadle_value>(clone));
    const Owned<treadle_value> over = to_value(array.get(), nullptr, "an output", true);
    if (treadle_tensor_element(over.get()) != treadle_tensor_element(value.get()) || !is_over(over.get(), array)) {
      handles_[i] = value.release();  // elements that numpy stores otherwise
      continue;
    }
    take_array(i, std::move(array));
    any = true;
  }
  return any;
}

void BoundArrays::check_fit() const {
  for (size_t i = 0; i < handles_.size(); ++i) {
    if (!arrays_[i] || is_over(handles_[i], arrays_[i])) continue;
    const py::Object found = take_text(treadle_value_type_text(handles_[i]));
    invalid_argument("the array for output " + std::to_string(i) + " does not fit: expected " +
                     py::from<const char*>(found.get()));
  }
}

py::Object BoundArrays::results() const {
  py::Object results = py::new_list(handles_.size());
  for (size_t i = 0; i < handles_.size(); ++i) {
    if (is_over(handles_[i], arrays_[i])) {
      py::set_item(results, i, py::borrow(arrays_[i].get()));
      continue;
    }
    treadle_value* clone = nullptr;
    check(treadle_value_clone(handles_[i], &clone));
    py::set_item(results, i, to_python(Owned<treadle_value>(clone)));
  }
  return results;
}

BoundRun::BoundRun(PyObject* session, PyObject* names, PyObject* feed, PyObject* outputs, PyObject* options)
    : session_(py::borrow(session)),
      options_(py::borrow(options)),
      arrays_(py::instance<Session>(session), feed, outputs,
              py::is_none(names) ? treadle_session_count(py::instance<Session>(session).handle.get(), TREADLE_OUTPUT)
                                 : static_cast<size_t>(PyList_Size(names))) {
  const Session& of = py::instance<Session>(session);
  const std::vector<const char*> wanted = of.output_names(names);
  const treadle_run_options* run_options = run_options_of(options);
  do {
    treadle_bound* bound = nullptr;
    call_run([&] {
      return treadle_session_bind(of.handle.get(), run_options, arrays_.names(), arrays_.values(), arrays_.count(),
                                  wanted.empty() ? nullptr : wanted.data(), wanted.size(), arrays_.handles(), &bound);
    });
    handle_.reset(bound);
    arrays_.check_fit();
  } while (arrays_.make_arrays());
}

py::Object BoundRun::run() {
  call_run([&] { return treadle_bound_run(handle_.get()); });
  return arrays_.results();
}

void define_bound(PyObject* module) {
  py::define_type<BoundRun>(module, "BoundRun",
                            py::constructor<BoundRun, PyObject*, PyObject*, PyObject*, PyObject*, PyObject*>(),
                            {py::method<&BoundRun::run>("run"), py::method<&BoundRun::results>("results")},
                            {py::property<&BoundRun::why>("why")});
}

}  // namespace treadle_python
