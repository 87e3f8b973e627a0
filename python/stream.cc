
#include <algorithm>
#include <cstring>

#include "session.h"

namespace treadle_python {

namespace {

// A copy of a value that a stream keeps: the caller may write to the array.
Owned<treadle_value> own_copy(const Session& session, const char* name, PyObject* value) {
  const auto borrowed = session.input_value(name, value);
  treadle_value* copy = nullptr;
  if (!borrowed) invalid_argument("'" + std::string(name) + "' cannot be None");
  check(treadle_value_clone(borrowed.get(), &copy));
  return Owned<treadle_value>(copy);
}

// An axis, by its number or by the name of its size.
void set_time(treadle_stream_options* options, const char* name, PyObject* axis) {
  if (PyUnicode_Check(axis)) {
    return check(treadle_stream_options_time_symbol(options, name, py::from<const char*>(axis)));
  }
  if (!PyIndex_Check(axis)) {
    py::type_error("the time axis of '" + std::string(name) + "' is a number or the name of its size, not " +
                   py::type_name(axis));
  }
  check(treadle_stream_options_time(options, name, py::from<int64_t>(axis)));
}

// Arguments for making a stream or a pool, from Python.
struct Roles {
  PyObject* state;           // a dict from inputs to outputs
  bool find;                 // whether to find further pairs
  PyObject *initial, *bind;  // dicts from inputs to values
  PyObject* time;            // a dict from names to axes
  int64_t hop, context;
};

Owned<treadle_stream_options> make_options(const Session& session, const Roles& roles) {
  treadle_stream_options* options = nullptr;
  check(treadle_stream_options_create(&options));
  Owned<treadle_stream_options> owned(options);
  const auto for_each_name = [](PyObject* given, auto fn) {
    py::for_each_item(given, [&](PyObject* name, PyObject* value) { fn(py::from<const char*>(name), value); });
  };
  for_each_name(roles.state, [&](const char* in, PyObject* out) {
    check(treadle_stream_options_pair(options, in, py::from<const char*>(out)));
  });
  for_each_name(roles.time, [&](const char* name, PyObject* axis) { set_time(options, name, axis); });
  treadle_stream_options_find_pairs(options, roles.find);
  treadle_stream_options_hop(options, roles.hop, roles.context);
  for_each_name(roles.initial, [&](const char* name, PyObject* value) {
    check(treadle_stream_options_initial(options, name, own_copy(session, name, value).get()));
  });
  for_each_name(roles.bind, [&](const char* name, PyObject* value) {
    check(treadle_stream_options_bind(options, name, own_copy(session, name, value).get()));
  });
  return owned;
}

// `session`: a Session object, which lives as long as its streams, and with it the types of its inputs.
class Stream {
 public:
  Stream(PyObject* session, PyObject* state, bool find, PyObject* initial, PyObject* bind, PyObject* time, int64_t hop,
         int64_t context)
      : kept_(py::borrow(session)), session_(&py::instance<Session>(session)) {
    const auto options = make_options(*session_, {state, find, initial, bind, time, hop, context});
    treadle_stream* stream = nullptr;
    check(treadle_stream_create(session_->handle.get(), options.get(), &stream));
    handle_.reset(stream);
  }

  Stream(PyObject* session, Owned<treadle_stream> handle)
      : kept_(py::borrow(session)), session_(&py::instance<Session>(session)), handle_(std::move(handle)) {}

  void warm(const std::vector<int64_t>& sizes) {
    call_engine([&] { return treadle_stream_warm(handle_.get(), sizes.data(), sizes.size()); });
  }
  // The value of the only output, or a list of the values of all outputs.
  py::Object push(PyObject* feed, PyObject* options) { return advance(treadle_stream_push, feed, options); }
  py::Object flush(PyObject* feed, PyObject* options) { return advance(treadle_stream_flush, feed, options); }

