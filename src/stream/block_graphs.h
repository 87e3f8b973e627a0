#pragma once
// Turns a model over a whole signal into graphs that take the signal in blocks.
//
// A node that looks back in time gets a state: convolutions and pools keep the frames that later windows need,
// recurrences and loops keep their states, running sums keep the sum. A node that looks ahead waits: an operand that
// comes later holds back operands that come earlier, and frames that padding at the end produces belong to the last
// block. The results of all blocks, joined along time, are the results of one run over the whole signal.
//
// Once `first` samples have come, every timed value has a whole number of new frames per `hop` samples, so all states
// have constant sizes. Three graphs share the states:
//
//   start    takes first + k hop samples, gives the first frames and the states
//   steady   takes states and k hop samples (k >= 1), gives frames and the next states
//   last     takes states and up to hop - 1 samples, gives the remaining frames
//
// The model itself runs a signal that ends before `first` samples have come.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace treadle::stream {

// The symbol of the signal's length in the types of `graph` below.
inline constexpr std::string_view kSamplesSymbol = "samples of the signal";

struct TimedInput {
  std::string_view name;
  int64_t axis = 0;
  std::string_view length = {};  // the model's name for the signal's length, for errors; may be empty
};

struct Streamed {
  struct Output {
    bool timed = false;
    int64_t axis = 0;       // of a timed output: frames are joined along it
    bool may_stop = false;  // gives fewer frames once a loop has ended by its condition
  };
  std::unique_ptr<ir::Graph> start, steady, last;
  int64_t hop = 1;
  int64_t first = 1;
  int64_t delay = 0;            // samples by which frames come later than in a run over all samples so far
  std::vector<Output> outputs;  // parallel to the model's
  // Names of the states: outputs of `start` and `steady` behind those of the model, inputs of `steady` and `last`.
  std::vector<std::string> states;
  // Indices of states that say, as a bool, whether a Loop still runs; false: it has ended by its condition.
  std::vector<size_t> running;
  // `start` equals `steady` with zeros as states; the states' sizes are the same in all blocks.
  bool begins_with_zeros = false;
};

// `graph`: typed, with known conditions decided and functions inlined; timed inputs have any size along their time
// axes. `carried`: inputs whose values the caller carries from block to block; recurrences that begin with them get no
// state. Errors: kInvalidArgument for a model that needs the whole signal at once; names the node that does, and the
// path of the signal to it.
Result<Streamed> stream_over_time(const ir::Graph& graph, const std::vector<TimedInput>& timed,
                                  const std::vector<std::string_view>& carried);

}  // namespace treadle::stream
