#include "session.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <unordered_map>

namespace treadle_python {

namespace {

Owned<treadle_options> make_options(const std::map<std::string, std::string>& options,
                                    const std::map<std::string, int64_t>& dimensions,
                                    const std::map<std::string, int64_t>& denoted) {
  treadle_options* handle = nullptr;
  check(treadle_options_create(&handle));
  Owned<treadle_options> owned(handle);
  for (const auto& [key, value] : options) check(treadle_options_set(handle, key.c_str(), value.c_str()));
  for (const auto& [name, size] : dimensions) check(treadle_options_set_dimension(handle, name.c_str(), size));
  for (const auto& [name, size] : denoted) check(treadle_options_set_denoted_dimension(handle, name.c_str(), size));
  treadle_options_set_interrupt(handle, interrupted, nullptr);
  return owned;
}

const char* utf8(nb::handle text) {
  const char* data = PyUnicode_Check(text.ptr()) ? PyUnicode_AsUTF8(text.ptr()) : nullptr;
  if (!data) {
    if (!PyErr_Occurred()) PyErr_Format(PyExc_TypeError, "names are str, not %s", Py_TYPE(text.ptr())->tp_name);
    raise_pending();
  }
  return data;
}

nb::object shape_of(const treadle_type* type) {
  nb::list shape;
  const int64_t rank = treadle_type_rank(type);
  if (rank < 0) return nb::none();
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t dim = treadle_type_dim(type, i);
    if (dim >= 0) {
      shape.append(dim);
    } else {
      char* symbol = treadle_type_symbol(type, i);
      shape.append(symbol ? take_text(symbol) : nb::object(nb::none()));
    }
  }
  return shape;
}

}  // namespace

Session::Session(nb::object path, nb::object bytes, nb::object folder,
                 const std::map<std::string, std::string>& options, const std::map<std::string, int64_t>& dimensions,
                 const std::map<std::string, int64_t>& denoted, LoadFlag& flag) {
  const auto made = make_options(options, dimensions, denoted);
  const LoadFlag::Opening opening(flag, made.get());
  treadle_session* session = nullptr;
  if (!path.is_none()) {
    nb::bytes name = nb::steal<nb::bytes>(PyUnicode_EncodeFSDefault(path.ptr()));
    if (!name.is_valid()) raise_pending();
    call_engine([&] { return treadle_session_open(name.c_str(), made.get(), &session); }, check_load);
  } else {
    const nb::bytes data = nb::cast<nb::bytes>(bytes);
    const char* where = folder.is_none() ? nullptr : utf8(folder);
    call_engine([&] { return treadle_session_from_bytes(data.c_str(), data.size(), where, made.get(), &session); },
                check_load);
  }
  handle.reset(session);
  for (const treadle_role role : {TREADLE_INPUT, TREADLE_OVERRIDABLE}) {
    for (size_t i = 0; i < treadle_session_count(session, role); ++i) {
      const treadle_type* type = treadle_session_type(session, role, i);
      const bool required = role == TREADLE_INPUT && treadle_type_kind(type) != TREADLE_OPTIONAL;
      const char* name = treadle_session_name(session, role, i);
      nb::object key = nb::steal(PyUnicode_InternFromString(name));
      if (!key.is_valid()) PyErr_Clear();  // no UTF-8: such a name cannot be fed
      input_index_.emplace(name, inputs_.size());
      inputs_.push_back({std::move(key), name, type, required});
      required_ += required;
    }
  }
}

// What was fed is counted on the way; only when something is missing is it looked for.
void Session::collect(nb::handle feed, Feeds& feeds, bool allow_missing) const {
  if (!PyDict_Check(feed.ptr())) {
    PyErr_Format(PyExc_TypeError, "the feed is a dict from names to values, not %s", Py_TYPE(feed.ptr())->tp_name);
    raise_pending();
  }
  size_t required = 0;
  Py_ssize_t position = 0;
  PyObject* key = nullptr;
  PyObject* object = nullptr;
  const auto size = static_cast<size_t>(PyDict_GET_SIZE(feed.ptr()));
  feeds.reserve(size);
  while (PyDict_Next(feed.ptr(), &position, &key, &object)) {
    const Input& input = find_input(key);
    feeds.add(input.name, to_value(object, input.type, input.name));
    required += input.required;
  }
  if (required < required_ && !allow_missing) missing_inputs(feed);
}

const Session::Input& Session::find_input(nb::handle key) const {
  constexpr size_t kFew = 16;
  for (size_t i = 0; i < std::min(inputs_.size(), kFew); ++i) {
    if (inputs_[i].key.ptr() == key.ptr()) return inputs_[i];
  }
  return find_input(utf8(key));
}

const Session::Input& Session::find_input(const char* name) const {
  const auto found = input_index_.find(name);
  if (found == input_index_.end()) unknown_input(name);
  return inputs_[found->second];
}

