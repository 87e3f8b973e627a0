// A status: an error number of onnxruntime and a message.

#include <memory>
#include <new>

#include "api.h"

struct OrtStatus {
  OrtErrorCode code;
  std::string message;
};

namespace treadle::dropin {

namespace {

// Made without an allocation, to report that there is no memory.
OrtStatus* out_of_memory() {
  static OrtStatus status{ORT_FAIL, "out of memory"};
  return &status;
}

OrtErrorCode number_of(treadle_code code) {
  switch (code) {
    case TREADLE_OK:
      return ORT_OK;
    case TREADLE_INVALID_ARGUMENT:
      return ORT_INVALID_ARGUMENT;
    case TREADLE_INVALID_MODEL:
      return ORT_INVALID_GRAPH;
    case TREADLE_INVALID_FILE:
      return ORT_INVALID_PROTOBUF;
    case TREADLE_NO_SUCH_FILE:
      return ORT_NO_SUCHFILE;
    case TREADLE_NOT_IMPLEMENTED:
      return ORT_NOT_IMPLEMENTED;
    case TREADLE_RUNTIME:
      return ORT_RUNTIME_EXCEPTION;
    case TREADLE_LIMIT:
    case TREADLE_CANCELLED:
    case TREADLE_INTERNAL:
    case TREADLE_BUSY:
      return ORT_FAIL;
  }
  return ORT_FAIL;
}

}  // namespace

Failure take_failure(OrtStatus* status) {
  Failure failure(status->code, status->message);
  api::ReleaseStatus(status);
  return failure;
}

OrtStatus* make_status(OrtErrorCode code, const std::string& message) noexcept {
  try {
    return new OrtStatus{code, message};
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

OrtStatus* status_of_exception() noexcept {
  try {
    throw;
  } catch (const Failure& failure) {
    return make_status(failure.code, failure.what());
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::exception& failure) {
    return make_status(ORT_RUNTIME_EXCEPTION, failure.what());
  } catch (...) {
    return make_status(ORT_RUNTIME_EXCEPTION, "unknown exception");
  }
}

void check(treadle_status* status) {
  if (!status) return;
  const std::unique_ptr<treadle_status, void (*)(treadle_status*)> owned(status, treadle_status_free);
  throw Failure(number_of(treadle_status_code(status)), treadle_status_text(status));
}

void refuse_argument(const std::string& message) {
  throw Failure(ORT_INVALID_ARGUMENT, message);
}

namespace api {

OrtStatus* CreateStatus(OrtErrorCode code, const char* message) {
  return make_status(code, message ? message : "");
}

OrtErrorCode GetErrorCode(const OrtStatus* status) {
  return status ? status->code : ORT_OK;
}

const char* GetErrorMessage(const OrtStatus* status) {
  return status ? status->message.c_str() : "";
}

void ReleaseStatus(OrtStatus* status) {
  if (status != out_of_memory()) delete status;
}

}  // namespace api

}  // namespace treadle::dropin
