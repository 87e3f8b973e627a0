#define TREADLE_IMPORTS_NUMPY

#include <string>
#include <vector>

#include "dropin/quiet_entries.h"
#include "dropin/version.h"
#include "session.h"
#include "support.h"
#ifdef TREADLE_HAS_TOOL
#include "cli/tool.h"
#endif

namespace treadle_python {

namespace {

py::Object operators() {
  const py::Object result = py::new_list();
  for (size_t i = 0; i < treadle_operator_count(); ++i) py::append(result, take_text(treadle_operator_json(i)));
  return result;
}

const char* onnxruntime_version() {
  return treadle::dropin::kOnnxruntimeVersion;
}

// Whether a configuration entry of a session, or of a run, causes no warning although it has no effect.
bool is_quiet_entry(bool of_run, const char* key, const char* value) {
  using treadle::dropin::Owner;
  return treadle::dropin::is_quiet(of_run ? Owner::kRun : Owner::kSession, key, value);
}

// Calls `callback` with a message, and returns whether there was no exception. sys.unraisablehook gets an exception.
bool tell(PyObject* callback, PyObject* arguments) {
  const py::Object result = py::Object::take(PyObject_Call(callback, arguments, nullptr));
  if (!result) PyErr_WriteUnraisable(callback);
  return static_cast<bool>(result);
}

py::Object encoded_path(PyObject* path) {
  return py::steal(PyUnicode_EncodeFSDefault(path));
}

// A path or bytes; the other one is None.
struct Source {
  Source(PyObject* path, PyObject* bytes) {
    if (py::is_none(path)) {
      bytes_ = py::bytes(bytes);
    } else {
      path_ = encoded_path(path);
    }
  }
  const char* path() const { return path_ ? PyBytes_AsString(path_.get()) : nullptr; }
  const char* data() const { return bytes_.data(); }
  size_t size() const { return bytes_.size(); }

