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

[[noreturn]] void raise(const char* exception, const std::string& text, const char* code, const char* place) {
  nb::object type = nb::module_::import_("treadle._errors").attr(exception);
  nb::object message = nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
  nb::object error = type(message);
  error.attr("code") = code;
  error.attr("place") = nb::steal(PyUnicode_DecodeUTF8(place, static_cast<Py_ssize_t>(strlen(place)), "replace"));
  PyErr_SetObject(type.ptr(), error.ptr());
  throw nb::python_error();
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

void invalid_argument(const std::string& message) {
  raise("InvalidArgument", message, treadle_code_name(TREADLE_INVALID_ARGUMENT), "");
}

nb::str take_text(char* text) {
  const Owned<char> owned(text);
  if (!text) throw std::bad_alloc();
  return nb::steal<nb::str>(PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(strlen(text)), "surrogateescape"));
}

}  // namespace treadle_python
