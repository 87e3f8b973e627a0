#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>

#include "session.h"

namespace treadle_python {

namespace {

using Pairs = std::map<std::string, std::string>;

// What a stream keeps must not change when the caller writes into the array that it came from.
Owned<treadle_value> own_copy(const Session& session, const std::string& name, nb::handle value) {
  const auto borrowed = session.input_value(name.c_str(), value);
  treadle_value* copy = nullptr;
  if (!borrowed) invalid_argument("'" + name + "' cannot be None");
  check(treadle_value_clone(borrowed.get(), &copy));
  return Owned<treadle_value>(copy);
}

// An axis by its number, or by the name of its size.
void set_time(treadle_stream_options* options, const std::string& name, nb::handle axis) {
  if (PyUnicode_Check(axis.ptr())) {
    return check(treadle_stream_options_time_symbol(options, name.c_str(), nb::cast<std::string>(axis).c_str()));
  }
  const nb::object number = nb::steal(PyNumber_Index(axis.ptr()));
  if (!number.is_valid()) {
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "the time axis of '%s' is a number or the name of its size, not %s", name.c_str(),
                 Py_TYPE(axis.ptr())->tp_name);
    raise_pending();
  }
  check(treadle_stream_options_time(options, name.c_str(), nb::cast<int64_t>(number)));
}

Owned<treadle_stream_options> make_options(const Session& session, const Pairs& state, bool find, AnyDict initial,
                                           AnyDict bind, AnyDict time, int64_t hop, int64_t context) {
  treadle_stream_options* options = nullptr;
  check(treadle_stream_options_create(&options));
  Owned<treadle_stream_options> owned(options);
  for (const auto& [in, out] : state) check(treadle_stream_options_pair(options, in.c_str(), out.c_str()));
  for (auto [name, axis] : time) set_time(options, nb::cast<std::string>(name), axis);
  treadle_stream_options_find_pairs(options, find);
  treadle_stream_options_hop(options, hop, context);
  for (auto [name, value] : initial) {
    const std::string text = nb::cast<std::string>(name);
    check(treadle_stream_options_initial(options, text.c_str(), own_copy(session, text, value).get()));
  }
  for (auto [name, value] : bind) {
    const std::string text = nb::cast<std::string>(name);
    check(treadle_stream_options_bind(options, text.c_str(), own_copy(session, text, value).get()));
  }
  return owned;
}

// The session object is kept by Python for as long as its streams live (keep_alive), and with it the types of its
// inputs.
class Stream {
 public:
  Stream(const Session& session, const Pairs& state, bool find, AnyDict initial, AnyDict bind, AnyDict time,
         int64_t hop, int64_t context)
      : session_(&session) {
    const auto options = make_options(session, state, find, initial, bind, time, hop, context);
    treadle_stream* stream = nullptr;
    check(treadle_stream_create(session.handle.get(), options.get(), &stream));
    handle_.reset(stream);
  }

  Stream(const Session* session, Owned<treadle_stream> handle) : session_(session), handle_(std::move(handle)) {}

  void warm(const std::vector<int64_t>& sizes) {
    call_engine([&] { return treadle_stream_warm(handle_.get(), sizes.data(), sizes.size()); });
  }
  // What the only output got, or a list of what each one got.
  nb::object push(nb::handle feed, nb::handle options) { return advance(treadle_stream_push, feed, options); }
  nb::object flush(nb::handle feed, nb::handle options) { return advance(treadle_stream_flush, feed, options); }

  nb::typed<nb::list, nb::str> output_names() const {
    nb::typed<nb::list, nb::str> names;
    for (size_t i = 0; i < treadle_stream_output_count(handle_.get()); ++i) {
      names.append(treadle_stream_output_name(handle_.get(), i));
    }
    return names;
  }

