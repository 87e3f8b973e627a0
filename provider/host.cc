#include "host.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace treadle::provider {

namespace {

Host opened;

// Never EP_FAIL: with that code, onnxruntime's Python package prints the error, drops the provider and goes on.
OrtErrorCode number_of(treadle_code code) {
  switch (code) {
    case TREADLE_INVALID_ARGUMENT:
      return ORT_INVALID_ARGUMENT;
    case TREADLE_INVALID_MODEL:
      return ORT_INVALID_GRAPH;
    case TREADLE_NOT_IMPLEMENTED:
      return ORT_NOT_IMPLEMENTED;
    case TREADLE_RUNTIME:
      return ORT_RUNTIME_EXCEPTION;
    default:
      return ORT_FAIL;
  }
}

}  // namespace

void open_host(const OrtApiBase* base) {
  const char* version = base->GetVersionString();
  const OrtApi* api = base->GetApi(kOldestVersion);
  if (!api) {
    throw Failure(ORT_FAIL,
                  std::string("treadle's execution provider needs onnxruntime 1.23 or newer, and this is ") + version);
  }
  const char* point = std::strchr(version, '.');
  opened = {.api = api, .ep_api = api->GetEpApi(), .release = point ? std::atoi(point + 1) : int(kOldestVersion)};
}

const Host& host() {
  return opened;
}

void check(OrtStatus* status) {
  if (!status) return;
  const Failure failure(ort().GetErrorCode(status), ort().GetErrorMessage(status));
  ort().ReleaseStatus(status);
  throw failure;
}

void check(treadle_status* status) {
  if (!status) return;
  const Failure failure(number_of(treadle_status_code(status)), treadle_status_text(status));
  treadle_status_free(status);
  throw failure;
}

OrtStatus* status_of_exception(const OrtApi& api) noexcept {
  try {
    throw;
  } catch (const Failure& failure) {
    return api.CreateStatus(failure.code, failure.what());
  } catch (const std::bad_alloc&) {
    return api.CreateStatus(ORT_FAIL, "out of memory");
  } catch (const std::exception& failure) {
    return api.CreateStatus(ORT_RUNTIME_EXCEPTION, failure.what());
  } catch (...) {
    return api.CreateStatus(ORT_RUNTIME_EXCEPTION, "unknown exception");
  }
}

void warn(const OrtLogger* logger, const std::string& message) {
  OrtStatus* status =
      ort().Logger_LogMessage(logger, ORT_LOGGING_LEVEL_WARNING, message.c_str(), "provider", 0, "treadle");
  if (status) ort().ReleaseStatus(status);
}

}  // namespace treadle::provider
