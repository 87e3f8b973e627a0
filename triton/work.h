#pragma once
// Requests, their answers, and their statistics.

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "model.h"
#include "wire.h"

namespace backend {

uint64_t now_ns();

struct Work {
  // Reads the request's inputs; an error becomes its answer.
  explicit Work(TRITONBACKEND_Request* arrived);

  const Arrived* input(std::string_view name) const;
  bool requests_output(std::string_view output) const;

  TRITONBACKEND_Request* request;
  std::vector<Arrived> inputs;
  std::vector<std::string_view> asked;  // requested outputs
  std::optional<Failure> failure;
  bool is_answered = false;  // and belongs to the server again
};

// Runs requests of one model instance. One thread at a time.
class Runner {
 public:
  virtual ~Runner() = default;
  // Answers each request and releases it, whatever happens.
  void execute(std::span<TRITONBACKEND_Request*> requests);

 protected:
  explicit Runner(TRITONBACKEND_ModelInstance* instance) : instance_(instance) {}
  // Stores each error in its request.
  virtual void run(std::span<Work> works) = 0;
  // Sends the response that `fill` completes, or the error. Then the request belongs to the server again.
  void answer(Work& work, const std::function<void(TRITONBACKEND_Response*)>& fill);
  // To be called before and after the model runs.
  void begin_compute() { compute_start_ = now_ns(); }
  void end_compute() { compute_end_ = now_ns(); }

 private:
  TRITONBACKEND_ModelInstance* instance_;
  uint64_t start_ = 0, compute_start_ = 0, compute_end_ = 0;
};

}  // namespace backend