  // Binds arrays for step() (BoundArrays), and returns those of the results.
  py::Object bind(PyObject* feed, PyObject* outputs, PyObject* options) {
    auto arrays = std::make_unique<BoundArrays>(*session_, feed, outputs, treadle_stream_output_count(handle_.get()));
    const treadle_run_options* run_options = run_options_of(options);
    do {
      call_run([&] {
        return treadle_stream_bind(handle_.get(), run_options, arrays->names(), arrays->values(), arrays->count(),
                                   arrays->handles());
      });
      arrays->check_fit();
    } while (arrays->make_arrays());
    bound_ = std::move(arrays);
    bound_options_ = py::borrow(options);
    return results_of_step();
  }
  py::Object step() {
    call_run([&] { return treadle_stream_step(handle_.get()); });
    return results_of_step();
  }
  void unbind() {
    check(treadle_stream_unbind(handle_.get()));
    bound_.reset();
  }

  py::Object output_names() const {
    py::Object names = py::new_list();
    for (size_t i = 0; i < treadle_stream_output_count(handle_.get()); ++i) {
      py::append(names, treadle_stream_output_name(handle_.get(), i));
    }
    return names;
  }

  py::Object output_axes() const {
    py::Object axes = py::new_list();
    for (size_t i = 0; i < treadle_stream_output_count(handle_.get()); ++i) {
      py::append(axes, treadle_stream_output_axis(handle_.get(), i));
    }
    return axes;
  }

  py::Object state() const {
    py::Object result = py::new_dict();
    for (size_t i = 0; i < treadle_stream_state_count(handle_.get()); ++i) {
      treadle_value* value = nullptr;
      check(treadle_stream_state_get(handle_.get(), i, &value));
      py::set_item(result, treadle_stream_state_name(handle_.get(), i), to_python(Owned<treadle_value>(value)));
    }
    return result;
  }

  py::Object state_names() const {
    py::Object names = py::new_list();
    for (size_t i = 0; i < treadle_stream_state_count(handle_.get()); ++i) {
      py::append(names, treadle_stream_state_name(handle_.get(), i));
    }
    return names;
  }

  void set_state(const char* name, PyObject* value) {
    check(treadle_stream_state_set(handle_.get(), name, own_copy(*session_, name, value).get()));
  }

  int64_t pending() const { return treadle_stream_pending(handle_.get()); }
  int64_t delay() const { return treadle_stream_delay(handle_.get()); }
  bool done() const { return treadle_stream_done(handle_.get()); }
  void reset() { check(treadle_stream_reset(handle_.get())); }

  py::Object fork() const {
    treadle_stream* copy = nullptr;
    check(treadle_stream_fork(handle_.get(), &copy));
    return py::make<Stream>(kept_.get(), Owned<treadle_stream>(copy));
  }

  py::Object save() const {
    char* bytes = nullptr;
    size_t size = 0;
    check(treadle_stream_save(handle_.get(), &bytes, &size));
    return take_bytes(bytes, size);
  }

  void load(PyObject* snapshot, bool other_weights) {
    const std::string_view saved = py::bytes(snapshot);
    const auto fn = other_weights ? treadle_stream_load_from_other_weights : treadle_stream_load;
    check(fn(handle_.get(), saved.data(), saved.size()));
  }
  const treadle_stream* handle() const { return handle_.get(); }
  const Session& session() const { return *session_; }
  py::Object push_feeds(const Feeds& feeds) { return advance(treadle_stream_push, feeds, Py_None); }
  py::Object text() const { return take_text(treadle_stream_text(handle_.get())); }
  py::Object breaks_realtime(int64_t samples) const {
    char* why = nullptr;
    return treadle_stream_is_realtime(handle_.get(), samples, &why) ? py::borrow(Py_None) : take_text(why);
  }
  py::Object write_c(PyObject* options) const {
    return take_c(options, [&](const char* const* texts, size_t count, char** source, char** header) {
      return treadle_stream_write_c(handle_.get(), texts, count, source, header);
    });
  }

 private:
  py::Object results_of_step() const {
    py::Object results = bound_->results();
    return PyList_Size(results.get()) == 1 ? py::borrow(PyList_GetItem(results.get(), 0)) : std::move(results);
  }

  template <class Fn>
  py::Object advance(Fn fn, PyObject* feed, PyObject* options) {
    Feeds feeds;
    session_->collect(feed, feeds, true);
    return advance(fn, feeds, options);
  }

