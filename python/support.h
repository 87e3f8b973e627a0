#pragma once
// Shared by the files of the extension: numpy's C API, owning pointers to treadle's handles, errors.

#include "binding.h"

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL treadle_numpy_api
#ifndef TREADLE_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "treadle/treadle.h"

namespace treadle_python {

struct Free {
  void operator()(treadle_value* p) const { treadle_value_free(p); }
  void operator()(treadle_session* p) const { treadle_session_free(p); }
  void operator()(treadle_options* p) const { treadle_options_free(p); }
  void operator()(treadle_run_options* p) const { treadle_run_options_free(p); }
  void operator()(treadle_stream* p) const { treadle_stream_free(p); }
  void operator()(treadle_bound* p) const { treadle_bound_free(p); }
  void operator()(treadle_pool* p) const { treadle_pool_free(p); }
  void operator()(treadle_stream_options* p) const { treadle_stream_options_free(p); }
  void operator()(treadle_trace_options* p) const { treadle_trace_options_free(p); }
  void operator()(treadle_trace* p) const { treadle_trace_free(p); }
  void operator()(char* p) const { treadle_free(p); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

// The handle of a value in Python; the core of OrtValue.
struct Value {
  Owned<treadle_value> handle;
};
inline py::Object to(Value value) {
  return py::make<Value>(std::move(value));
}

// Throws the Python exception for a status (and frees it).
void check(treadle_status* status);
// The same for loading, whose cancellation has an exception of its own.
void check_load(treadle_status* status);
// Adds the place to the pending error, which code that the engine called has raised.
void note_place(const treadle_status* status);
// Throws treadle's InvalidArgument.
[[noreturn]] void invalid_argument(const std::string& message);

py::Object take_text(char* text);                 // frees it; null means that there was no memory
py::Object take_bytes(char* bytes, size_t size);  // the same

// ---- arrays.cc

// `type`: the declared type, may be NULL; `name`: for messages. NULL stands for None, an absent value. An array is
// borrowed if its memory can be used directly. `writable`: the engine may write to it.
Owned<treadle_value> to_value(PyObject* object, const treadle_type* type, const char* name, bool writable = false);
Owned<treadle_value> tensor_from_memory(int element, const std::vector<int64_t>& shape, void* data, PyObject* owner);
// Takes the value, unless it is a tensor of which Python gets a copy.
py::Object to_python(Owned<treadle_value>& value);
inline py::Object to_python(Owned<treadle_value>&& value) {
  return to_python(value);
}
// The number of the ONNX element type for a numpy dtype (or an object that numpy converts to one); 0: none.
int element_of_dtype(PyObject* dtype);

// ---- dlpack.cc

Owned<treadle_value> from_dlpack(PyObject* object, const char* name);
py::Object to_dlpack(const treadle_value* tensor);
bool is_uint8_dlpack(PyObject* capsule);

void define_operators(PyObject* module);
void define_session(PyObject* module);
void define_bound(PyObject* module);
void define_stream(PyObject* module);
void define_value(PyObject* module);
void define_trace(PyObject* module);

// ---- run_options.cc

struct RunOptions {
  RunOptions();
  // With the same limits and flags; `watched` is for runs whose progress is reported to a function of the thread.
  Owned<treadle_run_options> handle, watched;
};
void define_run_options(PyObject* module);
// Whether a signal handler has raised an exception on this thread. For treadle_*_set_interrupt.
bool interrupted(void*);

// Stops the opening of sessions from any thread, and refuses later ones.
class LoadFlag {
 public:
  // Marks `options` as those of a session that is being opened.
  class Opening {
   public:
    Opening(LoadFlag& flag, treadle_options* options);
    ~Opening();
    Opening(const Opening&) = delete;
    Opening& operator=(const Opening&) = delete;

   private:
    LoadFlag& flag_;
    treadle_options* const options_;
  };

  void set(bool on);

 private:
  std::mutex mutex_;
  bool on_ = false;
  std::vector<treadle_options*> opening_;
};
// For None, options without limits. Signals of Python are checked in either case, and the progress function of the
// thread is called.
const treadle_run_options* run_options_of(PyObject* options);

// Releases the GIL until the current call_run() of this thread has returned. For treadle_run_options_set_long_work.
void let_others_run(void*);

// The thread state that let_others_run() has saved.
PyThreadState*& unlocked_thread();

// Calls `fn` (returning a status of the engine), then throws its error, or that of a signal handler. A call of a
// microsecond keeps the GIL; long work releases it.
template <class Fn>
void call_run(Fn&& fn, void (*throw_error)(treadle_status*) = check) {
  PyThreadState*& unlocked = unlocked_thread();
  PyThreadState* const around = std::exchange(unlocked, nullptr);  // of an outer run that has called Python
  treadle_status* const status = fn();
  if (unlocked) PyEval_RestoreThread(unlocked);
  unlocked = around;
  if (PyErr_Occurred()) {
    note_place(status);
    treadle_status_free(status);
    throw py::Error{};
  }
  if (status) throw_error(status);
}

// The same, releasing the GIL at once.
template <class Fn>
void call_engine(Fn&& fn, void (*throw_error)(treadle_status*) = check) {
  call_run(
      [&] {
        let_others_run(nullptr);
        return fn();
      },
      throw_error);
}

// (source, header) of a model as C.
template <class Write>
py::Object take_c(PyObject* options, Write&& write) {
  std::vector<const char*> texts;
  py::for_each(options, [&](PyObject* option) { texts.push_back(py::from<const char*>(option)); });
  char *source = nullptr, *header = nullptr;
  call_engine([&] { return write(texts.data(), texts.size(), &source, &header); });
  return py::tuple(take_text(source), take_text(header));
}

}  // namespace treadle_python
