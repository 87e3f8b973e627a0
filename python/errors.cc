#include <new>

#include "support.h"

namespace treadle_python {

namespace {

const char* exception_name(treadle_code code) {
  switch (code) {
    case TREADLE_INVALID_ARGUMENT:
      return "InvalidArgument";
    case TREADLE_INVALID_MODEL:
      return "InvalidGraph";
    case TREADLE_INVALID_FILE:
      return "InvalidProtobuf";
    case TREADLE_NO_SUCH_FILE:
      return "NoSuchFile";
    case TREADLE_NOT_IMPLEMENTED:
      return "NotImplemented";
    case TREADLE_RUNTIME:
      return "RuntimeException";
    case TREADLE_LIMIT:
      return "LimitExceeded";
    case TREADLE_BUSY:
      return "Busy";
    default:
      return "Fail";
  }
}

py::Object readable(std::string_view text) {
  return py::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

[[noreturn]] void raise(const char* exception, const std::string& text, const char* code, const char* place) {
  const py::Object type = py::attribute(py::import("treadle._errors").get(), exception);
  const py::Object error = py::call(type, readable(text).get());
  py::set_attribute(error.get(), "code", py::to(code));
  py::set_attribute(error.get(), "place", readable(place));
  PyErr_SetObject(type.get(), error.get());
  throw py::Error{};
}

}  // namespace

namespace {

void check(treadle_status* status, const char* when_cancelled) {
  if (!status) return;
  const treadle_code code = treadle_status_code(status);
  const std::string text = treadle_status_text(status);
  const std::string place = treadle_status_place(status);
  treadle_status_free(status);
  const char* const name = code == TREADLE_CANCELLED ? when_cancelled : exception_name(code);
  raise(name, text, treadle_code_name(code), place.c_str());
}

}  // namespace

void check(treadle_status* status) {
  check(status, "Fail");
}

void check_load(treadle_status* status) {
  check(status, "ModelLoadCanceled");
}

void note_place(const treadle_status* status) {
  const std::string_view place = treadle_status_place(status);
  if (place.empty()) return;
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (value) {
    const std::string note = "in " + std::string(place);
    const py::Object done = py::Object::take(PyObject_CallMethod(value, "add_note", "O", readable(note).get()));
    if (!done) PyErr_Clear();
  }
  PyErr_Restore(type, value, trace);
}

void invalid_argument(const std::string& message) {
  raise("InvalidArgument", message, treadle_code_name(TREADLE_INVALID_ARGUMENT), "");
}

py::Object take_text(char* text) {
  const Owned<char> owned(text);
  if (!text) throw std::bad_alloc();
  return py::to(text);
}

py::Object take_bytes(char* bytes, size_t size) {
  const Owned<char> owned(bytes);
  if (!bytes) throw std::bad_alloc();
  return py::to_bytes(bytes, size);
}

}  // namespace treadle_python
