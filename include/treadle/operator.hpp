// Operators that a program defines (treadle.hpp; docs/howto/custom-operators.md).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "treadle/session.hpp"

namespace treadle {
inline namespace v1 {

// A node for which a kernel is made or run. Valid only during the call that received it.
class Node {
 public:
  explicit Node(const treadle_node* handle) : handle_(handle) {}

  std::string path() const {
    const treadle_text text = treadle_node_path(handle_);
    return {text.data, text.size};
  }
  size_t input_count() const { return treadle_node_input_count(handle_); }
  size_t output_count() const { return treadle_node_output_count(handle_); }
  bool has(const char* name) const { return find(name) != nullptr; }

  // The node's attributes; `otherwise` is returned when the node does not set the attribute.
  int64_t integer(const char* name, int64_t otherwise = 0) const {
    const treadle_attribute* found = find(name);
    return found ? treadle_attribute_int(found, 0) : otherwise;
  }
  float number(const char* name, float otherwise = 0) const {
    const treadle_attribute* found = find(name);
    return found ? treadle_attribute_float(found, 0) : otherwise;
  }
  std::string text(const char* name, std::string otherwise = {}) const {
    const treadle_attribute* found = find(name);
    return found ? text_of(found, 0) : std::move(otherwise);
  }
  std::vector<int64_t> integers(const char* name) const { return list<int64_t>(name, treadle_attribute_int); }
  std::vector<float> numbers(const char* name) const { return list<float>(name, treadle_attribute_float); }
  std::vector<std::string> texts(const char* name) const { return list<std::string>(name, text_of); }
  std::optional<Value> tensor(const char* name) const {
    const treadle_attribute* found = find(name);
    if (!found) return std::nullopt;
    treadle_value* value = nullptr;
    check(treadle_attribute_tensor(found, 0, &value));
    return Value(value);
  }
  const treadle_node* get() const { return handle_; }

 private:
  const treadle_attribute* find(const char* name) const { return treadle_node_attribute(handle_, name); }
  static std::string text_of(const treadle_attribute* attribute, size_t index) {
    const treadle_text text = treadle_attribute_text(attribute, index);
    return {text.data, text.size};
  }
  template <class T, class Get>
  std::vector<T> list(const char* name, Get get) const {
    std::vector<T> elements;
    if (const treadle_attribute* found = find(name)) {
      for (size_t i = 0; i < treadle_attribute_size(found); ++i) elements.push_back(get(found, i));
    }
    return elements;
  }

  const treadle_node* handle_;
};

// Elements and sizes of a tensor that a kernel reads or writes.
template <class T>
struct Elements {
  T* data = nullptr;
  size_t count = 0;
  std::vector<int64_t> dims;

  T* begin() const { return data; }
  T* end() const { return data + count; }
  T& operator[](size_t i) const { return data[i]; }
};

// One run of a node.
class Call {
 public:
  explicit Call(treadle_call* handle) : handle_(handle) {}

  Node node() const { return Node(treadle_call_node(handle_)); }
  bool has_input(size_t index) const { return treadle_call_input(handle_, index) != nullptr; }
  // Throws Error when the input is left out or has another element type.
  template <class T>
  Elements<const T> input(size_t index) const {
    const treadle_value* value = treadle_call_input(handle_, index);
    require(value && treadle_value_kind(value) == TREADLE_TENSOR, index, "is no tensor, or is left out");
    require(treadle_tensor_element(value) == detail::ElementOf<T>::value, index, "has another element type");
    const int64_t* dims = treadle_tensor_dims(value);
    return {static_cast<const T*>(treadle_tensor_data(value)),
            static_cast<size_t>(treadle_tensor_count(value)),
            {dims, dims + treadle_tensor_rank(value)}};
  }
  // Makes the output a tensor of these sizes; its elements are uninitialised.
  template <class T>
  Elements<T> output(size_t index, std::vector<int64_t> dims) {
    treadle_value* value = nullptr;
    check(treadle_call_allocate(handle_, index, detail::ElementOf<T>::value, dims.data(), dims.size(), &value));
    return {static_cast<T*>(treadle_tensor_mutable_data(value)), static_cast<size_t>(treadle_tensor_count(value)),
            std::move(dims)};
  }
  // Makes the output share the contents of `value`, which may be of any kind.
  void set(size_t index, const Value& value) { check(treadle_call_set(handle_, index, value.get())); }
  treadle_call* get() const { return handle_; }

 private:
  static void require(bool condition, size_t index, const char* what) {
    if (condition) return;
    throw Error(
        treadle_status_create(TREADLE_INVALID_ARGUMENT, ("input " + std::to_string(index) + " " + what).c_str()));
  }

  treadle_call* handle_;
};

// The known types of a node's inputs; the callback sets the types of the node's outputs.
class Inference {
 public:
  explicit Inference(treadle_inference* handle) : handle_(handle) {}
  Node node() const { return Node(treadle_inference_node(handle_)); }
  // Null when the input's type is unknown.
  const treadle_type* input(size_t index) const { return treadle_inference_input(handle_, index); }
  void set_like(size_t output, size_t input) { check(treadle_inference_set_like(handle_, output, input)); }
  // A size of -1 is unknown.
  void set_output(size_t output, const std::vector<int64_t>& dims) {
    check(treadle_inference_set_output(handle_, output, 0, dims.data(), nullptr, dims.size()));
  }
  treadle_inference* get() const { return handle_; }

 private:
  treadle_inference* handle_;
};

// An operator: its name, its inputs and outputs, and a class whose objects are the kernels of nodes:
//
//   struct SoftClip {
//     explicit SoftClip(const treadle::Node& node) : limit(node.number("limit", 1)) {}
//     void compute(treadle::Call& call) const;             // by several threads at once
//     void infer(treadle::Inference& inference) const;     // may be left out
//     float limit;
//   };
//   treadle::CustomOperator("my.company",
//   "SoftClip").input("tensor(float)").output("tensor(float)").kernel<SoftClip>().register_it();
//
// Exceptions of these functions fail the loading or the run that they are thrown in, with the node's place.
class CustomOperator {
 public:
  CustomOperator(const std::string& domain, const std::string& name, int since = 1) {
    treadle_operator* handle = nullptr;
    check(treadle_operator_create(domain.c_str(), name.c_str(), since, &handle));
    handle_.reset(handle);
  }
  // An empty type accepts any type.
  CustomOperator& input(const std::string& type = {}, treadle_arity arity = TREADLE_SINGLE,
                        const char* name = nullptr) {
    check(treadle_operator_input(get(), name, type.empty() ? nullptr : type.c_str(), arity));
    return *this;
  }
  CustomOperator& output(const std::string& type = {}, treadle_arity arity = TREADLE_SINGLE,
                         const char* name = nullptr) {
    check(treadle_operator_output(get(), name, type.empty() ? nullptr : type.c_str(), arity));
    return *this;
  }
  // After the first call, nodes may have no attributes of other names.
  CustomOperator& attribute(const std::string& name, bool required = false) {
    check(treadle_operator_attribute(get(), name.c_str(), required));
    treadle_operator_any_attributes(get(), false);
    return *this;
  }
  CustomOperator& pure(bool on = true) {
    treadle_operator_pure(get(), on);
    return *this;
  }
  template <class Kernel>
  CustomOperator& kernel() {
    treadle_operator_functions functions = {};
    functions.size = sizeof functions;
    functions.make_kernel = [](void*, const treadle_node* node, void** made) {
      return guarded([&] { *made = new Kernel(Node(node)); });
    };
    functions.free_kernel = [](void* made) { delete static_cast<Kernel*>(made); };
    functions.compute = [](void* made, treadle_call* handle) {
      return guarded([&] {
        Call call(handle);
        static_cast<const Kernel*>(made)->compute(call);
      });
    };
    if constexpr (Infers<Kernel>::value) {
      functions.infer = [](void* made, treadle_inference* handle) {
        return guarded([&] {
          Inference inference(handle);
          static_cast<const Kernel*>(made)->infer(inference);
        });
      };
    }
    check(treadle_operator_set_functions(get(), &functions));
    return *this;
  }
  // Makes the operator known to all sessions that are opened later.
  void register_it() const { check(treadle_operator_register(get())); }
  // Makes the operator known to sessions that are opened with these options.
  void add_to(SessionOptions& options) const { check(treadle_options_add_operator(options.get(), get())); }
  treadle_operator* get() const { return handle_.get(); }

 private:
  template <class Kernel, class = void>
  struct Infers : std::false_type {};
  template <class Kernel>
  struct Infers<Kernel, std::void_t<decltype(std::declval<const Kernel&>().infer(std::declval<Inference&>()))>>
      : std::true_type {};

  template <class Fn>
  static treadle_status* guarded(Fn&& fn) {
    try {
      fn();
      return nullptr;
    } catch (const Error& error) {
      return treadle_status_create(error.code(), error.message().c_str());
    } catch (const std::exception& error) {
      return treadle_status_create(TREADLE_RUNTIME, error.what());
    } catch (...) {
      return treadle_status_create(TREADLE_RUNTIME, "an exception that is none of the standard library's");
    }
  }

  detail::Handle<treadle_operator, treadle_operator_free> handle_;
};

}  // namespace v1
}  // namespace treadle
