#pragma once
// A model made into sessions that take a signal block by block (stream/block_graphs.h), for streams over time.

#include <memory>
#include <string_view>
#include <vector>

#include "session/session.h"
#include "stream/batch_axis.h"
#include "stream/block_graphs.h"

namespace treadle {

struct OverTime {
  std::unique_ptr<const Session> start, steady, last;
  int64_t hop = 1;
  int64_t first = 1;
  int64_t delay = 0;
  std::vector<stream::Streamed::Output> outputs;  // parallel to the model's
  std::vector<std::string> states;
  std::vector<size_t> running;
  bool begins_with_zeros = false;

  // Set by make_batched(): axes of the batch in the inputs of `steady`, by name, and in its outputs.
  stream::BatchAxes batch;
  bool first_has_batch = false;  // the same axes in `start`

  // `bound`: inputs that stay the same, by name. Errors: kInvalidArgument says why the model cannot be streamed.
  static Result<std::shared_ptr<const OverTime>> make(const Session& session,
                                                      const std::vector<stream::TimedInput>& timed,
                                                      const std::vector<std::string_view>& carried,
                                                      const std::vector<std::pair<std::string, AnyValue>>& bound);
  // The same with a batch of any size, whose entries do not mix; `last` is not made. Errors say which node mixes them.
  static Result<std::shared_ptr<const OverTime>> make_batched(
      const Session& session, const std::vector<stream::TimedInput>& timed,
      const std::vector<std::string_view>& carried, const std::vector<std::pair<std::string, AnyValue>>& bound);
};

// A model that takes the windows of several signals at once, or what each gets in a step, as entries of a batch.
struct BatchedModel {
  std::unique_ptr<const Session> session;
  stream::BatchAxes batch;

  // `window`: samples of each timed input, where there are such.
  static Result<std::shared_ptr<const BatchedModel>> make(const Session& session,
                                                          const std::vector<stream::TimedInput>& timed,
                                                          const std::vector<std::string_view>& carried,
                                                          const std::vector<std::pair<std::string, AnyValue>>& bound,
                                                          int64_t window);
};

}  // namespace treadle
