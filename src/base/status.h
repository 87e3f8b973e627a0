#pragma once
// An error that a user can cause is a Status: a code, a message and a place. A condition that only a bug of treadle can
// violate is an assertion (TREADLE_ASSERT).

#include <fmt/core.h>

#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

namespace treadle {

enum class Code : uint8_t {
  kOk,
  kInvalidArgument,  // an input, name or option given by the caller does not fit
  kInvalidModel,     // the model breaks a rule of the specification
  kInvalidFile,      // the bytes are not a model (truncated, bad wire format)
  kNoSuchFile,
  kNotImplemented,  // an operator, version or type that treadle does not run
  kRuntime,         // data made an operator fail: index out of range, division by zero, shapes that do not agree
  kLimit,           // a limit set by the caller, or one of the library's own, was reached
  kCancelled,
  kInternal,
};

std::string_view code_name(Code code);

// One pointer wide; null means success, so passing success around costs nothing.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : rep_(new Rep{code, std::move(message), {}}) {}

  bool ok() const { return rep_ == nullptr; }
  Code code() const { return rep_ ? rep_->code : Code::kOk; }
  const std::string& message() const;  // what was expected and what was found
  const std::string& place() const;    // e.g. "model.onnx: /encoder/Loop_3:body/Add_7 (iteration 12), Add-14"
  std::string to_string() const;       // "<place>: <message>"

  // Puts `outer` in front of the place. Inner functions add the operator, outer ones the path, the outermost the file.
  Status&& in(std::string_view outer) &&;
  Status clone() const;

 private:
  struct Rep {
    Code code;
    std::string message;
    std::string place;
  };
  std::unique_ptr<Rep> rep_;
};

Status vformat_error(Code code, fmt::string_view format, fmt::format_args args);

template <class... Args>
Status error(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return vformat_error(code, format, fmt::make_format_args(args...));
}

// A value, or the Status that says why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : ok_(true) { new (&value_) T(std::move(value)); }
  Result(Status status) : ok_(false) { new (&status_) Status(std::move(status)); }
  Result(Result&& other) noexcept : ok_(other.ok_) {
    if (ok_) {
      new (&value_) T(std::move(other.value_));
    } else {
      new (&status_) Status(std::move(other.status_));
    }
  }
  Result& operator=(Result&& other) noexcept {
    if (this != &other) {
      this->~Result();
      new (this) Result(std::move(other));
    }
    return *this;
  }
  ~Result() {
    if (ok_) {
      value_.~T();
    } else {
      status_.~Status();
    }
  }

  bool ok() const { return ok_; }
  T& value() & { return value_; }
  const T& value() const& { return value_; }
  T&& value() && { return std::move(value_); }
  T* operator->() { return &value_; }
  const T* operator->() const { return &value_; }
  T& operator*() & { return value_; }
  const T& operator*() const& { return value_; }
  Status status() && { return ok_ ? Status() : std::move(status_); }
  const Status& error() const { return status_; }

 private:
  bool ok_;
  union {
    T value_;
    Status status_;
  };
};

[[noreturn]] void assertion_failed(const char* expression, const char* file, int line);

}  // namespace treadle

#define TREADLE_CONCAT2(a, b) a##b
#define TREADLE_CONCAT(a, b) TREADLE_CONCAT2(a, b)

// Returns from the enclosing function when `expression` (a Status) is an error.
#define TREADLE_TRY(expression)                                    \
  do {                                                             \
    if (::treadle::Status status_ = (expression); !status_.ok()) { \
      return status_;                                              \
    }                                                              \
  } while (0)

// TREADLE_ASSIGN(auto x, make_x()); returns the error, or goes on with x.
#define TREADLE_ASSIGN(declaration, expression) \
  TREADLE_ASSIGN_IMPL(TREADLE_CONCAT(result_, __COUNTER__), declaration, expression)
#define TREADLE_ASSIGN_IMPL(temporary, declaration, expression) \
  auto temporary = (expression);                                \
  if (!temporary.ok()) return std::move(temporary).status();    \
  declaration = std::move(temporary).value()

#ifdef NDEBUG
#define TREADLE_ASSERT(expression) ((void)0)
#else
#define TREADLE_ASSERT(expression) \
  ((expression) ? (void)0 : ::treadle::assertion_failed(#expression, __FILE__, __LINE__))
#endif
