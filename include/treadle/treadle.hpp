// treadle for C++17 and later: owning types and exceptions over treadle.h, nothing else. Everything is inline; the
// library itself shows C functions only.
#pragma once

#include <cstring>
#include <exception>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "treadle/treadle.h"

namespace treadle {
inline namespace v1 {

class Error : public std::exception {
 public:
  explicit Error(treadle_status* status)
      : code_(treadle_status_code(status)),
        text_(treadle_status_text(status)),
        message_(treadle_status_message(status)),
        place_(treadle_status_place(status)) {
    treadle_status_free(status);
  }
  treadle_code code() const { return code_; }
  const char* what() const noexcept override { return text_.c_str(); }
  const std::string& message() const { return message_; }
  const std::string& place() const { return place_; }  // file, path through the bodies, iteration, operator

 private:
  treadle_code code_;
  std::string text_, message_, place_;
};

inline void check(treadle_status* status) {
  if (status) throw Error(status);
}

namespace detail {
template <class T, void (*free)(T*)>
struct Deleter {
  void operator()(T* handle) const { free(handle); }
};
template <class T, void (*free)(T*)>
using Handle = std::unique_ptr<T, Deleter<T, free>>;

inline std::string take(char* text) {
  std::string copy = text ? text : "";
  treadle_free(text);
  return copy;
}

template <class T>
struct ElementOf;
template <>
struct ElementOf<float> {
  static constexpr int value = 1;
};
template <>
struct ElementOf<uint8_t> {
  static constexpr int value = 2;
};
template <>
struct ElementOf<int8_t> {
  static constexpr int value = 3;
};
template <>
struct ElementOf<uint16_t> {
  static constexpr int value = 4;
};
template <>
struct ElementOf<int16_t> {
  static constexpr int value = 5;
};
template <>
struct ElementOf<int32_t> {
  static constexpr int value = 6;
};
template <>
struct ElementOf<int64_t> {
  static constexpr int value = 7;
};
template <>
struct ElementOf<bool> {
  static constexpr int value = 9;
};
template <>
struct ElementOf<double> {
  static constexpr int value = 11;
};
template <>
struct ElementOf<uint32_t> {
  static constexpr int value = 12;
};
template <>
struct ElementOf<uint64_t> {
  static constexpr int value = 13;
};
}  // namespace detail

// The type of an input or output; a view that is valid as long as its session.
class Type {
 public:
  explicit Type(const treadle_type* type) : type_(type) {}
  treadle_kind kind() const { return treadle_type_kind(type_); }
  int element() const { return treadle_type_element(type_); }
  int64_t rank() const { return treadle_type_rank(type_); }                  // -1: unknown
  int64_t dim(int64_t axis) const { return treadle_type_dim(type_, axis); }  // -1: no known number
  std::string symbol(int64_t axis) const { return detail::take(treadle_type_symbol(type_, axis)); }
  Type child() const { return Type(treadle_type_child(type_)); }
  std::string name() const { return detail::take(treadle_type_name(type_)); }  // "tensor(float)"
  std::string text() const { return detail::take(treadle_type_text(type_)); }  // "tensor(float)[N,3]"
  const treadle_type* get() const { return type_; }

 private:
  const treadle_type* type_;
};

// A tensor, sequence, optional or map; empty by default. Copying shares the contents.
class Value {
 public:
  Value() = default;
  explicit Value(treadle_value* handle) : handle_(handle) {}
  Value(Value&&) noexcept = default;
  Value& operator=(Value&&) noexcept = default;
  Value(const Value& other) { *this = other; }
  Value& operator=(const Value& other) {
    treadle_value* copy = nullptr;
    if (other.handle_) check(treadle_value_copy(other.get(), &copy));
    handle_.reset(copy);
    return *this;
  }
  ~Value() = default;

  // Uninitialised.
  static Value tensor(int element, const std::vector<int64_t>& dims) {
    treadle_value* value = nullptr;
    check(treadle_tensor_create(element, dims.data(), dims.size(), &value));
    return Value(value);
  }
  // A copy of `data`, as many elements as `dims` say.
  template <class T>
  static Value of(const T* data, const std::vector<int64_t>& dims) {
    Value value = tensor(detail::ElementOf<T>::value, dims);
    if (value.bytes() > 0) std::memcpy(value.mutable_data<T>(), data, value.bytes());
    return value;
  }
  // The caller's memory, which must live as long as any value that shares it.
  template <class T>
  static Value borrow(T* data, const std::vector<int64_t>& dims) {
    size_t bytes = sizeof(T);
    for (const int64_t d : dims) bytes *= static_cast<size_t>(d);
    treadle_value* value = nullptr;
    check(treadle_tensor_borrow(detail::ElementOf<T>::value, dims.data(), dims.size(), data, bytes, true, nullptr,
                                nullptr, &value));
    return Value(value);
  }
  static Value texts(const std::vector<std::string>& texts, const std::vector<int64_t>& dims) {
    std::vector<treadle_text> views;
    views.reserve(texts.size());
    for (const std::string& text : texts) views.push_back({text.data(), text.size()});
    treadle_value* value = nullptr;
    check(treadle_tensor_from_texts(dims.data(), dims.size(), views.data(), views.size(), &value));
    return Value(value);
  }
  // Of at least one value, whose contents it shares.
  static Value sequence(const std::vector<Value>& elements) {
    std::vector<const treadle_value*> handles;
    handles.reserve(elements.size());
    for (const Value& element : elements) handles.push_back(element.get());
    treadle_value* value = nullptr;
    check(treadle_sequence_create(nullptr, handles.data(), handles.size(), &value));
    return Value(value);
  }
  // As the backend tests keep values. Without a type a tensor is expected.
  static Value from_pb_file(const std::string& path, const treadle_type* type = nullptr) {
    treadle_value* value = nullptr;
    check(treadle_value_from_pb_file(path.c_str(), type, &value));
    return Value(value);
  }
  std::string to_pb(const std::string& name = {}) const {
    char* bytes = nullptr;
    size_t size = 0;
    check(treadle_value_to_pb(get(), name.c_str(), &bytes, &size));
    std::string text(bytes, size);
    treadle_free(bytes);
    return text;
  }

  treadle_kind kind() const { return treadle_value_kind(get()); }
  std::string type_text() const { return detail::take(treadle_value_type_text(get())); }
  int element() const { return treadle_tensor_element(get()); }
  std::vector<int64_t> dims() const {
    const int64_t* dims = treadle_tensor_dims(get());
    return std::vector<int64_t>(dims, dims + treadle_tensor_rank(get()));
  }
  int64_t count() const { return treadle_tensor_count(get()); }
  size_t bytes() const { return treadle_tensor_bytes(get()); }
  template <class T>
  const T* data() const {
    return static_cast<const T*>(treadle_tensor_data(get()));
  }
  template <class T>
  T* mutable_data() {
    return static_cast<T*>(treadle_tensor_mutable_data(get()));
  }
  std::vector<double> to_doubles() const {
    std::vector<double> numbers(static_cast<size_t>(count()));
    check(treadle_tensor_to_doubles(get(), numbers.data()));
    return numbers;
  }
  std::string_view text(int64_t index) const {
    const treadle_text text = treadle_tensor_text(get(), index);
    return {text.data, text.size};
  }

  size_t sequence_size() const { return treadle_sequence_size(get()); }
  Value sequence_at(size_t index) const { return made(treadle_sequence_at, index); }
  bool has_value() const { return treadle_optional_has_value(get()); }
  Value optional_value() const { return made(treadle_optional_get); }
  Value map_keys() const { return made(treadle_map_keys); }
  Value map_values() const { return made(treadle_map_values); }

  treadle_value* get() const { return handle_.get(); }
  treadle_value* release() { return handle_.release(); }

 private:
  template <class Fn, class... Args>
  Value made(Fn fn, Args... args) const {
    treadle_value* value = nullptr;
    check(fn(get(), args..., &value));
    return Value(value);
  }
  detail::Handle<treadle_value, treadle_value_free> handle_;
};

class SessionOptions {
 public:
  SessionOptions() {
    treadle_options* handle = nullptr;
    check(treadle_options_create(&handle));
    handle_.reset(handle);
  }
  SessionOptions& set(const std::string& key, const std::string& value) {
    check(treadle_options_set(get(), key.c_str(), value.c_str()));
    return *this;
  }
  SessionOptions& threads(int count) { return set("threads", std::to_string(count)); }
  // Of loading, and of each planning later on; 0: none. See docs/limits.md.
  void limit_load_time(double seconds) { treadle_options_limit_load_time(get(), seconds); }
  void limit_load_memory(size_t bytes) { treadle_options_limit_load_memory(get(), bytes); }
  void cancel_load(bool on = true) { treadle_options_cancel_load(get(), on); }  // from any thread
  SessionOptions& dimension(const std::string& name, int64_t size) {
    check(treadle_options_set_dimension(get(), name.c_str(), size));
    return *this;
  }
  SessionOptions& denoted_dimension(const std::string& denotation, int64_t size) {
    check(treadle_options_set_denoted_dimension(get(), denotation.c_str(), size));
    return *this;
  }
  treadle_options* get() const { return handle_.get(); }

 private:
  detail::Handle<treadle_options, treadle_options_free> handle_;
};

class RunOptions {
 public:
  RunOptions() {
    treadle_run_options* handle = nullptr;
    check(treadle_run_options_create(&handle));
    handle_.reset(handle);
  }
  void limit_time(double seconds) { treadle_run_options_limit_time(get(), seconds); }
  void limit_iterations(int64_t iterations) { treadle_run_options_limit_iterations(get(), iterations); }
  void limit_trips(int64_t iterations) { limit_iterations(iterations); }  // its old name
  void limit_memory(size_t bytes) { treadle_run_options_limit_memory(get(), bytes); }
  void cancel(bool on = true) { treadle_run_options_cancel(get(), on); }  // from any thread
  treadle_run_options* get() const { return handle_.get(); }

 private:
  detail::Handle<treadle_run_options, treadle_run_options_free> handle_;
};

using Feed = std::pair<std::string, Value>;
using Feeds = std::vector<Feed>;

// Names of the rewrites, in the order in which they run.
inline std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  while (const char* name = treadle_pass_name(names.size())) names.emplace_back(name);
  return names;
}

// The bytes of a regular file, or of a pipe.
inline std::string read_file(const std::string& path) {
  char* bytes = nullptr;
  size_t size = 0;
  check(treadle_file_read(path.c_str(), &bytes, &size));
  std::string text(bytes, size);
  treadle_free(bytes);
  return text;
}

namespace detail {
struct FeedArrays {
  explicit FeedArrays(const Feeds& feeds) {
    for (const auto& [name, value] : feeds) {
      names.push_back(name.c_str());
      values.push_back(value.get());
    }
  }
  std::vector<const char*> names;
  std::vector<const treadle_value*> values;
};
}  // namespace detail

// Where the time of runs went; made by Session::profile.
class Profile {
 public:
  explicit Profile(treadle_profile* handle) : handle_(handle) {}
  std::string text() const { return detail::take(treadle_profile_text(get())); }
  std::string json() const { return detail::take(treadle_profile_json(get())); }
  std::string trace() const { return detail::take(treadle_profile_trace(get())); }
  treadle_profile* get() const { return handle_.get(); }

