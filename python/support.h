#pragma once
// What the files of the extension share: numpy's C API, owning pointers to treadle's handles, errors.

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
  void operator()(treadle_pool* p) const { treadle_pool_free(p); }
  void operator()(treadle_stream_options* p) const { treadle_stream_options_free(p); }
  void operator()(char* p) const { treadle_free(p); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

// A value's handle as Python holds it; what OrtValue stands on.
struct Value {
  Owned<treadle_value> handle;
};
inline py::Object to(Value value) {
  return py::make<Value>(std::move(value));
}

// Throws the Python exception that belongs to a status (and frees it).
void check(treadle_status* status);
// The same of loading, which has an exception of its own for being cancelled.
void check_load(treadle_status* status);
// Adds where it happened to the pending error, which something that the engine called has raised.
void note_place(const treadle_status* status);
// Throws treadle's InvalidArgument.
[[noreturn]] void invalid_argument(const std::string& message);

py::Object take_text(char* text);                 // frees it; the engine has no memory where it is null
py::Object take_bytes(char* bytes, size_t size);  // the same

// ---- arrays.cc

// `type`: the declared type, may be NULL; `name`: for messages. NULL stands for None, an absent value. Arrays are
// borrowed where their memory can be used as it is; `writable`: the engine may write into it.
Owned<treadle_value> to_value(PyObject* object, const treadle_type* type, const char* name, bool writable = false);
Owned<treadle_value> tensor_from_memory(int element, const std::vector<int64_t>& shape, void* data, PyObject* owner);
// Takes the value, unless it is a tensor of its own that Python has got a copy of.
py::Object to_python(Owned<treadle_value>& value);
inline py::Object to_python(Owned<treadle_value>&& value) {
  return to_python(value);
}
// The number of the ONNX element type of a numpy dtype (or what numpy takes for one); 0: none.
int element_of_dtype(PyObject* dtype);

// ---- dlpack.cc

Owned<treadle_value> from_dlpack(PyObject* object, const char* name);
py::Object to_dlpack(const treadle_value* tensor);
bool is_uint8_dlpack(PyObject* capsule);

void define_operators(PyObject* module);
void define_session(PyObject* module);
void define_stream(PyObject* module);
void define_value(PyObject* module);

// ---- run_options.cc

struct RunOptions {
  RunOptions();
  // Of the same limits and flags; `watched` are those of runs whose progress a function of the thread is told.
  Owned<treadle_run_options> handle, watched;
};
void define_run_options(PyObject* module);
// Whether a signal handler has raised something in this thread. For treadle_*_set_interrupt.
bool interrupted(void*);

// Stops sessions that are being opened, from any thread, and refuses later ones.
class LoadFlag {
 public:
  // While it lives, `options` are those of a session that is being opened.
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
// Of None, options without limits; Python's signals are looked at either way, and who watches the thread is told.
const treadle_run_options* run_options_of(PyObject* options);

// Lets other threads of Python run until the call_run() that this thread is in has returned. For
// treadle_run_options_set_long_work.
void let_others_run(void*);

// The thread's state where let_others_run() has put it.
PyThreadState*& unlocked_thread();

// Calls `fn` (returning a status of the engine's), then throws what it, or a signal handler, reported. What takes long
// gives up the GIL: a call of a microsecond is not worth that.
template <class Fn>
void call_run(Fn&& fn, void (*throw_error)(treadle_status*) = check) {
  PyThreadState*& unlocked = unlocked_thread();
  PyThreadState* const around = std::exchange(unlocked, nullptr);  // of a run that has called Python
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

// The same without the GIL from the start.
template <class Fn>
void call_engine(Fn&& fn, void (*throw_error)(treadle_status*) = check) {
  call_run(
      [&] {
        let_others_run(nullptr);
        return fn();
      },
      throw_error);
}

}  // namespace treadle_python