  AnyDict state() const {
    AnyDict result;
    for (size_t i = 0; i < treadle_stream_state_count(handle_.get()); ++i) {
      treadle_value* value = nullptr;
      check(treadle_stream_state_get(handle_.get(), i, &value));
      result[treadle_stream_state_name(handle_.get(), i)] = to_python(Owned<treadle_value>(value));
    }
    return result;
  }

  nb::typed<nb::list, nb::str> state_names() const {
    nb::typed<nb::list, nb::str> names;
    for (size_t i = 0; i < treadle_stream_state_count(handle_.get()); ++i) {
      names.append(treadle_stream_state_name(handle_.get(), i));
    }
    return names;
  }

  void set_state(const std::string& name, nb::handle value) {
    check(treadle_stream_state_set(handle_.get(), name.c_str(), own_copy(*session_, name, value).get()));
  }

  int64_t pending() const { return treadle_stream_pending(handle_.get()); }
  int64_t delay() const { return treadle_stream_delay(handle_.get()); }
  bool done() const { return treadle_stream_done(handle_.get()); }
  void reset() { check(treadle_stream_reset(handle_.get())); }

  Stream* fork() const {
    treadle_stream* copy = nullptr;
    check(treadle_stream_fork(handle_.get(), &copy));
    return new Stream(session_, Owned<treadle_stream>(copy));
  }

  nb::bytes save() const {
    char* bytes = nullptr;
    size_t size = 0;
    check(treadle_stream_save(handle_.get(), &bytes, &size));
    const Owned<char> owned(bytes);
    return nb::bytes(bytes, size);
  }

  void load(nb::bytes snapshot) { check(treadle_stream_load(handle_.get(), snapshot.c_str(), snapshot.size())); }
  const treadle_stream* handle() const { return handle_.get(); }
  nb::str text() const { return take_text(treadle_stream_text(handle_.get())); }

 private:
  template <class Fn>
  nb::object advance(Fn fn, nb::handle feed, nb::handle options) {
    Feeds feeds;
    session_->collect(feed, feeds, true);
    Outputs outputs(treadle_stream_output_count(handle_.get()), &results_);
    const treadle_run_options* run_options = run_options_of(options);
    call_engine([&] {
      return fn(handle_.get(), run_options, feeds.names.data(), feeds.values.data(), feeds.names.size(), outputs.data(),
                nullptr);
    });
    if (outputs.size() == 1) return outputs.to_python(0);
    nb::list results;
    for (size_t i = 0; i < outputs.size(); ++i) results.append(outputs.to_python(i));
    return results;
  }

  const Session* session_;
  Owned<treadle_stream> handle_;
  KeptHandles results_;
};

// Chunks come by number; treadle/_pool.py has the caller's names for them.
class StreamPool {
 public:
  StreamPool(const Session& session, size_t capacity, const Pairs& state, bool find, AnyDict initial, AnyDict bind,
             AnyDict time, int64_t hop, int64_t context)
      : session_(&session) {
    const auto options = make_options(session, state, find, initial, bind, time, hop, context);
    treadle_pool* pool = nullptr;
    check(treadle_pool_create(session.handle.get(), options.get(), capacity, &pool));
    handle_.reset(pool);
  }

  // `chunks`: a dict of inputs for each id, all with the same names. A list of outputs for each id.
  AnyList push(const std::vector<int64_t>& ids, AnyList chunks, nb::handle options) {
    Feeds feeds;
    size_t names = 0;
    for (nb::handle chunk : chunks) {
      Feeds of_stream;
      session_->collect(chunk, of_stream, true);
      if (feeds.names.empty()) {
        feeds.names = of_stream.names;
        names = of_stream.names.size();
      }
      add_in_order(of_stream, names, feeds);
    }
    Outputs outputs(ids.size() * output_count());
    const treadle_run_options* run_options = run_options_of(options);
    call_engine([&] {
      return treadle_pool_push(handle_.get(), run_options, ids.data(), ids.size(), feeds.names.data(), names,
                               feeds.values.data(), outputs.data());
    });
    AnyList results;
    for (size_t i = 0; i < ids.size(); ++i) results.append(take(outputs, i * output_count()));
    return results;
  }