 private:
  detail::Handle<treadle_profile, treadle_profile_free> handle_;
};

class Session {
 public:
  explicit Session(const std::string& path, const SessionOptions& options = {}) {
    treadle_session* handle = nullptr;
    check(treadle_session_open(path.c_str(), options.get(), &handle));
    handle_.reset(handle);
  }
  Session(const void* bytes, size_t size, const SessionOptions& options = {}) {
    treadle_session* handle = nullptr;
    check(treadle_session_from_bytes(bytes, size, nullptr, options.get(), &handle));
    handle_.reset(handle);
  }

  // Options that were given and have no effect on this model, each as a sentence.
  std::vector<std::string> remarks() const {
    std::vector<std::string> remarks;
    while (const char* remark = treadle_session_remark(get(), remarks.size())) remarks.emplace_back(remark);
    return remarks;
  }
  size_t count(treadle_role role) const { return treadle_session_count(get(), role); }
  std::string name(treadle_role role, size_t index) const { return treadle_session_name(get(), role, index); }
  Type type(treadle_role role, size_t index) const { return Type(treadle_session_type(get(), role, index)); }
  std::string metadata(const std::string& field) const {
    return detail::take(treadle_session_metadata(get(), field.c_str()));
  }

  // The outputs named, or all.
  std::vector<Value> run(const Feeds& feeds, const std::vector<std::string>& outputs = {},
                         const RunOptions* options = nullptr) const {
    std::vector<Value> results(outputs.empty() ? count(TREADLE_OUTPUT) : outputs.size());
    run_into(feeds, outputs, results, options);
    return results;
  }
  // Tensors of the right type and sizes in `results` are written in place.
  void run_into(const Feeds& feeds, const std::vector<std::string>& outputs, std::vector<Value>& results,
                const RunOptions* options = nullptr) const {
    const detail::FeedArrays arrays(feeds);
    std::vector<const char*> names;
    for (const std::string& output : outputs) names.push_back(output.c_str());
    std::vector<treadle_value*> handles;
    for (const Value& result : results) handles.push_back(result.get());
    check(treadle_session_run(get(), options ? options->get() : nullptr, arrays.names.data(), arrays.values.data(),
                              arrays.names.size(), names.empty() ? nullptr : names.data(), names.size(),
                              handles.data()));
    for (size_t i = 0; i < results.size(); ++i) {
      if (!results[i].get()) results[i] = Value(handles[i]);
    }
  }

