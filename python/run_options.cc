#include <unistd.h>

#include <algorithm>
#include <utility>

#include "support.h"

namespace treadle_python {

// Python runs signal handlers only on its main thread, which on Linux is the first thread of the process. Other threads
// need not wait for the GIL to find no signal. An exception of a handler stays pending until run() has the GIL again.
bool interrupted(void*) {
#ifdef __linux__
  if (gettid() != getpid()) return false;
#endif
  const py::Locked locked;
  return PyErr_CheckSignals() != 0;
}

PyThreadState*& unlocked_thread() {
  thread_local constinit PyThreadState* thread = nullptr;
  return thread;
}

void let_others_run(void*) {
  PyThreadState*& unlocked = unlocked_thread();
  if (!unlocked) unlocked = PyEval_SaveThread();
}

LoadFlag::Opening::Opening(LoadFlag& flag, treadle_options* options) : flag_(flag), options_(options) {
  const std::lock_guard lock(flag_.mutex_);
  flag_.opening_.push_back(options_);
  treadle_options_cancel_load(options_, flag_.on_);
}

LoadFlag::Opening::~Opening() {
  const std::lock_guard lock(flag_.mutex_);
  flag_.opening_.erase(std::find(flag_.opening_.begin(), flag_.opening_.end(), options_));
}

void LoadFlag::set(bool on) {
  const std::lock_guard lock(mutex_);
  on_ = on;
  for (treadle_options* options : opening_) treadle_options_cancel_load(options, on);
}

namespace {

thread_local PyObject* watching = nullptr;  // the progress function for runs of this thread; null: none

// An exception stays pending, as that of a signal handler.
bool tell(void*, const treadle_progress* progress) {
  const py::Locked locked;
  PyObject* const told = std::exchange(watching, nullptr);  // runs that the function makes itself do not report to it
  const auto done = static_cast<long long>(progress->done), total = static_cast<long long>(progress->total);
  const py::Object result = py::Object::take(total < 0 ? PyObject_CallFunction(told, "LO", done, Py_None)
                                                       : PyObject_CallFunction(told, "LL", done, total));
  watching = told;
  return !result;
}

py::Object watch(PyObject* told) {
  PyObject* const before = std::exchange(watching, py::is_none(told) ? nullptr : py::borrow(told).release());
  return before ? py::steal(before) : py::none();
}

Owned<treadle_run_options> new_options() {
  treadle_run_options* options = nullptr;
  check(treadle_run_options_create(&options));
  treadle_run_options_set_interrupt(options, interrupted, nullptr);
  treadle_run_options_set_long_work(options, let_others_run, nullptr);
  return Owned<treadle_run_options>(options);
}

// Sets both handles.
template <auto kSet, class T>
void set(RunOptions& options, T value) {
  kSet(options.handle.get(), value);
  kSet(options.watched.get(), value);
}

bool is_cancelled(const RunOptions& options) {
  return treadle_run_options_is_cancelled(options.handle.get());
}

// Options can be copied and pickled. The copy has a flag of its own, which cancels nothing.
py::Object reduce(PyObject* flag) {
  return py::tuple(py::borrow(reinterpret_cast<PyObject*>(Py_TYPE(flag))), py::tuple());
}

}  // namespace

RunOptions::RunOptions() : handle(new_options()), watched(new_options()) {
  treadle_run_options_set_progress(watched.get(), tell, nullptr);
}

const treadle_run_options* run_options_of(PyObject* options) {
  static const RunOptions* const defaults = new RunOptions;  // never destroyed, as threads may use it at exit
  const RunOptions* const found = py::is_none(options) ? defaults : py::find_instance<RunOptions>(options);
  if (!found) py::type_error("run_options are RunOptions, not a " + py::type_name(options));
  return (watching ? found->watched : found->handle).get();
}

void define_run_options(PyObject* module) {
  py::define_type<LoadFlag>(module, "LoadFlag", py::constructor<LoadFlag>(),
                            {py::method<&LoadFlag::set>("set", "on"), py::method<reduce>("__reduce__")});
  py::define_type<RunOptions>(
      module, "RunOptions", py::constructor<RunOptions>(Py_TPFLAGS_BASETYPE),
      {py::method<set<treadle_run_options_limit_time, double>>("_limit_time", "seconds"),
       py::method<set<treadle_run_options_limit_iterations, int64_t>>("_limit_iterations", "count"),
       py::method<set<treadle_run_options_limit_memory, size_t>>("_limit_memory", "bytes")},
      {py::property<is_cancelled, set<treadle_run_options_cancel, bool>>(
          "terminate", "True stops the runs that use these options, from any thread: they raise Fail")});
  py::define_functions(module, {py::function<watch>("watch", "told")});
}

}  // namespace treadle_python
