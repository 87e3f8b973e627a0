#pragma once
// The arguments of Session::run, bound once for any number of runs: each reads the feeds as they are then, and writes
// results into the same places. For one thread at a time.
//
// A run looks whether feeds and places still have the types and sizes that they had, and is then as cheap as its
// program (session/bound_run.h). Otherwise, and where `why` says so, it is Session::run with the bound arguments.

#include <memory>
#include <string>
#include <vector>

#include "session/bound_run.h"

namespace treadle::session {

class Binding {
 public:
  // `outputs`: indices into Session::outputs(), empty means all. `places`: of their results. The binding refers to the
  // feeds, to the places and to the objects behind `options`, so all of them have to live as long as it does. make()
  // runs the model: a place without memory of the right type and sizes gets the result of that run, and other places
  // keep their contents. Errors: those of the run, and kInvalidArgument for a place with memory of a feed or of another
  // place.
  static Result<std::unique_ptr<Binding>> make(std::shared_ptr<const Session> session, std::span<const Feed> feeds,
                                               std::span<const size_t> outputs, std::span<AnyValue* const> places,
                                               const RunOptions& options);

  // Errors: as of Session::run.
  Status run() { return run_ && is_as_bound() ? run_bound() : run_unbound(); }
  // Why runs cost as much as those of Session::run; empty if they do not.
  const std::string& why() const { return why_; }

 private:
  struct Taken {
    size_t input = 0;
    const AnyValue* value = nullptr;
    TensorKind kind;
  };
  struct Given {
    size_t output = 0;
    AnyValue* place = nullptr;
    TensorKind kind;
  };

  Binding() = default;
  Status settle();
  Status bind(RepeatedRun& run);
  bool is_as_bound() const;
  Status run_bound();
  Status run_unbound() { return session_->run(feeds_, outputs_, places_, options_); }

  std::shared_ptr<const Session> session_;
  std::vector<std::string> names_;
  std::vector<Feed> feeds_;
  std::vector<size_t> outputs_;
  std::vector<AnyValue*> places_;
  RunOptions options_;
  std::string why_;
  std::unique_ptr<BoundRun> run_;  // null: none is bound
  std::vector<Taken> taken_;
  std::vector<Given> given_;
};

// Errors: kInvalidArgument if memory of an output is memory of a feed, or of another output: a run would overwrite what
// a later one reads. `names`: of the outputs.
Status check_apart(std::span<const Feed> feeds, std::span<AnyValue* const> outputs, std::span<const std::string> names);

}  // namespace treadle::session
