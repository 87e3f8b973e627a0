#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>

#include "session.h"

namespace treadle_python {

namespace {

// The session object is kept by Python for as long as its streams live (keep_alive), and with it the types of its
// inputs.
class Stream {
 public:
  Stream(const Session& session, const std::map<std::string, std::string>& state, bool find, AnyDict initial,
         AnyDict bind, const std::map<std::string, int64_t>& time, int64_t hop, int64_t context)
      : session_(&session) {
    treadle_stream_options* options = nullptr;
    check(treadle_stream_options_create(&options));
    const Owned<treadle_stream_options> owned(options);
    for (const auto& [in, out] : state) check(treadle_stream_options_pair(options, in.c_str(), out.c_str()));
    for (const auto& [name, axis] : time) check(treadle_stream_options_time(options, name.c_str(), axis));
    treadle_stream_options_find_pairs(options, find);
    treadle_stream_options_hop(options, hop, context);
    for (auto [name, value] : initial) {
      const std::string text = nb::cast<std::string>(name);
      check(treadle_stream_options_initial(options, text.c_str(), own_copy(text, value).get()));
    }
    for (auto [name, value] : bind) {
      const std::string text = nb::cast<std::string>(name);
      check(treadle_stream_options_bind(options, text.c_str(), own_copy(text, value).get()));
    }
    treadle_stream* stream = nullptr;
    check(treadle_stream_create(session.handle.get(), options, &stream));
    handle_.reset(stream);
  }

  Stream(const Session* session, Owned<treadle_stream> handle) : session_(session), handle_(std::move(handle)) {}

  AnyList push(nb::handle feed, nb::handle options) { return advance(treadle_stream_push, feed, options); }
  AnyList flush(nb::handle feed, nb::handle options) { return advance(treadle_stream_flush, feed, options); }

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

  void set_state(const std::string& name, nb::handle value) {
    check(treadle_stream_state_set(handle_.get(), name.c_str(), own_copy(name, value).get()));
  }

  int64_t pending() const { return treadle_stream_pending(handle_.get()); }
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
  nb::str text() const { return take_text(treadle_stream_text(handle_.get())); }

 private:
  // What the stream keeps must not change when the caller writes into the array that it came from.
  Owned<treadle_value> own_copy(const std::string& name, nb::handle value) const {
    const auto borrowed = session_->input_value(name.c_str(), value);
    treadle_value* copy = nullptr;
    if (!borrowed) invalid_argument("'" + name + "' cannot be None");
    check(treadle_value_clone(borrowed.get(), &copy));
    return Owned<treadle_value>(copy);
  }

  template <class Fn>
  AnyList advance(Fn fn, nb::handle feed, nb::handle options) {
    Feeds feeds;
    session_->collect(feed, feeds, true);
    Outputs outputs(treadle_stream_output_count(handle_.get()));
    const treadle_run_options* run_options = run_options_of(options);
    call_engine([&] {
      return fn(handle_.get(), run_options, feeds.names.data(), feeds.values.data(), feeds.names.size(), outputs.data(),
                nullptr);
    });
    AnyList results;
    for (size_t i = 0; i < outputs.size(); ++i) results.append(to_python(outputs.take(i)));
    return results;
  }

  const Session* session_;
  Owned<treadle_stream> handle_;
};

}  // namespace

Owned<treadle_value> Session::input_value(const char* name, nb::handle object) const {
  const auto input = inputs_.find(name);
  if (input == inputs_.end()) unknown_input(name);
  return to_value(object, input->second.type, name);
}

void define_stream(nb::module_& m) {
  nb::class_<Stream>(m, "Stream")
      .def(nb::init<const Session&, const std::map<std::string, std::string>&, bool, AnyDict, AnyDict,
                    const std::map<std::string, int64_t>&, int64_t, int64_t>(),
           nb::keep_alive<1, 2>())
      .def("push", &Stream::push, nb::arg("feed"), nb::arg("options").none())
      .def("flush", &Stream::flush, nb::arg("feed"), nb::arg("options").none())
      .def("output_names", &Stream::output_names)
      .def("state", &Stream::state)
      .def("set_state", &Stream::set_state)
      .def_prop_ro("pending", &Stream::pending)
      .def("reset", &Stream::reset)
      .def("fork", &Stream::fork, nb::keep_alive<0, 1>())
      .def("save", &Stream::save)
      .def("load", &Stream::load)
      .def("text", &Stream::text);
}

}  // namespace treadle_python
