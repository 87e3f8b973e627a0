#pragma once
// A stream as programs, for writers of code.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plan/program.h"
#include "type/tensor.h"

namespace treadle::plan {

// A stream whose pushes take a fixed number of samples, as programs that share its states. Programs know inputs by the
// names of the model.
struct StreamPrograms {
  struct Timed {
    std::string name;
    int64_t axis = 0;
  };
  struct State {
    std::string name;
    Type type;
    Tensor initial;  // undefined: zeros
  };
  struct Output {
    std::string name;
    int64_t axis = -1;  // along which frames are; -1: each push gives the newest value
  };
  struct Run {
    std::shared_ptr<const Program> program;  // null: there is no such run
    int64_t samples = 0;                     // that it takes of each timed input, beside the context
    std::vector<size_t> outputs, states;     // positions among its outputs, of `outputs` and of next states
  };
  std::vector<Timed> timed;
  std::vector<State> states;
  std::vector<Output> outputs;
  int64_t samples = 0;         // of a push, of each timed input
  int64_t context = 0;         // samples before a run's, which it sees again; zeros at the start
  int64_t waiting_pushes = 0;  // before the first run
  int64_t waiting = 0;         // samples that wait for the next push, once the first run is done
  Run first;                   // the run of the first push that runs; none: as all
  Run steady;                  // the run of each later push
  Run rest;                    // of the waiting samples, at the end of the signal
  bool has_end = false;        // the end of the signal is a run; false: it adds nothing
};

}  // namespace treadle::plan
