#include <unistd.h>

#include <algorithm>

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

RunOptions::RunOptions() {
  treadle_run_options* options = nullptr;
  check(treadle_run_options_create(&options));
  handle.reset(options);
  treadle_run_options_set_interrupt(options, interrupted, nullptr);
}

const treadle_run_options* run_options_of(nb::handle options) {
  static const RunOptions* const defaults = new RunOptions;  // outlives every thread
  if (options.is_none()) return defaults->handle.get();
  if (!nb::isinstance<RunOptions>(options)) {
    PyErr_Format(PyExc_TypeError, "run_options are RunOptions, not a %s", Py_TYPE(options.ptr())->tp_name);
    raise_pending();
  }
  return nb::cast<const RunOptions&>(options).handle.get();
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
          [](RunOptions& o, bool on) { treadle_run_options_cancel(o.handle.get(), on); })
      .def("_limit_time", [](RunOptions& o, double s) { treadle_run_options_limit_time(o.handle.get(), s); })
      .def("_limit_iterations",
           [](RunOptions& o, int64_t n) { treadle_run_options_limit_iterations(o.handle.get(), n); })
      .def("_limit_memory", [](RunOptions& o, size_t n) { treadle_run_options_limit_memory(o.handle.get(), n); });
}

}  // namespace treadle_python
