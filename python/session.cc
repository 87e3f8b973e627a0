#include "session.h"

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "dropin/operator_library.h"

namespace treadle_python {

namespace {

Owned<treadle_options> new_options() {
  treadle_options* options = nullptr;
  check(treadle_options_create(&options));
  return Owned<treadle_options>(options);
}

void add_library(treadle_options* options, PyObject* path) {
  const py::Object name = py::steal(PyUnicode_EncodeFSDefault(path));
  check(treadle::dropin::add_operator_library(options, PyBytes_AsString(name.get())));
}

Owned<treadle_options> make_options(PyObject* options, PyObject* dimensions, PyObject* denoted, PyObject* initializers,
                                    PyObject* files, PyObject* libraries) {
  Owned<treadle_options> owned = new_options();
  treadle_options* const handle = owned.get();
  const auto set_each = [&](PyObject* given, auto set, auto convert) {
    py::for_each_item(given, [&](PyObject* name, PyObject* value) {
      check(set(handle, py::from<const char*>(name), convert(value)));
    });
  };
  set_each(options, treadle_options_set, py::from<const char*>);
  set_each(dimensions, treadle_options_set_dimension, py::from<int64_t>);
  set_each(denoted, treadle_options_set_denoted_dimension, py::from<int64_t>);
  py::for_each_item(initializers, [&](PyObject* name, PyObject* value) {
    const char* const key = py::from<const char*>(name);
    check(treadle_options_set_initializer(handle, key, to_value(value, nullptr, key).get()));
  });
  py::for_each_item(files, [&](PyObject* name, PyObject* contents) {
    const std::string_view data = py::bytes(contents);
    check(treadle_options_set_external_file(handle, py::from<const char*>(name), data.data(), data.size()));
  });
  py::for_each(libraries, [&](PyObject* path) { add_library(handle, path); });
  treadle_options_set_interrupt(handle, interrupted, nullptr);
  return owned;
}

const char* name_of(PyObject* name) {
  if (!PyUnicode_Check(name)) py::type_error("names are str, not " + py::type_name(name));
  return py::text(name).data();
}

py::Object shape_of(const treadle_type* type) {
  const int64_t rank = treadle_type_rank(type);
  if (rank < 0) return py::none();
  py::Object shape = py::new_list();
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t dim = treadle_type_dim(type, i);
    if (dim >= 0) {
      py::append(shape, dim);
    } else {
      char* symbol = treadle_type_symbol(type, i);
      py::append(shape, symbol ? take_text(symbol) : py::none());
    }
  }
  return shape;
}

}  // namespace

void open_operator_library(PyObject* path) {
  add_library(new_options().get(), path);
}

Session::Session(PyObject* path, PyObject* bytes, PyObject* folder, PyObject* options, PyObject* dimensions,
                 PyObject* denoted, PyObject* initializers, PyObject* files, PyObject* libraries, LoadFlag& flag) {
  const auto made = make_options(options, dimensions, denoted, initializers, files, libraries);
  const LoadFlag::Opening opening(flag, made.get());
  treadle_session* session = nullptr;
  if (!py::is_none(path)) {
    const py::Object name = py::steal(PyUnicode_EncodeFSDefault(path));
    call_engine([&] { return treadle_session_open(PyBytes_AsString(name.get()), made.get(), &session); }, check_load);
  } else {
    const std::string_view data = py::bytes(bytes);
    const char* where = py::is_none(folder) ? "." : name_of(folder);
    call_engine([&] { return treadle_session_from_bytes(data.data(), data.size(), where, made.get(), &session); },
                check_load);
  }
  handle.reset(session);
  for (const treadle_role role : {TREADLE_INPUT, TREADLE_OVERRIDABLE}) {
    for (size_t i = 0; i < treadle_session_count(session, role); ++i) {
      const treadle_type* type = treadle_session_type(session, role, i);
      const bool required = role == TREADLE_INPUT && treadle_type_kind(type) != TREADLE_OPTIONAL;
      const char* name = treadle_session_name(session, role, i);
      py::Object key = py::Object::take(PyUnicode_InternFromString(name));
      if (!key) PyErr_Clear();  // not UTF-8: there is no such input
      input_index_.emplace(name, inputs_.size());
      inputs_.push_back({std::move(key), name, type, required});
      required_ += required;
    }
  }
}

