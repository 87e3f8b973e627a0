#pragma once
// Conversions of errors between treadle, Triton and this backend.

#include <stdexcept>
#include <string>

#include "treadle/treadle.hpp"
#include "triton_api.h"

namespace backend {

// An error for the server about a model that does not load, or for the caller of a request.
struct Failure : std::runtime_error {
  Failure(TRITONSERVER_Error_Code kind, const std::string& message) : std::runtime_error(message), code(kind) {}
  TRITONSERVER_Error_Code code;
};

// An error that the caller, or the author of the configuration, can correct.
struct InvalidArgument : Failure {
  explicit InvalidArgument(const std::string& message) : Failure(TRITONSERVER_ERROR_INVALID_ARG, message) {}
};

Failure failure_of(const treadle::Error& error);
// Throws the error of a status, if it is one, and frees the status.
void check(treadle_status* status);
void check(TRITONSERVER_Error* error);
// The error for the server from the current exception.
TRITONSERVER_Error* current_error() noexcept;

void log(TRITONSERVER_LogLevel level, const char* file, int line, const std::string& message);
#define TREADLE_LOG(level, message) ::backend::log(TRITONSERVER_LOG_##level, __FILE__, __LINE__, message)

}  // namespace backend