  Profile profile(const Feeds& feeds, size_t runs = 10, const RunOptions* options = nullptr) const {
    const detail::FeedArrays arrays(feeds);
    treadle_profile* profile = nullptr;
    check(treadle_session_profile(get(), options ? options->get() : nullptr, arrays.names.data(), arrays.values.data(),
                                  arrays.names.size(), runs, &profile));
    return Profile(profile);
  }

  // The model after the rewrites of loading, serialised.
  std::string optimized_model() const {
    char* bytes = nullptr;
    size_t size = 0;
    check(treadle_session_optimized_model(get(), &bytes, &size));
    std::string model(bytes, size);
    treadle_free(bytes);
    return model;
  }
  // The graph after the rewrites of loading; with the option "dump", as it was behind that rewrite.
  std::string dump_graph() const {
    char* text = nullptr;
    check(treadle_session_dump_graph(get(), &text));
    return detail::take(text);
  }
  void compile() const { treadle_session_compile(get()); }
  std::string explain(const Feeds& feeds = {}, bool json = false) const {
    const detail::FeedArrays arrays(feeds);
    char* text = nullptr;
    check(treadle_session_explain(get(), arrays.names.data(), arrays.values.data(), arrays.names.size(), json, &text));
    return detail::take(text);
  }
  std::string dump_plan(const Feeds& feeds) const {
    const detail::FeedArrays arrays(feeds);
    char* text = nullptr;
    check(treadle_session_dump_plan(get(), arrays.names.data(), arrays.values.data(), arrays.names.size(), &text));
    return detail::take(text);
  }
  treadle_session* get() const { return handle_.get(); }