void Session::unknown_input(const char* name) const {
  std::string known;
  for (size_t i = 0; i < treadle_session_count(handle.get(), TREADLE_INPUT); ++i) {
    known += (i ? ", " : "") + std::string(treadle_session_name(handle.get(), TREADLE_INPUT, i));
  }
  invalid_argument(std::string("the model has no input '") + name + "' (it has: " + known + ")");
}

void Session::missing_inputs(nb::handle feed) const {
  nb::list missing;
  for (size_t i = 0; i < treadle_session_count(handle.get(), TREADLE_INPUT); ++i) {
    const char* name = treadle_session_name(handle.get(), TREADLE_INPUT, i);
    if (find_input(name).required && !nb::cast<nb::dict>(feed).contains(name)) missing.append(name);
  }
  nb::object text = nb::steal(PyUnicode_FromFormat("Required inputs (%R) are missing from input feed (%R).",
                                                   missing.ptr(), nb::steal(PyDict_Keys(feed.ptr())).ptr()));
  PyErr_SetObject(PyExc_ValueError, text.ptr());
  raise_pending();
}

std::vector<const char*> Session::output_names(nb::handle names) const {
  std::vector<const char*> result;
  if (names.is_none()) return result;
  if (PyUnicode_Check(names.ptr())) {
    PyErr_SetString(PyExc_TypeError, "output names are a list of str, not one str");
    raise_pending();
  }
  for (nb::handle name : nb::iter(names)) result.push_back(utf8(name));
  return result;
}

AnyList Session::run(nb::handle names, nb::handle feed, nb::handle options) const {
  Feeds feeds;
  collect(feed, feeds, false);
  const nb::object kept = names.is_none() ? nb::none() : nb::object(nb::steal(PySequence_List(names.ptr())));
  if (!kept.is_valid()) raise_pending();
  const std::vector<const char*> wanted = PyUnicode_Check(names.ptr()) ? output_names(names) : output_names(kept);
  const size_t count = wanted.empty() ? treadle_session_count(handle.get(), TREADLE_OUTPUT) : wanted.size();
  Outputs outputs(count, wanted.empty() ? &results_ : nullptr);
  const treadle_run_options* run_options = run_options_of(options);
  call_engine([&] {
    return treadle_session_run(handle.get(), run_options, feeds.names.data(), feeds.values.data(), feeds.names.size(),
                               wanted.empty() ? nullptr : wanted.data(), wanted.size(), outputs.data());
  });
  AnyList results = nb::steal<AnyList>(PyList_New(static_cast<Py_ssize_t>(count)));
  for (size_t i = 0; i < count; ++i) {
    PyList_SET_ITEM(results.ptr(), static_cast<Py_ssize_t>(i), outputs.to_python(i).release().ptr());
  }
  return results;
}

std::vector<Value> Session::run_values(nb::handle names, AnyDict feed, std::vector<Value*> given,
                                       nb::handle options) const {
  Feeds feeds;
  collect(feed, feeds, false);
  const std::vector<const char*> wanted = output_names(names);
  const size_t count = wanted.empty() ? treadle_session_count(handle.get(), TREADLE_OUTPUT) : wanted.size();
  Outputs outputs(count);
  std::vector<treadle_value*> handles(count, nullptr);
  for (size_t i = 0; i < count; ++i) handles[i] = i < given.size() && given[i] ? given[i]->handle.get() : nullptr;
  const treadle_run_options* run_options = run_options_of(options);
  call_engine([&] {
    return treadle_session_run(handle.get(), run_options, feeds.names.data(), feeds.values.data(), feeds.names.size(),
                               wanted.empty() ? nullptr : wanted.data(), wanted.size(), handles.data());
  });
  std::vector<Value> results;
  for (size_t i = 0; i < count; ++i) {
    const bool ours = i >= given.size() || !given[i];
    treadle_value* copy = nullptr;
    if (!ours) check(treadle_value_copy(handles[i], &copy));
    results.push_back({Owned<treadle_value>(ours ? handles[i] : copy)});
  }
  return results;
}

Session::Infos Session::infos(int role) const {
  Infos result;
  for (size_t i = 0; i < treadle_session_count(handle.get(), static_cast<treadle_role>(role)); ++i) {
    const treadle_type* type = treadle_session_type(handle.get(), static_cast<treadle_role>(role), i);
    result.append(nb::make_tuple(treadle_session_name(handle.get(), static_cast<treadle_role>(role), i),
                                 take_text(treadle_type_name(type)), shape_of(type)));
  }
  return result;
}

AnyDict Session::metadata() const {
  AnyDict result;
  for (const char* field : {"producer_name", "producer_version", "domain", "description", "graph_name",
                            "graph_description", "ir_version", "model_version"}) {
    result[field] = take_text(treadle_session_metadata(handle.get(), field));
  }
  nb::dict properties;
  for (size_t i = 0; i < treadle_session_property_count(handle.get()); ++i) {
    properties[treadle_session_property_key(handle.get(), i)] = treadle_session_property_value(handle.get(), i);
  }
  nb::dict opsets;
  for (size_t i = 0; i < treadle_session_opset_count(handle.get()); ++i) {
    opsets[treadle_session_opset_domain(handle.get(), i)] = treadle_session_opset_version(handle.get(), i);
  }
  result["properties"] = properties;
  result["opsets"] = opsets;
  return result;
}