  template <class Fn>
  py::Object advance(Fn fn, const Feeds& feeds, PyObject* options) {
    Outputs outputs(treadle_stream_output_count(handle_.get()), &results_);
    const treadle_run_options* run_options = run_options_of(options);
    call_run([&] {
      return fn(handle_.get(), run_options, feeds.names.data(), feeds.values.data(), feeds.names.size(), outputs.data(),
                nullptr);
    });
    if (outputs.size() == 1) return outputs.to_python(0);
    py::Object results = py::new_list(outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) py::set_item(results, i, outputs.to_python(i));
    return results;
  }

  const py::Object kept_;
  const Session* const session_;        // in `kept_`
  std::unique_ptr<BoundArrays> bound_;  // what is bound to the stream
  py::Object bound_options_;
  Owned<treadle_stream> handle_;
  KeptHandles results_;
};

// The base of Python's Stream. Its method `push` serves a call that needs no further Python code.
class StreamBase {
 public:
  // The Stream object and the name of its only input, which is None if there are several. None: pushes go through
  // Python.
  void set_core(PyObject* stream, PyObject* only) {
    stream_ = py::is_none(stream) ? nullptr : &py::instance<Stream>(stream);
    core_ = py::borrow(stream);
    only_ = py::borrow(only);
  }

  static py::Object method(PyObject* function) {
    push_in_python = py::borrow(function).release();
    return py::method_like<StreamBase, push>(function,
                                             "($self, feed=None, /, *, run_options=None, progress=None, **inputs)");
  }

 private:
  static py::Object push(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
    const StreamBase& base = py::instance_of_method<StreamBase>(self);
    if (Stream* const stream = base.stream_) {
      const py::Object kept = base.core_;  // another thread may close the stream
      Feeds feeds;
      if (base.read(arguments, count, names, feeds)) return stream->push_feeds(feeds);
    }
    return py::call_with(push_in_python, self, arguments, count, names);
  }

  // Reads the chunks: from a dict, by keyword, or a single array. False: Python's method has to handle the arguments.
  bool read(PyObject* const* arguments, Py_ssize_t count, PyObject* names, Feeds& feeds) const {
    static const Keywords<2> keywords({"run_options", "progress"});
    const Session& session = stream_->session();
    if (count > 0) {
      if (count > 1 || names) return false;
      if (PyDict_Check(arguments[0])) {
        session.collect(arguments[0], feeds, true);
        return true;
      }
      const Session::Input* const only = PyArray_Check(arguments[0]) ? session.interned_input(only_.get()) : nullptr;
      if (only) session.add(*only, arguments[0], feeds);
      return only;
    }
    for (Py_ssize_t i = 0, n = names ? PyTuple_Size(names) : 0; i < n; ++i) {
      PyObject* const name = PyTuple_GetItem(names, i);
      const Session::Input* const input = keywords.find(name) < 2 ? nullptr : session.interned_input(name);
      if (!input) return false;
      session.add(*input, arguments[i], feeds);
    }
    return true;
  }

  static inline PyObject* push_in_python = nullptr;  // the Python method behind `push`

  py::Object core_, only_;
  Stream* stream_ = nullptr;  // in `core_`
};

// Streams have numbers here; treadle/_pool.py maps the caller's names to them.
class StreamPool {
 public:
  StreamPool(PyObject* session, size_t capacity, PyObject* state, bool find, PyObject* initial, PyObject* bind,
             PyObject* time, int64_t hop, int64_t context)
      : kept_(py::borrow(session)), session_(&py::instance<Session>(session)) {
    const auto options = make_options(*session_, {state, find, initial, bind, time, hop, context});
    treadle_pool* pool = nullptr;
    check(treadle_pool_create(session_->handle.get(), options.get(), capacity, &pool));
    handle_.reset(pool);
  }

