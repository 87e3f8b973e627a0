#pragma once
// A model as sessions that take a signal block by block (stream/block_graphs.h), for streams over time.

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

  // Set by make_batched(): batch axes of the inputs of `steady`, by name, and of its outputs.
  stream::BatchAxes batch;
  bool first_has_batch = false;  // `start` has the same axes

  // `bound`: constant inputs, by name. Errors: kInvalidArgument gives the reason why the model cannot be streamed.
  static Result<std::shared_ptr<const OverTime>> make(const Session& session,
                                                      const std::vector<stream::TimedInput>& timed,
                                                      const std::vector<std::string_view>& carried,
                                                      const std::vector<std::pair<std::string, AnyValue>>& bound);
  // The same for a batch of any size, whose entries must not mix; `last` is not made. Errors name the node that mixes
  // entries.
  static Result<std::shared_ptr<const OverTime>> make_batched(
      const Session& session, const std::vector<stream::TimedInput>& timed,
      const std::vector<std::string_view>& carried, const std::vector<std::pair<std::string, AnyValue>>& bound);
};

// A model that takes the windows, or the steps, of several signals as entries of a batch.
struct BatchedModel {
  std::unique_ptr<const Session> session;
  stream::BatchAxes batch;

  // `window`: samples of each timed input, if there are timed inputs.
  static Result<std::shared_ptr<const BatchedModel>> make(const Session& session,
                                                          const std::vector<stream::TimedInput>& timed,
                                                          const std::vector<std::string_view>& carried,
                                                          const std::vector<std::pair<std::string, AnyValue>>& bound,
                                                          int64_t window);
};

}  // namespace treadle
