#pragma once
// A push whose arguments are bound once, for any number of steps. A step is a push with these arguments, to the last
// bit; most steps skip what every push does besides computing.
//
// Binding finds the plan and the places of one push, as they are once the stream has settled: each push takes the same
// number of samples, makes the same number of runs, and leaves as many samples to wait as the one before. A step then
// joins waiting samples with new ones, runs, and hands states on. Each step looks whether the stream, the inputs and
// the places are still such (is_as_bound), which takes a few comparisons; if not, for example right after reset(), it
// is an ordinary push. A push that cannot be bound (values whose sizes a run decides, blocks that complete no whole
// hops) makes each step an ordinary push; `why` says so.

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "session/bound_run.h"
#include "stream/push.h"

namespace treadle {

class BoundPush {
 public:
  // `outputs`: places of results, one per output of the stream. Feeds and places must live as long as the object.
  BoundPush(std::span<const Feed> feeds, std::span<AnyValue* const> outputs, const RunOptions& options);

  // Settles on a push of `carried` that was made like the one before it. Memory of the wrong type or sizes in the
  // places is replaced. Errors: kLimit.
  Status settle(const StreamLayout& layout, const Push& pushed, const Carried& carried);
  bool is_settled() const { return run_ != nullptr; }
  // Makes all steps ordinary pushes, unless there is a reason already.
  void refuse(std::string why) {
    if (why_.empty()) why_ = std::move(why);
  }
  // Why all steps are ordinary pushes; empty if they are not.
  const std::string& why() const { return why_; }

  // A push with the bound arguments. Returns the number of runs. Errors: those of Push::make; then nothing has changed.
  Result<size_t> step(const StreamLayout& layout, Carried& carried, Push& push);

  std::span<const Feed> feeds() const { return feeds_; }
  const RunOptions& options() const { return options_; }

 private:
  using Kind = session::TensorKind;
  // Positions of an axis in two tensors: `outer` pieces of `bytes`, at distances of a whole axis.
  struct Piece {
    size_t outer = 0, bytes = 0, from_stride = 0, to_stride = 0;
    void copy(const std::byte* from, std::byte* to) const;
  };
  struct Timed {
    size_t input = 0;  // of the session
    const AnyValue* chunk = nullptr;
    Kind kind, tail_kind;
    bool is_joined = false;  // waiting samples or context come before the new ones
    bool is_viewed = false;  // windows are parts of `joined`
    Tensor joined, window;
    Piece old, fresh, cut, rest;  // tail to joined, chunk to joined, joined to window, joined to tail
    size_t fresh_at = 0, sample_bytes = 0, rest_at = 0;  // bytes in each outer position of `joined`
  };
  struct Given {
    size_t input = 0;
    const AnyValue* value = nullptr;
    Kind kind;
  };
  struct State {
    size_t input = 0, output = 0;
    Kind kind;
  };
  struct Output {
    size_t output = 0;
    AnyValue* place = nullptr;
    Kind kind;  // of the result
    Dims row_dims;
    bool keeps_value = false;  // Carried::last_values
    AnyValue kept;             // memory for that, where a fork has it, too
    bool is_whole = false;     // the only row is the result
    Tensor row;
    Piece part;                         // row to result
    size_t part_at = 0, part_step = 0;  // bytes: of the part in a row, of a row in the result
  };

  std::string settle_inputs(const StreamLayout& layout, const Push& pushed, const Carried& carried,
                            std::vector<uint8_t>& varies);
  std::string settle_states(const StreamLayout& layout, const Push& pushed, const Carried& carried);
  Status settle_timed(Timed& timed, const StreamLayout& layout, size_t index);
  Status settle_outputs(const StreamLayout& layout);
  Status settle_rest(const RepeatedRun& run, std::span<const uint8_t> varies);

  bool is_as_bound(const Carried& carried) const;
  Status renew_memory(Carried& carried);
  void join(const Carried& carried);
  void point(size_t run, const Carried& carried);
  void take_rows(size_t run);
  void commit(Carried& carried);

  std::vector<std::string> names_;
  std::vector<Feed> feeds_;
  std::vector<AnyValue*> places_;
  RunOptions options_;
  std::string why_;

  std::unique_ptr<session::BoundRun> run_;  // null: every step is an ordinary push
  bool over_time_ = false, begun_ = false;
  int64_t pending_ = 0;
  int64_t samples_ = 0, context_ = 0;  // of each run
  size_t count_ = 0;                   // runs of a step
  std::vector<Timed> timed_;
  std::vector<Given> given_;
  std::vector<State> states_;  // declared states, then found ones
  std::vector<Output> outputs_;
  std::array<std::vector<Tensor>, 2> next_;  // states after the current run and the run before
};

}  // namespace treadle