  AnyList flush(int64_t id, nb::handle options) {
    Outputs outputs(output_count());
    const treadle_run_options* run_options = run_options_of(options);
    call_engine([&] { return treadle_pool_flush(handle_.get(), run_options, id, outputs.data()); });
    return take(outputs, 0);
  }

  void leave(int64_t id) { check(treadle_pool_leave(handle_.get(), id)); }
  Stream* fork(int64_t id) {
    treadle_stream* copy = nullptr;
    check(treadle_pool_fork(handle_.get(), id, &copy));
    return new Stream(session_, Owned<treadle_stream>(copy));
  }
  void join(int64_t id, const Stream& stream) { check(treadle_pool_join(handle_.get(), id, stream.handle())); }
  bool done(int64_t id) const { return treadle_pool_done(handle_.get(), id); }
  int64_t runs() const { return treadle_pool_runs(handle_.get()); }
  nb::str why_single() const { return nb::str(treadle_pool_why_single(handle_.get())); }

  nb::typed<nb::list, nb::str> output_names() const {
    nb::typed<nb::list, nb::str> names;
    for (size_t i = 0; i < output_count(); ++i) names.append(treadle_pool_output_name(handle_.get(), i));
    return names;
  }

 private:
  size_t output_count() const { return treadle_pool_output_count(handle_.get()); }

  AnyList take(Outputs& outputs, size_t first) const {
    AnyList results;
    for (size_t i = 0; i < output_count(); ++i) results.append(to_python(outputs.take(first + i)));
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

  const Session* session_;
  Owned<treadle_pool> handle_;
};

}  // namespace

Owned<treadle_value> Session::input_value(const char* name, nb::handle object) const {
  return to_value(object, find_input(name).type, name);
}

void define_stream(nb::module_& m) {
  nb::class_<Stream>(m, "Stream")
      .def(nb::init<const Session&, const Pairs&, bool, AnyDict, AnyDict, AnyDict, int64_t, int64_t>(),
           nb::keep_alive<1, 2>())
      .def("warm", &Stream::warm, nb::arg("sizes"))
      .def("push", &Stream::push, nb::arg("feed"), nb::arg("options").none())
      .def("flush", &Stream::flush, nb::arg("feed"), nb::arg("options").none())
      .def("output_names", &Stream::output_names)
      .def("state", &Stream::state)
      .def("state_names", &Stream::state_names)
      .def("set_state", &Stream::set_state)
      .def_prop_ro("pending", &Stream::pending)
      .def_prop_ro("delay", &Stream::delay)
      .def_prop_ro("done", &Stream::done)
      .def("reset", &Stream::reset)
      .def("fork", &Stream::fork, nb::keep_alive<0, 1>())
      .def("save", &Stream::save)
      .def("load", &Stream::load)
      .def("text", &Stream::text);
  nb::class_<StreamPool>(m, "StreamPool")
      .def(nb::init<const Session&, size_t, const Pairs&, bool, AnyDict, AnyDict, AnyDict, int64_t, int64_t>(),
           nb::keep_alive<1, 2>())
      .def("push", &StreamPool::push, nb::arg("ids"), nb::arg("chunks"), nb::arg("options").none())
      .def("flush", &StreamPool::flush, nb::arg("id"), nb::arg("options").none())
      .def("leave", &StreamPool::leave)
      .def("fork", &StreamPool::fork, nb::keep_alive<0, 1>())
      .def("join", &StreamPool::join)
      .def("done", &StreamPool::done)
      .def("output_names", &StreamPool::output_names)
      .def_prop_ro("runs", &StreamPool::runs)
      .def_prop_ro("why_single", &StreamPool::why_single);
}

}  // namespace treadle_python
