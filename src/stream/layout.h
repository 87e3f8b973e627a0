#pragma once
// The roles that the inputs and outputs of a streamed model play, as given and as found.

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
    std::string found = {};         // how, where it was not given
    stream::FirstSizes first = {};  // of a tensor of known rank
    size_t at = 0;                  // among `inputs`
  };
  struct Timed {
    const IoInfo* input;
    int64_t axis;
    bool found = false;
    size_t at = 0;           // among `inputs`
    std::string edges = {};  // where the edges of blocks show (stream/block_edges.h)
  };
  struct Output {
    size_t index;            // into Session::outputs()
    int64_t time_axis = -1;  // -1: stacked
  };

  enum class Role : uint8_t { kState, kTimed, kBound, kGiven };
  struct Input {
    const IoInfo* info;
    Role role = Role::kGiven;
    size_t index = 0;  // among those of its role; none that are given
  };

  std::shared_ptr<const Session> session;
  std::vector<Input> inputs;                 // of the model, each in one role
  std::vector<const AnyValue*> bound_feeds;  // parallel to inputs; null: not bound
  int64_t hop = 0;
  int64_t context = 0;
  std::vector<State> states;
  std::vector<Timed> timed;
  std::vector<std::pair<std::string, AnyValue>> bound;
  std::vector<const IoInfo*> given;  // with each push
  std::vector<Output> outputs;
  std::vector<std::string> output_names;      // parallel to outputs
  std::vector<size_t> run_outputs;            // outputs, then states: what a run is asked for
  std::vector<size_t> block_outputs;          // over time: the same, then the states that were found
  bool by_position = false;                   // runs may be made so (RepeatedRun) where all inputs are tensors
  std::shared_ptr<const OverTime> over_time;  // null: windows, or a run per push
  StreamIdentity identity;

  static Result<std::shared_ptr<const StreamLayout>> make(std::shared_ptr<const Session> session,
                                                          StreamOptions options);
  // The same roles in a model made of this one, whose inputs and outputs have the same names. Errors: kInternal.
  Result<std::shared_ptr<const StreamLayout>> on(std::shared_ptr<const Session> session,
                                                 std::shared_ptr<const OverTime> over_time) const;
  // Declared ones, then those found in a model that is streamed over time.
  const std::string& state_name(size_t state) const;
  // For people. Without `remarks`: the roles alone, not how they were found and what to look out for.
  std::string to_string(bool remarks = true) const;
};

}  // namespace treadle
