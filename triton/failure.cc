#include "failure.h"

#include <new>

namespace backend {

namespace {

TRITONSERVER_Error_Code code_of(treadle_code code) {
  switch (code) {
    case TREADLE_INVALID_ARGUMENT:
    case TREADLE_INVALID_MODEL:
    case TREADLE_INVALID_FILE:
    case TREADLE_RUNTIME:
      return TRITONSERVER_ERROR_INVALID_ARG;
    case TREADLE_NO_SUCH_FILE:
      return TRITONSERVER_ERROR_NOT_FOUND;
    case TREADLE_NOT_IMPLEMENTED:
      return TRITONSERVER_ERROR_UNSUPPORTED;
    case TREADLE_LIMIT:
      return TRITONSERVER_ERROR_UNAVAILABLE;
    case TREADLE_CANCELLED:
      return TRITONSERVER_ERROR_CANCELLED;
    default:
      return TRITONSERVER_ERROR_INTERNAL;
  }
}

}  // namespace

Failure failure_of(const treadle::Error& error) {
  return {code_of(error.code()), error.what()};
}

void check(treadle_status* status) {
  if (status) throw failure_of(treadle::Error(status));
}

void check(TRITONSERVER_Error* error) {
  if (!error) return;
  const Failure failure(TRITONSERVER_ErrorCode(error), TRITONSERVER_ErrorMessage(error));
  TRITONSERVER_ErrorDelete(error);
  throw failure;
}

TRITONSERVER_Error* current_error() noexcept {
  try {
    throw;
  } catch (const Failure& failure) {
    return TRITONSERVER_ErrorNew(failure.code, failure.what());
  } catch (const treadle::Error& error) {
    return TRITONSERVER_ErrorNew(code_of(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, "there is no memory left");
  } catch (const std::exception& error) {
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, error.what());
  }
}

void log(TRITONSERVER_LogLevel level, const char* file, int line, const std::string& message) {
  if (!TRITONSERVER_LogIsEnabled(level)) return;
  if (TRITONSERVER_Error* error = TRITONSERVER_LogMessage(level, file, line, ("treadle: " + message).c_str())) {
    TRITONSERVER_ErrorDelete(error);
  }
}

}  // namespace backend
