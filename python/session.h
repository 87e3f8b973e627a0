#pragma once

#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gil_held.h"
#include "support.h"

namespace treadle_python {

struct FeedLists {
  std::vector<Owned<treadle_value>> owned;
  std::vector<const char*> names;
  std::vector<const treadle_value*> values;
};

// Names and values, parallel. Names belong to the session or to objects that the fed dict keeps alive. The memory of
// the lists stays with the thread.
class Feeds : private FeedLists {
 public:
  Feeds() : FeedLists(std::exchange(kept(), {})) {}
  ~Feeds() {
    const GilHeld held;
    owned.clear();
    names.clear();
    values.clear();
    kept() = std::move(static_cast<FeedLists&>(*this));
  }
  Feeds(const Feeds&) = delete;
  Feeds& operator=(const Feeds&) = delete;

  void reserve(size_t count) {
    owned.reserve(count);
    names.reserve(count);
    values.reserve(count);
  }
  void add(const char* name, Owned<treadle_value> value) {
    names.push_back(name);
    values.push_back(value.get());
    owned.push_back(std::move(value));
  }

  using FeedLists::names;
  using FeedLists::owned;
  using FeedLists::values;

 private:
  static FeedLists& kept() {
    thread_local FeedLists lists;
    return lists;
  }
};

using Handles = std::vector<treadle_value*>;

// Handles of results, kept for the next call with the same outputs, which overwrites small tensors in place. Python has
// copies of these. Used with the GIL only.
class KeptHandles {
 public:
  KeptHandles() = default;
  ~KeptHandles() { free(handles_); }
  KeptHandles(const KeptHandles&) = delete;
  KeptHandles& operator=(const KeptHandles&) = delete;

  Handles take() { return std::exchange(handles_, {}); }
  void give(Handles handles) {
    std::swap(handles, handles_);
    free(handles);  // from a call that was made meanwhile
  }
  static void free(const Handles& handles) {
    for (treadle_value* handle : handles) treadle_value_free(handle);
  }

 private:
  Handles handles_;
};

// Handles that the engine fills; freed unless taken or kept.
class Outputs {
 public:
  explicit Outputs(size_t count, KeptHandles* kept = nullptr) : kept_(kept) {
    if (kept_) handles_ = kept_->take();
    handles_.resize(count, nullptr);
  }
  ~Outputs() {
    if (kept_) {
      kept_->give(std::move(handles_));
    } else {
      KeptHandles::free(handles_);
    }
  }
  Outputs(const Outputs&) = delete;
  Outputs& operator=(const Outputs&) = delete;
  treadle_value** data() { return handles_.data(); }
  size_t size() const { return handles_.size(); }
  Owned<treadle_value> take(size_t i) { return Owned<treadle_value>(std::exchange(handles_[i], nullptr)); }
  // Result i for Python. If Python gets a copy, the handle is kept, else Python takes it.
  py::Object to_python(size_t i) {
    Owned<treadle_value> value = take(i);
    py::Object result = treadle_python::to_python(value);
    handles_[i] = value.release();
    return result;
  }

 private:
  KeptHandles* kept_;
  Handles handles_;
};

// Opens a library of operators that was made for onnxruntime, and leaves it open. Raises if it is not such a library.
void open_operator_library(PyObject* path);

class Session {
 public:
  // `path`, or `bytes` with the folder of their external data; the others are None. `options`: a dict from names to
  // texts; `dimensions` and `denoted`: to sizes; `initializers`: to tensors; `files` (of external data): to bytes.
  // `libraries`: a list of paths of libraries of operators that were made for onnxruntime.
  Session(PyObject* path, PyObject* bytes, PyObject* folder, PyObject* options, PyObject* dimensions, PyObject* denoted,
          PyObject* initializers, PyObject* files, PyObject* libraries, LoadFlag& flag);

  // `names` may be None: all outputs.
  py::Object run(PyObject* names, PyObject* feed, PyObject* options) const;
  // `recorder` is called after each run with its nodes, in the format of treadle_profile_kernels; None: no longer.
  // `given`: values to write into, or None; parallel to the names.
  void record(PyObject* recorder, int64_t since_ns);
  py::Object run_values(PyObject* names, PyObject* feed, const std::vector<Value*>& given, PyObject* options) const;
  // (name, type, shape); the shape is a list, or None
  py::Object infos(int role) const;
  py::Object metadata() const;
  py::Object counters() const;
  py::Object remarks() const;
  void wait_compiled() const;
  void compile() const;
  // `feed` may be None. Text, or JSON.
  py::Object explain(PyObject* feed, bool json, bool all, size_t width) const;
  // Text, JSON and trace.
  py::Object profile(PyObject* feed, size_t runs, PyObject* options) const;
  // Runs and looks inside. `watch`: a list of names, or None; `find`: a text, or None; `values`: whether to keep
  // contents. The outputs, and what was seen.
  py::Object trace(PyObject* feed, PyObject* watch, int64_t every, bool statistics, bool values, PyObject* find,
                   size_t memory, PyObject* save, PyObject* options) const;
  py::Object dump_graph() const;
  py::Object optimized_model() const;
  py::Object write_c(PyObject* options, PyObject* fixed) const;
  py::Object dump_plan(PyObject* feed) const;