  // `chunks`: a dict of inputs for each id, all with the same names. Returns a list of outputs for each id.
  py::Object push(const std::vector<int64_t>& ids, PyObject* chunks, PyObject* options) {
    Feeds feeds;
    size_t names = 0;
    py::for_each(chunks, [&](PyObject* chunk) {
      Feeds of_stream;
      session_->collect(chunk, of_stream, true);
      if (feeds.names.empty()) {
        feeds.names = of_stream.names;
        names = of_stream.names.size();
      }
      add_in_order(of_stream, names, feeds);
    });
    Outputs outputs(ids.size() * output_count());
    const treadle_run_options* run_options = run_options_of(options);
    call_engine([&] {
      return treadle_pool_push(handle_.get(), run_options, ids.data(), ids.size(), feeds.names.data(), names,
                               feeds.values.data(), outputs.data());
    });
    py::Object results = py::new_list(ids.size());
    for (size_t i = 0; i < ids.size(); ++i) py::set_item(results, i, take(outputs, i * output_count()));
    return results;
  }

  // `ids`: a contiguous array of int64. `lengths`: None, or a contiguous array of int64, [ids, outputs].
  py::Object push_batch(PyObject* ids, PyObject* feed, PyObject* options, PyObject* lengths) {
    if (!PyArray_Check(ids)) py::type_error("the numbers of streams are an array, not " + py::type_name(ids));
    auto* const array = reinterpret_cast<PyArrayObject*>(ids);
    if (PyArray_TYPE(array) != NPY_INT64 || !PyArray_IS_C_CONTIGUOUS(array) || PyArray_NDIM(array) != 1) {
      invalid_argument("the numbers of streams are no contiguous array of int64 with one axis");
    }
    const auto* const numbers = static_cast<const int64_t*>(PyArray_DATA(array));
    const auto count = static_cast<size_t>(PyArray_DIM(array, 0));
    int64_t* const room = lengths == Py_None ? nullptr : room_for_lengths(lengths, count);
    Feeds feeds;
    session_->collect(feed, feeds, true);
    Outputs outputs(output_count());
    const treadle_run_options* run_options = run_options_of(options);
    call_engine([&] {
      return treadle_pool_push_batch(handle_.get(), run_options, numbers, count, feeds.names.data(),
                                     feeds.values.data(), feeds.names.size(), outputs.data(), room);
    });
    return take(outputs, 0);
  }

  py::Object flush(int64_t id, PyObject* options) {
    Outputs outputs(output_count());
    const treadle_run_options* run_options = run_options_of(options);
    call_engine([&] { return treadle_pool_flush(handle_.get(), run_options, id, outputs.data()); });
    return take(outputs, 0);
  }

  void leave(int64_t id) { check(treadle_pool_leave(handle_.get(), id)); }
  py::Object fork(int64_t id) {
    treadle_stream* copy = nullptr;
    check(treadle_pool_fork(handle_.get(), id, &copy));
    return py::make<Stream>(kept_.get(), Owned<treadle_stream>(copy));
  }
  void join(int64_t id, const Stream& stream) { check(treadle_pool_join(handle_.get(), id, stream.handle())); }
  bool done(int64_t id) const { return treadle_pool_done(handle_.get(), id); }
  bool contains(int64_t id) const { return treadle_pool_contains(handle_.get(), id); }
  size_t size() const { return treadle_pool_size(handle_.get()); }
  int64_t runs() const { return treadle_pool_runs(handle_.get()); }
  const char* why_single() const { return treadle_pool_why_single(handle_.get()); }

  py::Object output_names() const {
    py::Object names = py::new_list();
    for (size_t i = 0; i < output_count(); ++i) py::append(names, treadle_pool_output_name(handle_.get(), i));
    return names;
  }

 private:
  size_t output_count() const { return treadle_pool_output_count(handle_.get()); }

  int64_t* room_for_lengths(PyObject* lengths, size_t streams) const {
    if (!PyArray_Check(lengths)) py::type_error("lengths are an array, not " + py::type_name(lengths));
    auto* const array = reinterpret_cast<PyArrayObject*>(lengths);
    if (PyArray_TYPE(array) != NPY_INT64 || !PyArray_ISCARRAY(array) || PyArray_NDIM(array) != 2 ||
        static_cast<size_t>(PyArray_DIM(array, 0)) != streams ||
        static_cast<size_t>(PyArray_DIM(array, 1)) != output_count()) {
      invalid_argument("lengths are no contiguous, writable array of int64 [" + std::to_string(streams) + ", " +
                       std::to_string(output_count()) + "]: a number for each stream and output");
    }
    return static_cast<int64_t*>(PyArray_DATA(array));
  }