Session::Counters Session::counters() const {
  const treadle_counters counters = treadle_session_counters(handle.get());
  Counters result;
  result["plans"] = counters.plans;
  result["runs"] = counters.runs;
  result["allocations_last_run"] = counters.allocations_last_run;
  result["peak_bytes_last_run"] = counters.peak_bytes_last_run;
  result["compilations"] = counters.compilations;
  result["cache_loads"] = counters.cache_loads;
  return result;
}

nb::typed<nb::list, nb::str> Session::remarks() const {
  nb::typed<nb::list, nb::str> remarks;
  for (size_t i = 0; const char* remark = treadle_session_remark(handle.get(), i); ++i) remarks.append(remark);
  return remarks;
}

void Session::wait_compiled() const {
  const nb::gil_scoped_release release;
  treadle_session_wait_compiled(handle.get());
}

void Session::compile() const {
  const nb::gil_scoped_release release;
  treadle_session_compile(handle.get());
}

nb::str Session::explain(nb::handle feed, bool json) const {
  Feeds feeds;
  if (!feed.is_none()) collect(feed, feeds, false);
  char* text = nullptr;
  call_engine([&] {
    return treadle_session_explain(handle.get(), feeds.names.data(), feeds.values.data(), feeds.names.size(), json,
                                   &text);
  });
  return take_text(text);
}

nb::typed<nb::tuple, nb::str, nb::str, nb::str> Session::profile(nb::handle feed, size_t runs,
                                                                 nb::handle options) const {
  Feeds feeds;
  collect(feed, feeds, false);
  const treadle_run_options* run_options = run_options_of(options);
  treadle_profile* made = nullptr;
  call_engine([&] {
    return treadle_session_profile(handle.get(), run_options, feeds.names.data(), feeds.values.data(),
                                   feeds.names.size(), runs, &made);
  });
  const std::unique_ptr<treadle_profile, void (*)(treadle_profile*)> profile(made, treadle_profile_free);
  return nb::make_tuple(take_text(treadle_profile_text(made)), take_text(treadle_profile_json(made)),
                        take_text(treadle_profile_trace(made)));
}

nb::str Session::dump_graph() const {
  char* text = nullptr;
  check(treadle_session_dump_graph(handle.get(), &text));
  return take_text(text);
}

nb::bytes Session::optimized_model() const {
  char* bytes = nullptr;
  size_t size = 0;
  call_engine([&] { return treadle_session_optimized_model(handle.get(), &bytes, &size); });
  const Owned<char> owned(bytes);
  return nb::bytes(bytes, size);
}

nb::str Session::dump_plan(nb::handle feed) const {
  Feeds feeds;
  collect(feed, feeds, false);
  char* text = nullptr;
  call_engine([&] {
    return treadle_session_dump_plan(handle.get(), feeds.names.data(), feeds.values.data(), feeds.names.size(), &text);
  });
  return take_text(text);
}

void define_session(nb::module_& m) {
  nb::class_<Session>(m, "Session")
      .def(nb::init<nb::object, nb::object, nb::object, const std::map<std::string, std::string>&,
                    const std::map<std::string, int64_t>&, const std::map<std::string, int64_t>&, LoadFlag&>(),
           nb::arg("path").none(), nb::arg("bytes").none(), nb::arg("folder").none(), nb::arg("options"),
           nb::arg("dimensions"), nb::arg("denoted"), nb::arg("flag"))
      .def("run", &Session::run, nb::arg("output_names").none(), nb::arg("feed"), nb::arg("options").none())
      .def("run_values", &Session::run_values, nb::arg("output_names").none(), nb::arg("feed"), nb::arg("outputs"),
           nb::arg("options").none(),
           nb::sig("def run_values(self, output_names: object | None, feed: dict[str, typing.Any], "
                   "outputs: collections.abc.Sequence[Value | None], options: object | None) -> list[Value]"))
      .def("infos", &Session::infos)
      .def("metadata", &Session::metadata)
      .def("counters", &Session::counters)
      .def("remarks", &Session::remarks)
      .def("wait_compiled", &Session::wait_compiled)
      .def("compile", &Session::compile)
      .def("explain", &Session::explain, nb::arg("feed").none(), nb::arg("json"))
      .def("profile", &Session::profile, nb::arg("feed"), nb::arg("runs"), nb::arg("options").none())
      .def("dump_graph", &Session::dump_graph)
      .def("optimized_model", &Session::optimized_model)
      .def("dump_plan", &Session::dump_plan);
}

}  // namespace treadle_python
