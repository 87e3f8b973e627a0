#define TREADLE_IMPORTS_NUMPY
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "support.h"
#ifdef TREADLE_HAS_TOOL
#include "cli/tool.h"
#endif

namespace treadle_python {

namespace {

nb::typed<nb::list, nb::str> operators() {
  nb::typed<nb::list, nb::str> result;
  for (size_t i = 0; i < treadle_operator_count(); ++i) result.append(take_text(treadle_operator_json(i)));
  return result;
}

// A path or bytes; the other is None.
struct Source {
  Source(nb::handle path, nb::handle bytes) : bytes_(nb::borrow(bytes)) {
    if (path.is_none()) return;
    path_ = nb::steal(PyUnicode_EncodeFSDefault(path.ptr()));
    if (!path_.is_valid()) raise_pending();
  }
  const char* path() const { return path_.is_valid() ? PyBytes_AS_STRING(path_.ptr()) : nullptr; }
  const char* data() const { return path() ? nullptr : PyBytes_AS_STRING(bytes_.ptr()); }
  size_t size() const { return path() ? 0 : static_cast<size_t>(PyBytes_GET_SIZE(bytes_.ptr())); }

 private:
  nb::object path_, bytes_;
};

nb::str check_model(nb::handle path, nb::handle bytes, int flags) {
  const Source source(path, bytes);
  treadle_report* report = nullptr;
  call_engine([&] { return treadle_model_check(source.path(), source.data(), source.size(), flags, &report); });
  const std::unique_ptr<treadle_report, void (*)(treadle_report*)> owned(report, treadle_report_free);
  return take_text(treadle_report_json(report));
}

nb::bytes infer_model(nb::handle path, nb::handle bytes, unsigned flags) {
  const Source source(path, bytes);
  char* typed = nullptr;
  size_t size = 0;
  call_engine([&] { return treadle_model_infer(source.path(), source.data(), source.size(), flags, &typed, &size); });
  const Owned<char> owned(typed);
  return nb::bytes(typed, size);
}

// A part of a model: the number of a treadle_part.
nb::bytes parse_text(int part, nb::bytes text) {
  char* bytes = nullptr;
  size_t size = 0;
  call_engine(
      [&] { return treadle_text_parse(static_cast<treadle_part>(part), text.c_str(), text.size(), &bytes, &size); });
  const Owned<char> owned(bytes);
  return nb::bytes(bytes, size);
}

nb::bytes print_text(int part, nb::bytes message, int64_t max_elements) {
  char* text = nullptr;
  size_t size = 0;
  call_engine([&] {
    return treadle_text_print(static_cast<treadle_part>(part), message.c_str(), message.size(), max_elements, &text,
                              &size);
  });
  const Owned<char> owned(text);
  return nb::bytes(text, size);
}

nb::bytes read_file(nb::handle path) {
  const nb::bytes name = nb::steal<nb::bytes>(PyUnicode_EncodeFSDefault(path.ptr()));
  if (!name.is_valid()) raise_pending();
  char* bytes = nullptr;
  size_t size = 0;
  call_engine([&] { return treadle_file_read(name.c_str(), &bytes, &size); });
  const Owned<char> owned(bytes);
  return nb::bytes(bytes, size);
}

bool is_text(nb::bytes bytes) {
  return treadle_is_text(bytes.c_str(), bytes.size());
}

#ifdef TREADLE_HAS_TOOL
int run_tool(const std::vector<nb::bytes>& words) {
  std::vector<std::string> arguments;
  for (const nb::bytes& word : words) arguments.emplace_back(word.c_str(), word.size());
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const nb::gil_scoped_release released;
  return cli::run_tool(static_cast<int>(arguments.size()), pointers.data());
}
#endif

bool import_numpy() {
  return PyArray_ImportNumPyAPI() == 0;
}

}  // namespace

NB_MODULE(_core, m) {
  if (!import_numpy()) raise_pending();
  define_run_options(m);
  define_value(m);
  define_session(m);
  define_stream(m);
  m.def("version", treadle_version);
  m.def("check_model", check_model, nb::arg("path").none(), nb::arg("bytes").none(), nb::arg("flags"),
        "A report as JSON");
  m.def("infer_model", infer_model, nb::arg("path").none(), nb::arg("bytes").none(), nb::arg("flags"));
  m.def("parse_text", parse_text, nb::arg("part"), nb::arg("text"));
  m.def("print_text", print_text, nb::arg("part"), nb::arg("message"), nb::arg("max_elements"));
  m.def("is_text", is_text, nb::arg("bytes"));
  m.def("read_file", read_file, nb::arg("path"), "The bytes of a regular file, or of a pipe");
  m.def("set_seed", treadle_set_seed, nb::arg("seed"));
  m.def("operators", operators, "Every operator as a line of JSON");
  m.def("element_of_dtype", element_of_dtype, "Number of the ONNX element type of a numpy dtype, 0 for none");
  m.def("element_name", treadle_element_name, nb::arg("element"));
#ifdef TREADLE_HAS_TOOL
  m.def("run_tool", run_tool, nb::arg("arguments"), "The command-line tool; gives its exit status");
#endif
}

}  // namespace treadle_python
