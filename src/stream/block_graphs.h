#pragma once
// A model over a whole signal, made into graphs that take the signal in blocks.
//
// What looks back in time gets a state: convolutions and pools keep the frames that later windows reach back to,
// recurrences and loops keep what they carry, sums what they have summed. What looks ahead waits: operands that come
// later hold back those that come earlier, and what padding at the end gives is left to the last block. Put together
// along time, what the blocks give is what one run over the whole signal gives.
//
// Every timed value gives a whole number of frames per `hop` samples once `first` samples have come, so all states have
// sizes that never change. Three graphs share them:
//
//   start    takes first + k hop samples, gives the first frames and the states
//   steady   takes states and k hop samples (k >= 1), gives frames and the next states
//   last     takes states and up to hop - 1 samples, gives the frames that are left
//
// A signal that ends before `first` samples have come is run by the model itself.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace treadle::stream {

// Of the length of the signal, in the types of `graph` below.
inline constexpr std::string_view kSamplesSymbol = "samples of the signal";

struct TimedInput {
  std::string_view name;
  int64_t axis = 0;
  std::string_view length = {};  // as the model names the signal's, for errors; may be empty
};

struct Streamed {
  struct Output {
    bool timed = false;
    int64_t axis = 0;       // of a timed one, whose frames are to be joined along it
    bool may_stop = false;  // gives fewer frames once a loop has ended by its condition
  };
  std::unique_ptr<ir::Graph> start, steady, last;
  int64_t hop = 1;
  int64_t first = 1;
  int64_t delay = 0;            // samples by which frames come later than a run over all that has come would give them
  std::vector<Output> outputs;  // parallel to the model's
  // What is carried: outputs of `start` and `steady` behind those of the model, inputs of `steady` and `last`.
  std::vector<std::string> states;
  // States (indices) that say, as a bool, whether a Loop goes on; false: it has ended by its condition.
  std::vector<size_t> running;
  // `start` does what `steady` does with zeros as states, whose sizes are those of any later block.
  bool begins_with_zeros = false;
};

// `graph`: typed, its conditions decided as far as they are known, its functions inlined; timed inputs have any size
// along their axes. `carried`: inputs whose values the caller carries from block to block; recurrences that begin with
// them get no state of their own.
// Errors: kInvalidArgument for a model that needs all of the signal at once; says which node does and how the signal
// gets there.
Result<Streamed> stream_over_time(const ir::Graph& graph, const std::vector<TimedInput>& timed,
                                  const std::vector<std::string_view>& carried);

}  // namespace treadle::stream