// Counts the fed inputs on the way, and looks for missing ones only if the count is too small.
void Session::collect(PyObject* feed, Feeds& feeds, bool allow_missing) const {
  if (!PyDict_Check(feed)) {
    py::type_error("the feed is a dict from names to values, not " + py::type_name(feed));
  }
  size_t required = 0;
  feeds.reserve(static_cast<size_t>(PyDict_Size(feed)));
  py::for_each_item(feed, [&](PyObject* key, PyObject* object) {
    const Input& input = find_input(key);
    add(input, object, feeds);
    required += input.required;
  });
  if (required < required_ && !allow_missing) missing_inputs(feed);
}

void Session::add(const Input& input, PyObject* object, Feeds& feeds) const {
  feeds.add(input.name, to_value(object, input.type, input.name));
}

const Session::Input* Session::interned_input(PyObject* key) const {
  constexpr size_t kFew = 16;
  for (size_t i = 0; i < std::min(inputs_.size(), kFew); ++i) {
    if (inputs_[i].key.get() == key) return &inputs_[i];
  }
  return nullptr;
}

const Session::Input& Session::find_input(PyObject* key) const {
  const Input* const found = interned_input(key);
  return found ? *found : find_input(name_of(key));
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

void Session::missing_inputs(PyObject* feed) const {
  const py::Object missing = py::new_list();
  for (size_t i = 0; i < treadle_session_count(handle.get(), TREADLE_INPUT); ++i) {
    const char* name = treadle_session_name(handle.get(), TREADLE_INPUT, i);
    const py::Object key = py::to(name);
    const int given = PyDict_Contains(feed, key.get());
    py::require(given >= 0);
    if (find_input(name).required && !given) py::append(missing, key);
  }
  const py::Object names = py::steal(PyDict_Keys(feed));
  PyErr_Format(PyExc_ValueError, "Required inputs (%R) are missing from input feed (%R).", missing.get(), names.get());
  throw py::Error{};
}

// The names live as long as `names`, which is None or a list; a single str is refused.
std::vector<const char*> Session::output_names(PyObject* names) const {
  std::vector<const char*> result;
  if (py::is_none(names)) return result;
  if (PyUnicode_Check(names)) py::type_error("output names are a list of str, not one str");
  py::for_each(names, [&](PyObject* name) { result.push_back(name_of(name)); });
  return result;
}

treadle_status* Session::call(const treadle_run_options* options, const Feeds& feeds,
                              const std::vector<const char*>& wanted, treadle_value** outputs,
                              treadle_profile*& profile) const {
  const char* const* const names = wanted.empty() ? nullptr : wanted.data();
  if (!recorder_) {
    return treadle_session_run(handle.get(), options, feeds.names.data(), feeds.values.data(), feeds.names.size(),
                               names, wanted.size(), outputs);
  }
  return treadle_session_run_recorded(handle.get(), options, feeds.names.data(), feeds.values.data(),
                                      feeds.names.size(), names, wanted.size(), outputs, &profile);
}

void Session::report_to_recorder(treadle_profile* profile) const {
  const std::unique_ptr<treadle_profile, void (*)(treadle_profile*)> owned(profile, treadle_profile_free);
  if (!recorder_) return;  // another thread has ended the recording meanwhile
  py::call(recorder_, take_text(treadle_profile_kernels(profile, recording_since_ns_)).get());
}

void Session::record(PyObject* recorder, int64_t since_ns) {
  recording_since_ns_ = since_ns;
  recorder_ = py::is_none(recorder) ? py::Object() : py::borrow(recorder);
}

py::Object Session::run(PyObject* names, PyObject* feed, PyObject* options) const {
  Feeds feeds;
  collect(feed, feeds, false);
  const bool is_list = py::is_none(names) || PyUnicode_Check(names) || PyList_Check(names);
  const py::Object kept = is_list ? py::borrow(names) : py::steal(PySequence_List(names));
  const std::vector<const char*> wanted = output_names(kept.get());
  const size_t count = wanted.empty() ? treadle_session_count(handle.get(), TREADLE_OUTPUT) : wanted.size();
  Outputs outputs(count, wanted.empty() ? &results_ : nullptr);
  const treadle_run_options* run_options = run_options_of(options);
  treadle_profile* profile = nullptr;
  call_run([&] { return call(run_options, feeds, wanted, outputs.data(), profile); });
  if (profile) report_to_recorder(profile);
  py::Object results = py::new_list(count);
  for (size_t i = 0; i < count; ++i) py::set_item(results, i, outputs.to_python(i));
  return results;
}

py::Object Session::run_values(PyObject* names, PyObject* feed, const std::vector<Value*>& given,
                               PyObject* options) const {
  Feeds feeds;
  collect(feed, feeds, false);
  const std::vector<const char*> wanted = output_names(names);
  const size_t count = wanted.empty() ? treadle_session_count(handle.get(), TREADLE_OUTPUT) : wanted.size();
  Outputs outputs(count);
  std::vector<treadle_value*> handles(count, nullptr);
  for (size_t i = 0; i < count; ++i) handles[i] = i < given.size() && given[i] ? given[i]->handle.get() : nullptr;
  const treadle_run_options* run_options = run_options_of(options);
  treadle_profile* profile = nullptr;
  call_run([&] { return call(run_options, feeds, wanted, handles.data(), profile); });
  py::Object results = py::new_list(count);
  for (size_t i = 0; i < count; ++i) {
    const bool ours = i >= given.size() || !given[i];
    treadle_value* copy = nullptr;
    if (!ours) check(treadle_value_copy(handles[i], &copy));
    py::set_item(results, i, to(Value{Owned<treadle_value>(ours ? handles[i] : copy)}));
  }
  if (profile) report_to_recorder(profile);
  return results;
}

py::Object Session::infos(int role) const {
  const auto which = static_cast<treadle_role>(role);
  py::Object result = py::new_list();
  for (size_t i = 0; i < treadle_session_count(handle.get(), which); ++i) {
    const treadle_type* type = treadle_session_type(handle.get(), which, i);
    py::append(result, py::tuple(treadle_session_name(handle.get(), which, i), take_text(treadle_type_name(type)),
                                 shape_of(type)));
  }
  return result;
}

py::Object Session::metadata() const {
  py::Object result = py::new_dict();
  for (const char* field : {"producer_name", "producer_version", "domain", "description", "graph_name",
                            "graph_description", "ir_version", "model_version"}) {
    py::set_item(result, field, take_text(treadle_session_metadata(handle.get(), field)));
  }
  const py::Object properties = py::new_dict();
  for (size_t i = 0; i < treadle_session_property_count(handle.get()); ++i) {
    py::set_item(properties, treadle_session_property_key(handle.get(), i),
                 treadle_session_property_value(handle.get(), i));
  }
  const py::Object opsets = py::new_dict();
  for (size_t i = 0; i < treadle_session_opset_count(handle.get()); ++i) {
    py::set_item(opsets, treadle_session_opset_domain(handle.get(), i), treadle_session_opset_version(handle.get(), i));
  }
  py::set_item(result, "properties", properties);
  py::set_item(result, "opsets", opsets);
  return result;
}

py::Object Session::counters() const {
  const treadle_counters counters = treadle_session_counters(handle.get());
  py::Object result = py::new_dict();
  py::set_item(result, "plans", counters.plans);
  py::set_item(result, "runs", counters.runs);
  py::set_item(result, "allocations_last_run", counters.allocations_last_run);
  py::set_item(result, "peak_bytes_last_run", counters.peak_bytes_last_run);
  py::set_item(result, "compilations", counters.compilations);
  py::set_item(result, "cache_loads", counters.cache_loads);
  return result;
}

py::Object Session::remarks() const {
  py::Object remarks = py::new_list();
  for (size_t i = 0; const char* remark = treadle_session_remark(handle.get(), i); ++i) py::append(remarks, remark);
  for (size_t i = 0; const char* warning = treadle_session_warning(handle.get(), i); ++i) py::append(remarks, warning);
  return remarks;
}

void Session::wait_compiled() const {
  const py::Unlocked unlocked;
  treadle_session_wait_compiled(handle.get());
}

void Session::compile() const {
  const py::Unlocked unlocked;
  treadle_session_compile(handle.get());
}

py::Object Session::explain(PyObject* feed, bool json, bool all, size_t width) const {
  Feeds feeds;
  if (!py::is_none(feed)) collect(feed, feeds, false);
  char* text = nullptr;
  call_engine([&] {
    if (json) {
      return treadle_session_explain(handle.get(), feeds.names.data(), feeds.values.data(), feeds.names.size(), true,
                                     &text);
    }
    return treadle_session_explain_text(handle.get(), feeds.names.data(), feeds.values.data(), feeds.names.size(),
                                        all ? TREADLE_EXPLAIN_ALL : 0, width, &text);
  });
  return take_text(text);
}

py::Object Session::profile(PyObject* feed, size_t runs, PyObject* options) const {
  Feeds feeds;
  collect(feed, feeds, false);
  const treadle_run_options* run_options = run_options_of(options);
  treadle_profile* made = nullptr;
  call_engine([&] {
    return treadle_session_profile(handle.get(), run_options, feeds.names.data(), feeds.values.data(),
                                   feeds.names.size(), runs, &made);
  });
  const std::unique_ptr<treadle_profile, void (*)(treadle_profile*)> profile(made, treadle_profile_free);
  return py::tuple(take_text(treadle_profile_text(made)), take_text(treadle_profile_json(made)),
                   take_text(treadle_profile_trace(made)));
}

py::Object Session::dump_graph() const {
  char* text = nullptr;
  check(treadle_session_dump_graph(handle.get(), &text));
  return take_text(text);
}

py::Object Session::optimized_model() const {
  char* bytes = nullptr;
  size_t size = 0;
  call_engine([&] { return treadle_session_optimized_model(handle.get(), &bytes, &size); });
  return take_bytes(bytes, size);
}

// (source, header)
py::Object Session::write_c(PyObject* options, PyObject* fixed) const {
  Feeds feeds;
  collect(fixed, feeds, true);
  return take_c(options, [&](const char* const* texts, size_t count, char** source, char** header) {
    return treadle_session_write_c(handle.get(), texts, count, feeds.names.data(), feeds.values.data(),
                                   feeds.names.size(), source, header);
  });
}

py::Object Session::dump_plan(PyObject* feed) const {
  Feeds feeds;
  collect(feed, feeds, false);
  char* text = nullptr;
  call_engine([&] {
    return treadle_session_dump_plan(handle.get(), feeds.names.data(), feeds.values.data(), feeds.names.size(), &text);
  });
  return take_text(text);
}

void SessionBase::set_core(PyObject* session) {
  session_ = py::is_none(session) ? nullptr : &py::instance<Session>(session);
  core_ = py::borrow(session);
}

namespace {

PyObject* run_in_python = nullptr;  // the Python method behind `run`

// Reads the arguments of `run`: output_names, input_feed and run_options. False: Python's method has to handle them,
// since they ask for progress or are wrong.
bool read_arguments(PyObject* const* arguments, Py_ssize_t count, PyObject* names, std::array<PyObject*, 4>& read) {
  static const Keywords<4> keywords({"output_names", "input_feed", "run_options", "progress"});
  if (count > 3) return false;
  std::copy_n(arguments, count, read.begin());
  for (Py_ssize_t i = 0, n = names ? PyTuple_Size(names) : 0; i < n; ++i) {
    const size_t found = keywords.find(PyTuple_GetItem(names, i));
    if (found == read.size() || read[found]) return false;
    read[found] = arguments[count + i];
  }
  return read[0] && read[1] && (!read[3] || py::is_none(read[3]));
}

py::Object run_method(PyObject* function) {
  run_in_python = py::borrow(function).release();
  return py::method_like<SessionBase, SessionBase::run>(
      function, "($self, output_names, input_feed, run_options=None, *, progress=None)");
}

}  // namespace

py::Object SessionBase::run(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  const Session* const session = py::instance_of_method<SessionBase>(self).session_;
  std::array<PyObject*, 4> read{};
  if (!session || !read_arguments(arguments, count, names, read)) {
    return py::call_with(run_in_python, self, arguments, count, names);
  }
  return session->run(read[0], read[1], read[2] ? read[2] : Py_None);
}

void define_session(PyObject* module) {
  py::define_type<SessionBase>(module, "SessionBase", py::base_constructor<SessionBase>(),
                               {py::method<&SessionBase::set_core>("_set_core", "session")});
  py::define_functions(module, {py::function<run_method>("run_method", "function")});
  py::define_type<Session>(
      module, "Session",
      py::constructor<Session, PyObject*, PyObject*, PyObject*, PyObject*, PyObject*, PyObject*, PyObject*, PyObject*,
                      PyObject*, LoadFlag&>(),
      {py::method<&Session::run>("run", "output_names, feed, options"),
       py::method<&Session::run_values>("run_values", "output_names, feed, outputs, options"),
       py::method<&Session::record>("record", "recorder, since_ns", "Calls a function with the nodes of each run"),
       py::method<&Session::infos>("infos", "role"), py::method<&Session::metadata>("metadata"),
       py::method<&Session::counters>("counters"), py::method<&Session::remarks>("remarks"),
       py::method<&Session::wait_compiled>("wait_compiled"), py::method<&Session::compile>("compile"),
       py::method<&Session::explain>("explain", "feed, json, all, width"),
       py::method<&Session::profile>("profile", "feed, runs, options"),
       py::method<&Session::trace>("trace", "feed, watch, every, statistics, values, find, memory, save, options"),
       py::method<&Session::dump_graph>("dump_graph"), py::method<&Session::optimized_model>("optimized_model"),
       py::method<&Session::dump_plan>("dump_plan", "feed"),
       py::method<&Session::write_c>("write_c", "options, fixed")});
}

}  // namespace treadle_python