 private:
  py::Object path_;
  std::string_view bytes_;
};

py::Object check_model(PyObject* path, PyObject* bytes, int flags) {
  const Source source(path, bytes);
  treadle_report* report = nullptr;
  call_engine([&] { return treadle_model_check(source.path(), source.data(), source.size(), flags, &report); });
  const std::unique_ptr<treadle_report, void (*)(treadle_report*)> owned(report, treadle_report_free);
  return take_text(treadle_report_json(report));
}

py::Object infer_model(PyObject* path, PyObject* bytes, unsigned flags) {
  const Source source(path, bytes);
  char* typed = nullptr;
  size_t size = 0;
  call_engine([&] { return treadle_model_infer(source.path(), source.data(), source.size(), flags, &typed, &size); });
  return take_bytes(typed, size);
}

// The opened model, and what changed as JSON.
py::Object open_sizes(PyObject* path, PyObject* bytes, PyObject* sizes) {
  const Source source(path, bytes);
  std::vector<const char*> texts;
  py::for_each(sizes, [&](PyObject* size) { texts.push_back(py::from<const char*>(size)); });
  char *opened = nullptr, *json = nullptr;
  size_t size = 0;
  call_engine([&] {
    return treadle_model_open_sizes(source.path(), source.data(), source.size(), texts.data(), texts.size(), &opened,
                                    &size, &json);
  });
  return py::tuple(take_bytes(opened, size), take_text(json));
}

// A dict of arrays or values by name.
struct NamedValues {
  explicit NamedValues(PyObject* feed) {
    py::for_each_item(feed, [&](PyObject* name, PyObject* value) {
      names.push_back(py::from<const char*>(name));
      owned.push_back(to_value(value, nullptr, names.back()));
      values.push_back(owned.back().get());
    });
  }
  std::vector<Owned<treadle_value>> owned;
  std::vector<const char*> names;
  std::vector<const treadle_value*> values;
};

py::Object expose_model(PyObject* path, PyObject* bytes, PyObject* feed, PyObject* wanted) {
  const Source source(path, bytes);
  const NamedValues feeds(feed);
  std::vector<const char*> names;
  py::for_each(wanted, [&](PyObject* name) { names.push_back(py::from<const char*>(name)); });
  char *model = nullptr, *json = nullptr;
  size_t size = 0;
  call_engine([&] {
    return treadle_model_expose(source.path(), source.data(), source.size(), feeds.names.data(), feeds.values.data(),
                                feeds.names.size(), names.data(), names.size(), &model, &size, &json);
  });
  return py::tuple(take_bytes(model, size), take_text(json));
}

py::Object node_model(PyObject* path, PyObject* bytes, PyObject* feed, PyObject* node) {
  const Source source(path, bytes);
  const NamedValues feeds(feed);
  const char* const name = py::from<const char*>(node);
  char *model = nullptr, *json = nullptr;
  size_t size = 0;
  call_engine([&] {
    return treadle_model_node(source.path(), source.data(), source.size(), feeds.names.data(), feeds.values.data(),
                              feeds.names.size(), name, &model, &size, &json);
  });
  return py::tuple(take_bytes(model, size), take_text(json));
}

// What `fails(bytes, attempts)` says of a candidate; an exception ends the search, and stays pending.
treadle_verdict verdict_of(void* fails, const void* candidate, size_t size, const treadle_reduction* so_far) {
  const py::Locked locked;
  const py::Object bytes =
      py::Object::take(PyBytes_FromStringAndSize(static_cast<const char*>(candidate), static_cast<Py_ssize_t>(size)));
  if (!bytes) return TREADLE_STOP;
  const py::Object answer = py::Object::take(PyObject_CallFunction(static_cast<PyObject*>(fails), "On", bytes.get(),
                                                                   static_cast<Py_ssize_t>(so_far->attempts)));
  const int fails_as_well = answer ? PyObject_IsTrue(answer.get()) : -1;
  if (fails_as_well < 0) return TREADLE_STOP;
  return fails_as_well ? TREADLE_FAILS : TREADLE_PASSES;
}

py::Object reduce_model(PyObject* path, PyObject* bytes, PyObject* fails, size_t attempts) {
  const Source source(path, bytes);
  char* reduced = nullptr;
  size_t size = 0;
  call_engine([&] {
    return treadle_model_reduce(source.path(), source.data(), source.size(), verdict_of, fails, attempts, 1, &reduced,
                                &size);
  });
  return take_bytes(reduced, size);
}

// A part of a model: the number of a treadle_part.
py::Object parse_text(int part, PyObject* text) {
  const std::string_view source = py::bytes(text);
  char* bytes = nullptr;
  size_t size = 0;
  call_engine(
      [&] { return treadle_text_parse(static_cast<treadle_part>(part), source.data(), source.size(), &bytes, &size); });
  return take_bytes(bytes, size);
}

py::Object print_text(int part, PyObject* message, int64_t max_elements) {
  const std::string_view source = py::bytes(message);
  char* text = nullptr;
  size_t size = 0;
  call_engine([&] {
    return treadle_text_print(static_cast<treadle_part>(part), source.data(), source.size(), max_elements, &text,
                              &size);
  });
  return take_bytes(text, size);
}

py::Object read_file(PyObject* path) {
  const py::Object name = encoded_path(path);
  char* bytes = nullptr;
  size_t size = 0;
  call_engine([&] { return treadle_file_read(PyBytes_AsString(name.get()), &bytes, &size); });
  return take_bytes(bytes, size);
}

bool is_text(PyObject* bytes) {
  const std::string_view found = py::bytes(bytes);
  return treadle_is_text(found.data(), found.size());
}

#ifdef TREADLE_HAS_TOOL
int run_tool(PyObject* words) {
  std::vector<std::string> arguments;
  py::for_each(words, [&](PyObject* word) { arguments.emplace_back(py::bytes(word)); });
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const py::Unlocked unlocked;
  return cli::run_tool(static_cast<int>(arguments.size()), pointers.data());
}
#endif

void define_module(PyObject* module) {
  define_operators(module);
  define_run_options(module);
  define_value(module);
  define_session(module);
  define_trace(module);
  define_bound(module);
  define_stream(module);
  py::define_functions(
      module,
      {py::function<treadle_version>("version"),
       py::function<onnxruntime_version>("onnxruntime_version", "",
                                         "The release whose names and behaviours are offered"),
       py::function<check_model>("check_model", "path, bytes, flags", "A report as JSON"),
       py::function<infer_model>("infer_model", "path, bytes, flags"),
       py::function<expose_model>("expose_model", "path, bytes, feed, wanted",
                                  "A model that hands inner values out, and JSON about them"),
       py::function<node_model>("node_model", "path, bytes, feed, node", "A model of one node, and its inputs as JSON"),
       py::function<open_sizes>("open_sizes", "path, bytes, sizes", "The opened model, and what changed as JSON"),
       py::function<reduce_model>("reduce_model", "path, bytes, fails, attempts"),
       py::function<parse_text>("parse_text", "part, text"),
       py::function<print_text>("print_text", "part, message, max_elements"),
       py::function<is_text>("is_text", "bytes"),
       py::function<open_operator_library>("open_operator_library", "path"),
       py::function<is_quiet_entry>("is_quiet_entry", "of_run, key, value"),
       py::function<tell>("tell", "callback, arguments", "Whether a function took a message"),
       py::function<read_file>("read_file", "path", "The bytes of a regular file, or of a pipe"),
       py::function<treadle_set_seed>("set_seed", "seed"),
       py::function<operators>("operators", "", "Every operator as a line of JSON"),
       py::function<element_of_dtype>("element_of_dtype", "dtype",
                                      "Number of the ONNX element type of a numpy dtype, 0 for none"),
       py::function<is_uint8_dlpack>("is_uint8_dlpack", "capsule", "Whether the elements of a DLPack tensor are uint8"),
       py::function<treadle_element_name>("element_name", "element")});
}

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "treadle._core", nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr};
#ifdef TREADLE_HAS_TOOL
PyModuleDef tool_definition = {
    PyModuleDef_HEAD_INIT, "treadle_tool._tool", nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr};
#endif

}  // namespace

#ifdef TREADLE_HAS_TOOL
// A second module in the same file for the tool. It does not import numpy, which takes longer than most of the tool's
// commands.
PyMODINIT_FUNC PyInit__tool() {  // NOLINT(bugprone-reserved-identifier,readability-identifier-naming)
  return py::guarded(static_cast<PyObject*>(nullptr), [] {
    py::Object module = py::steal(PyModule_Create(&tool_definition));
    py::define_functions(module.get(), {py::function<run_tool>("run_tool", "arguments",
                                                               "The command-line tool; gives its exit status")});
    return module.release();
  });
}
#endif

// The name that Python looks for.
PyMODINIT_FUNC PyInit__core() {  // NOLINT(bugprone-reserved-identifier,readability-identifier-naming)
  return py::guarded(static_cast<PyObject*>(nullptr), [] {
    py::require(PyArray_ImportNumPyAPI() == 0);
    py::Object module = py::steal(PyModule_Create(&definition));
    define_module(module.get());
    return module.release();
  });
}

}  // namespace treadle_python
