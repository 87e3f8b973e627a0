#include <unistd.h>

#include <algorithm>
#include <utility>

#include "support.h"

namespace treadle_python {

// Python runs signal handlers in its main thread only, which on Linux is the process's first: all others need not wait
// for the GIL to learn that there is nothing for them. What a handler raises stays pending until run() has the GIL
// back.
bool interrupted(void*) {
#ifdef __linux__
  if (gettid() != getpid()) return false;
#endif
  const PyGILState_STATE state = PyGILState_Ensure();
  const bool raised = PyErr_CheckSignals() != 0;
  PyGILState_Release(state);
  return raised;
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

thread_local PyObject* watching = nullptr;  // what is told of the runs of this thread; null: nothing

// What it raises stays pending, as what a signal handler raises.
bool tell(void*, const treadle_progress* progress) {
  const PyGILState_STATE state = PyGILState_Ensure();
  PyObject* const told = std::exchange(watching, nullptr);  // runs that it makes itself are others
  PyObject* result = progress->total < 0
                         ? PyObject_CallFunction(told, "LO", static_cast<long long>(progress->done), Py_None)
                         : PyObject_CallFunction(told, "LL", static_cast<long long>(progress->done),
                                                 static_cast<long long>(progress->total));
  watching = told;
  const bool raised = result == nullptr;
  Py_XDECREF(result);
  PyGILState_Release(state);
  return raised;
}

nb::object watch(nb::object told) {
  PyObject* const before = std::exchange(watching, told.is_none() ? nullptr : told.release().ptr());
  return before ? nb::steal(before) : nb::none();
}

Owned<treadle_run_options> new_options() {
  treadle_run_options* options = nullptr;
  check(treadle_run_options_create(&options));
  treadle_run_options_set_interrupt(options, interrupted, nullptr);
  return Owned<treadle_run_options>(options);
}

// A setter of both.
template <auto kSet, class T>
void set(RunOptions& options, T value) {
  kSet(options.handle.get(), value);
  kSet(options.watched.get(), value);
}

}  // namespace

RunOptions::RunOptions() : handle(new_options()), watched(new_options()) {
  treadle_run_options_set_progress(watched.get(), tell, nullptr);
}

const treadle_run_options* run_options_of(nb::handle options) {
  static const RunOptions* const defaults = new RunOptions;  // outlives every thread
  if (!options.is_none() && !nb::isinstance<RunOptions>(options)) {
    PyErr_Format(PyExc_TypeError, "run_options are RunOptions, not a %s", Py_TYPE(options.ptr())->tp_name);
    raise_pending();
  }
  const RunOptions& found = options.is_none() ? *defaults : nb::cast<const RunOptions&>(options);
  return (watching ? found.watched : found.handle).get();
}

void define_run_options(nb::module_& m) {
  nb::class_<LoadFlag>(m, "LoadFlag")
      .def(nb::init<>())
      .def("set", &LoadFlag::set)
      // Options can be copied and pickled; nobody cancels what is loaded with the copy.
      .def(
          "__reduce__", [](nb::handle self) { return nb::make_tuple(self.type(), nb::tuple()); },
          nb::sig("def __reduce__(self) -> tuple[type[LoadFlag], tuple[()]]"));
  nb::class_<RunOptions>(m, "RunOptions", nb::dynamic_attr())
      .def(nb::init<>())
      .def_prop_rw(
          "terminate", [](const RunOptions& o) { return treadle_run_options_is_cancelled(o.handle.get()); },
          set<treadle_run_options_cancel, bool>,
          "True stops the runs that use these options, from any thread: they raise Fail")
      .def("_limit_time", set<treadle_run_options_limit_time, double>)
      .def("_limit_iterations", set<treadle_run_options_limit_iterations, int64_t>)
      .def("_limit_memory", set<treadle_run_options_limit_memory, size_t>);
  m.def("watch", watch, nb::arg("told").none(),
        nb::sig("def watch(told: collections.abc.Callable[[int, int | None], object] | None) -> "
                "collections.abc.Callable[[int, int | None], object] | None"));
}

}  // namespace treadle_python
