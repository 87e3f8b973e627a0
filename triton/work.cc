#include "work.h"

#include <algorithm>
#include <chrono>

namespace backend {

namespace {

// Logs an error that cannot be returned to the caller.
void drop(TRITONSERVER_Error* error, const char* what) {
  if (!error) return;
  TREADLE_LOG(ERROR, std::string(what) + ": " + TRITONSERVER_ErrorMessage(error));
  TRITONSERVER_ErrorDelete(error);
}

}  // namespace

uint64_t now_ns() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

Work::Work(TRITONBACKEND_Request* arrived) : request(arrived) {
  try {
    inputs = inputs_of(request);
    uint32_t count = 0;
    check(TRITONBACKEND_RequestOutputCount(request, &count));
    for (uint32_t i = 0; i < count; ++i) {
      const char* name = nullptr;
      check(TRITONBACKEND_RequestOutputName(request, i, &name));
      asked.emplace_back(name);
    }
  } catch (const Failure& found) {
    failure = found;
  }
}

const Arrived* Work::input(std::string_view name) const {
  const auto found = std::ranges::find(inputs, name, &Arrived::name);
  return found == inputs.end() ? nullptr : &*found;
}

bool Work::requests_output(std::string_view output) const {
  return std::ranges::find(asked, output) != asked.end();
}

void Runner::execute(std::span<TRITONBACKEND_Request*> requests) {
  start_ = compute_start_ = compute_end_ = now_ns();
  std::vector<Work> works;
  works.reserve(requests.size());
  for (TRITONBACKEND_Request* request : requests) works.emplace_back(request);
  try {
    run(works);
  } catch (const std::exception& error) {  // no memory
    for (Work& work : works) {
      if (work.is_answered) continue;
      work.failure = Failure(TRITONSERVER_ERROR_UNAVAILABLE, error.what());
      answer(work, {});
    }
  }
  drop(TRITONBACKEND_ModelInstanceReportBatchStatistics(instance_, requests.size(), start_, compute_start_,
                                                        compute_end_, now_ns()),
       "the batch's times could not be reported");
}

void Runner::answer(Work& work, const std::function<void(TRITONBACKEND_Response*)>& fill) {
  work.is_answered = true;
  TRITONBACKEND_Response* response = nullptr;
  TRITONSERVER_Error* error = TRITONBACKEND_ResponseNew(&response, work.request);
  const bool has_response = !error;
  drop(error, "a response could not be made");
  if (has_response) {
    error = nullptr;
    try {
      if (work.failure) throw Failure(*work.failure);
      fill(response);
    } catch (...) {
      error = current_error();
    }
    const bool failed = error != nullptr;
    drop(TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, error),
         "a response could not be sent");
    if (error) TRITONSERVER_ErrorDelete(error);
    drop(TRITONBACKEND_ModelInstanceReportStatistics(instance_, work.request, !failed, start_, compute_start_,
                                                     compute_end_, now_ns()),
         "a request's times could not be reported");
  }
  drop(TRITONBACKEND_RequestRelease(work.request, TRITONSERVER_REQUEST_RELEASE_ALL), "a request could not be released");
}

}  // namespace backend