 private:
  detail::Handle<treadle_session, treadle_session_free> handle_;
};

class StreamOptions {
 public:
  StreamOptions() {
    treadle_stream_options* handle = nullptr;
    check(treadle_stream_options_create(&handle));
    handle_.reset(handle);
  }
  StreamOptions& state(const std::string& input, const std::string& output) {
    check(treadle_stream_options_pair(get(), input.c_str(), output.c_str()));
    return *this;
  }
  StreamOptions& initial(const std::string& input, const Value& value) {
    check(treadle_stream_options_initial(get(), input.c_str(), value.get()));
    return *this;
  }
  StreamOptions& bind(const std::string& input, const Value& value) {
    check(treadle_stream_options_bind(get(), input.c_str(), value.get()));
    return *this;
  }
  StreamOptions& time(const std::string& name, int64_t axis) {
    check(treadle_stream_options_time(get(), name.c_str(), axis));
    return *this;
  }
  // The axis whose size the model gives this name.
  StreamOptions& time(const std::string& name, const std::string& symbol) {
    check(treadle_stream_options_time_symbol(get(), name.c_str(), symbol.c_str()));
    return *this;
  }
  StreamOptions& hop(int64_t hop, int64_t context = 0) {
    treadle_stream_options_hop(get(), hop, context);
    return *this;
  }
  treadle_stream_options* get() const { return handle_.get(); }

