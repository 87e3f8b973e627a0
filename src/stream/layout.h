#pragma once
// The roles of the inputs and outputs of a streamed model, given or found.

#include <memory>
#include <string>
#include <vector>

#include "stream/identity.h"
#include "stream/over_time.h"
#include "stream/state_paths.h"
#include "stream/stream.h"

namespace treadle {

struct StreamLayout {
  struct State {
    const IoInfo* input;
    size_t output;  // index into Session::outputs()
    AnyValue initial = {};
    bool has_initial = false;
    std::string found = {};         // how it was found; empty: given
    stream::FirstSizes first = {};  // for a tensor of known rank
    size_t at = 0;                  // index in `inputs`
  };
  struct Timed {
    const IoInfo* input;
    int64_t axis;
    bool found = false;
    size_t at = 0;           // index in `inputs`
    std::string edges = {};  // where the edges of blocks show (stream/block_edges.h); may be empty
  };
  struct Output {
    size_t index;            // into Session::outputs()
    int64_t time_axis = -1;  // -1: stacked
  };

  enum class Role : uint8_t { kState, kTimed, kBound, kGiven };
  struct Input {
    const IoInfo* info;
    Role role = Role::kGiven;
    size_t index = 0;  // index among the inputs of its role; unused for inputs that are given with each push
  };

  std::shared_ptr<const Session> session;
  std::vector<Input> inputs;                 // all inputs of the model; each has one role
  std::vector<const AnyValue*> bound_feeds;  // parallel to inputs; null: not bound
  int64_t hop = 0;
  int64_t context = 0;
  std::vector<State> states;
  std::vector<Timed> timed;
  std::vector<std::pair<std::string, AnyValue>> bound;
  std::vector<const IoInfo*> given;  // inputs that are given with each push
  std::vector<Output> outputs;
  std::vector<std::string> output_names;      // parallel to outputs
  std::vector<size_t> run_outputs;            // the outputs that a run returns: outputs, then states
  std::vector<size_t> block_outputs;          // over time: the same, then the found states
  bool by_position = false;                   // runs with tensors only may pass inputs by position (RepeatedRun)
  std::shared_ptr<const OverTime> over_time;  // null: windows, or a run per push
  StreamIdentity identity;

  static Result<std::shared_ptr<const StreamLayout>> make(std::shared_ptr<const Session> session,
                                                          StreamOptions options);
  // The same roles in a model made of this one, whose inputs and outputs have the same names. Errors: kInternal.
  Result<std::shared_ptr<const StreamLayout>> on(std::shared_ptr<const Session> session,
                                                 std::shared_ptr<const OverTime> over_time) const;
  // Declared states first, then states found in a model over time.
  const std::string& state_name(size_t state) const;
  // Text for people. Without `remarks`: the roles only, without how they were found and what to watch.
  std::string to_string(bool remarks = true) const;
};

}  // namespace treadle
