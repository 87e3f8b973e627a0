#pragma once
// Values of a model over the iterations of the loops around them: statistics, and contents for a caller that wants
// them.

#include <functional>

#include "plan/specialize.h"
#include "report/iteration_choice.h"
#include "report/watcher.h"
#include "session/origins.h"

namespace treadle::report {

// A value of the model.
struct ValueSeries {
  const ir::Value* value = nullptr;                     // in the model's graph
  const session::ModelValues::Entry* called = nullptr;  // its path, and the loops around it
  std::string missing;                                  // why nothing is seen of it; empty: something is
  // By sample, in the order of time; `iterations` has an entry for each loop. -1: the same in all iterations.
  std::vector<int64_t> iterations;
  std::vector<kernels::Statistics> samples;

  const std::string& name() const { return called->path; }
  size_t depth() const { return called->loops.size(); }
};

struct SeriesRequest {
  uint32_t origin = 0;
  IterationChoice iterations;
};

struct SeriesOptions {
  bool statistics = true;
  int64_t every = 1;                 // of the iterations of the innermost loop around a value
  size_t memory = size_t{64} << 20;  // of samples
  // If given, called with each sample's contents. An error ends the run.
  std::function<Status(const ValueSeries& series, std::span<const int64_t> iterations, const AnyValue& value)> seen;
};

class SeriesRecorder final : public Listener {
 public:
  // `program`: a plan for the model.
  SeriesRecorder(const session::ModelValues& model, const plan::Program& program, const plan::SameOrigins& same,
                 std::span<const SeriesRequest> wanted, SeriesOptions options);

  // Bytes of the samples of a run, if all loops have as many iterations as planning knows; loops of unknown length
  // count as one iteration. `unknown`: whether there is such a loop.
  double expected_bytes(bool& unknown) const;
  // Samples were left out so that they fit: only those of every so many iterations are there.
  int64_t every() const { return options_.every; }
  // In the order of `wanted`.
  std::span<const ValueSeries> series() const { return series_; }
  // The series, when the run has ended.
  std::vector<ValueSeries> take();

  void begin(Watcher& watcher) override;
  void want(const plan::Program& program, std::vector<bool>& slots) const override;
  Status wrote(Watcher& watcher, const run::Write& write, uint32_t pc, bool is_value) override;

 private:
  struct Reader {
    uint32_t series = 0;
    const ir::Value* value = nullptr;  // in the plan: its sizes may differ from those of the slot
  };
  Status sample(const Reader& reader, Watcher& watcher, uint32_t slot, std::span<const int64_t> iterations);
  void keep(ValueSeries& series, std::span<const int64_t> iterations, const kernels::Statistics& statistics);
  void keep_half();
  // Whether `every` lets an iteration in.
  bool is_due(std::span<const int64_t> iterations) const;
  bool is_chosen(size_t series, std::span<const int64_t> iterations) const;

  const plan::Program& program_;
  SeriesOptions options_;
  std::vector<ValueSeries> series_;
  std::vector<bool> is_seen_;             // parallel to series_: whether it was ever written
  std::vector<IterationChoice> choices_;  // parallel to series_
  std::vector<const Tensor*> known_;      // likewise: contents known before the run
  std::vector<std::vector<Reader>> by_slot_;
  std::vector<int64_t> at_;  // scratch
  size_t bytes_ = 0;
  Status begun_;  // of the contents that are known before the run
};

}  // namespace treadle::report