  py::Object take(Outputs& outputs, size_t first) const {
    py::Object results = py::new_list(output_count());
    for (size_t i = 0; i < output_count(); ++i) py::set_item(results, i, to_python(outputs.take(first + i)));
    return results;
  }

  static void add_in_order(Feeds& of_stream, size_t names, Feeds& feeds) {
    bool alike = of_stream.names.size() == names;
    for (size_t i = 0; alike && i < names; ++i) {
      const auto at = std::find_if(of_stream.names.begin(), of_stream.names.end(),
                                   [&](const char* name) { return std::strcmp(name, feeds.names[i]) == 0; });
      alike = at != of_stream.names.end();
      if (alike) feeds.values.push_back(of_stream.values[static_cast<size_t>(at - of_stream.names.begin())]);
    }
    if (!alike) invalid_argument("the streams of one push must be given the same inputs");
    for (auto& value : of_stream.owned) feeds.owned.push_back(std::move(value));
  }

  const py::Object kept_;
  const Session* const session_;  // in `kept_`
  Owned<treadle_pool> handle_;
};

}  // namespace

Owned<treadle_value> Session::input_value(const char* name, PyObject* object) const {
  return to_value(object, find_input(name).type, name);
}

void define_stream(PyObject* module) {
  py::define_type<StreamBase>(module, "StreamBase", py::base_constructor<StreamBase>(),
                              {py::method<&StreamBase::set_core>("_set_core", "stream, only")});
  py::define_functions(module, {py::function<StreamBase::method>("push_method", "function")});
  py::define_type<Stream>(
      module, "Stream",
      py::constructor<Stream, PyObject*, PyObject*, bool, PyObject*, PyObject*, PyObject*, int64_t, int64_t>(),
      {py::method<&Stream::warm>("warm", "sizes"), py::method<&Stream::push>("push", "feed, options"),
       py::method<&Stream::breaks_realtime>("breaks_realtime", "samples"),
       py::method<&Stream::flush>("flush", "feed, options"),
       py::method<&Stream::bind>("bind", "feed, outputs, options"), py::method<&Stream::step>("step"),
       py::method<&Stream::unbind>("unbind"), py::method<&Stream::output_names>("output_names"),
       py::method<&Stream::output_axes>("output_axes"), py::method<&Stream::state>("state"),
       py::method<&Stream::state_names>("state_names"), py::method<&Stream::set_state>("set_state", "name, value"),
       py::method<&Stream::reset>("reset"), py::method<&Stream::fork>("fork"), py::method<&Stream::save>("save"),
       py::method<&Stream::load>("load", "snapshot, other_weights"), py::method<&Stream::text>("text"),
       py::method<&Stream::write_c>("write_c", "options")},
      {py::property<&Stream::pending>("pending"), py::property<&Stream::delay>("delay"),
       py::property<&Stream::done>("done")});
  py::define_type<StreamPool>(
      module, "StreamPool",
      py::constructor<StreamPool, PyObject*, size_t, PyObject*, bool, PyObject*, PyObject*, PyObject*, int64_t,
                      int64_t>(),
      {py::method<&StreamPool::push>("push", "ids, chunks, options"),
       py::method<&StreamPool::push_batch>("push_batch", "ids, feed, options, lengths"),
       py::method<&StreamPool::contains>("contains", "id"), py::method<&StreamPool::flush>("flush", "id, options"),
       py::method<&StreamPool::leave>("leave", "id"), py::method<&StreamPool::fork>("fork", "id"),
       py::method<&StreamPool::join>("join", "id, stream"), py::method<&StreamPool::done>("done", "id"),
       py::method<&StreamPool::output_names>("output_names")},
      {py::property<&StreamPool::runs>("runs"), py::property<&StreamPool::size>("size"),
       py::property<&StreamPool::why_single>("why_single")});
}

}  // namespace treadle_python