 private:
  detail::Handle<treadle_stream_options, treadle_stream_options_free> handle_;
};

// Copying forks: both go on from the same state.
class Stream {
 public:
  Stream(const Session& session, const StreamOptions& options) {
    treadle_stream* handle = nullptr;
    check(treadle_stream_create(session.get(), options.get(), &handle));
    handle_.reset(handle);
  }
  Stream(Stream&&) noexcept = default;
  Stream& operator=(Stream&&) noexcept = default;
  Stream(const Stream& other) {
    treadle_stream* handle = nullptr;
    check(treadle_stream_fork(other.get(), &handle));
    handle_.reset(handle);
  }
  Stream& operator=(const Stream& other) { return *this = Stream(other); }
  ~Stream() = default;

  std::vector<Value> push(const Feeds& feeds, const RunOptions* options = nullptr) {
    return advance(treadle_stream_push, feeds, options);
  }
  std::vector<Value> flush(const Feeds& feeds = {}, const RunOptions* options = nullptr) {
    return advance(treadle_stream_flush, feeds, options);
  }
  // Into `results`: tensors of the right type and sizes are written in place.
  void push_into(const Feeds& feeds, std::vector<Value>& results, const RunOptions* options = nullptr) {
    const detail::FeedArrays arrays(feeds);
    std::vector<treadle_value*> handles(treadle_stream_output_count(get()), nullptr);
    for (size_t i = 0; i < handles.size() && i < results.size(); ++i) handles[i] = results[i].get();
    check(treadle_stream_push(get(), options ? options->get() : nullptr, arrays.names.data(), arrays.values.data(),
                              arrays.names.size(), handles.data(), nullptr));
    for (size_t i = results.size(); i < handles.size(); ++i) results.emplace_back(handles[i]);
  }
  // Plans and compiles for pushes of these numbers of samples (none: of one hop), so that no push has to.
  void warm(const std::vector<int64_t>& sizes = {}) { check(treadle_stream_warm(get(), sizes.data(), sizes.size())); }
  void reset() { check(treadle_stream_reset(get())); }
  int64_t pending() const { return treadle_stream_pending(get()); }
  int64_t delay() const { return treadle_stream_delay(get()); }
  bool done() const { return treadle_stream_done(get()); }
  std::string save() const {
    char* bytes = nullptr;
    size_t size = 0;
    check(treadle_stream_save(get(), &bytes, &size));
    std::string snapshot(bytes, size);
    treadle_free(bytes);
    return snapshot;
  }
  void load(const std::string& snapshot) { check(treadle_stream_load(get(), snapshot.data(), snapshot.size())); }
  std::string text() const { return detail::take(treadle_stream_text(get())); }
  treadle_stream* get() const { return handle_.get(); }

 private:
  template <class Fn>
  std::vector<Value> advance(Fn fn, const Feeds& feeds, const RunOptions* options) {
    const detail::FeedArrays arrays(feeds);
    std::vector<treadle_value*> handles(treadle_stream_output_count(get()), nullptr);
    check(fn(get(), options ? options->get() : nullptr, arrays.names.data(), arrays.values.data(), arrays.names.size(),
             handles.data(), nullptr));
    std::vector<Value> results;
    for (treadle_value* handle : handles) results.emplace_back(handle);
    return results;
  }
  detail::Handle<treadle_stream, treadle_stream_free> handle_;
};

}  // namespace v1
}  // namespace treadle