  // Throws InvalidArgument for an unknown name, ValueError for missing inputs.
  void collect(PyObject* feed, Feeds& feeds, bool allow_missing) const;
  Owned<treadle_value> input_value(const char* name, PyObject* object) const;
  const treadle_type* input_type(const char* name) const { return find_input(name).type; }
  struct Input {
    py::Object key;  // interned, so that it mostly is the same object as the key in the dict
    const char* name;
    const treadle_type* type;
    bool required;
  };
  // `names` may be None: all outputs.
  std::vector<const char*> output_names(PyObject* names) const;
  // The input whose name is the same object as `key`; null: none.
  const Input* interned_input(PyObject* key) const;
  void add(const Input& input, PyObject* object, Feeds& feeds) const;

  Owned<treadle_session> handle;

 private:
  // Throw InvalidArgument for an unknown name.
  const Input& find_input(PyObject* key) const;
  const Input& find_input(const char* name) const;
  [[noreturn]] void unknown_input(const char* name) const;
  [[noreturn]] void missing_inputs(PyObject* feed) const;

  std::vector<Input> inputs_;
  std::unordered_map<std::string_view, size_t> input_index_;  // names belong to the session
  size_t required_ = 0;
  // With a recorder, runs are recorded, and the recorder gets their nodes.
  treadle_status* call(const treadle_run_options* options, const Feeds& feeds, const std::vector<const char*>& wanted,
                       treadle_value** outputs, treadle_profile*& profile) const;
  void report_to_recorder(treadle_profile* profile) const;

  py::Object recorder_;
  int64_t recording_since_ns_ = 0;  // of the steady clock
  mutable KeptHandles results_;     // for runs with all outputs
};

// Arrays whose memory the engine reads and writes in place, in calls to come.
class BoundArrays {
 public:
  // `feed`: a dict from inputs to arrays. `outputs`: a list of arrays and None for the `count` outputs; or None.
  BoundArrays(const Session& session, PyObject* feed, PyObject* outputs, size_t count);
  ~BoundArrays() { KeptHandles::free(handles_); }
  BoundArrays(const BoundArrays&) = delete;
  BoundArrays& operator=(const BoundArrays&) = delete;

  const char* const* names() const { return names_.data(); }
  const treadle_value* const* values() const { return values_.data(); }
  size_t count() const { return names_.size(); }
  treadle_value** handles() { return handles_.data(); }
  // Gives Python the memory of outputs for which no array was given, once the engine has chosen their types and sizes.
  // False: there were none.
  bool make_arrays();
  // Throws InvalidArgument if the engine has replaced an array whose type or sizes do not fit.
  void check_fit() const;
  // The results: the arrays where these hold them, otherwise new ones.
  py::Object results() const;

 private:
  void take_array(size_t output, py::Object array);

  std::vector<py::Object> fed_, arrays_;  // by input and by output; no object: no array holds the output
  std::vector<const char*> names_;
  std::vector<Owned<treadle_value>> owned_;
  std::vector<const treadle_value*> values_;
  std::vector<treadle_value*> handles_;
};

// A run of a session with bound arrays.
class BoundRun {
 public:
  // `outputs`: as for BoundArrays, parallel to `names`, which may be None.
  BoundRun(PyObject* session, PyObject* names, PyObject* feed, PyObject* outputs, PyObject* options);

  py::Object run();
  py::Object results() const { return arrays_.results(); }
  const char* why() const { return treadle_bound_why(handle_.get()); }

 private:
  const py::Object session_, options_;
  BoundArrays arrays_;
  Owned<treadle_bound> handle_;
};

// The base of Python's InferenceSession. Its method `run` serves a call that needs no further Python code.
class SessionBase {
 public:
  // The Session object; None: runs go through Python.
  void set_core(PyObject* session);
  static py::Object run(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names);

 private:
  py::Object core_;
  const Session* session_ = nullptr;  // in `core_`
};

// Names of parameters. Python code passes them interned.
template <size_t kCount>
class Keywords {
 public:
  explicit Keywords(const std::array<const char*, kCount>& names) {
    for (size_t i = 0; i < kCount; ++i) names_[i] = py::steal(PyUnicode_InternFromString(names[i])).release();
  }
  // The index of a name that is the same object; kCount: none.
  size_t find(PyObject* name) const {
    size_t i = 0;
    while (i < kCount && names_[i] != name) ++i;
    return i;
  }

 private:
  std::array<PyObject*, kCount> names_{};
};

}  // namespace treadle_python
