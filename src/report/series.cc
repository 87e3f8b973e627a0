#include "report/series.h"

#include <algorithm>
#include <unordered_map>

#include "op/op_def.h"
#include "session/origins.h"

namespace treadle::report {

using kernels::Statistics;
using run::Write;

namespace {

size_t bytes_of_sample(const ValueSeries& series) {
  return sizeof(Statistics) + series.depth() * sizeof(int64_t);
}

// The values that hold the contents of each value of the model in a plan.
class PlannedValues {
 public:
  using Held = std::pair<const ir::Value*, uint32_t>;

  PlannedValues(const plan::Program& program, const plan::SameOrigins& same, size_t count)
      : held_(program.values), first_(count + 2), known_(count + 1), replacement_(count + 1) {
    std::sort(held_.begin(), held_.end(),
              [](const Held& a, const Held& b) { return a.first->origin < b.first->origin; });
    for (const Held& held : held_) ++first_[held.first->origin + 1];
    for (size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    for (const ir::Value* value : program.graph->values()) {
      if (value->origin != 0 && value->is_constant()) known_[value->origin] = &value->constant;
    }
    for (const auto& [from, to] : same) replacement_[from] = to;
  }

  std::span<const Held> slots(uint32_t origin) const {
    return std::span(held_).subspan(first_[origin], first_[origin + 1] - first_[origin]);
  }
  const Tensor* known(uint32_t origin) const { return known_[origin]; }
  // The value that replaces this one; 0: none does.
  uint32_t replacement(uint32_t origin) const { return replacement_[origin]; }

 private:
  std::vector<Held> held_;     // by origin
  std::vector<size_t> first_;  // by origin: its first among these
  std::vector<const Tensor*> known_;
  std::vector<uint32_t> replacement_;
};

}  // namespace

SeriesRecorder::SeriesRecorder(const session::ModelValues& model, const plan::Program& program,
                               const plan::SameOrigins& same, std::span<const SeriesRequest> wanted,
                               SeriesOptions options)
    : program_(program), options_(std::move(options)), by_slot_(program.slots.size()) {
  const PlannedValues planned(program, same, model.graph().values().size());
  series_.reserve(wanted.size());
  for (const auto& [origin, iterations] : wanted) {
    const auto index = static_cast<uint32_t>(series_.size());
    series_.push_back({&session::value_of(model.graph(), origin), &model[origin], {}, {}, {}});
    choices_.push_back(iterations);
    uint32_t at = origin;
    for (uint32_t next = planned.replacement(at); next != 0 && planned.slots(at).empty() && !planned.known(at);) {
      at = next;
      next = planned.replacement(at);
    }
    known_.push_back(planned.slots(at).empty() ? planned.known(at) : nullptr);
    for (const auto& [value, slot] : planned.slots(at)) by_slot_[slot].push_back({index, value});
    if (planned.slots(at).empty() && !planned.known(at)) {
      series_.back().missing = "nothing that runs reads it, so it is not computed";
    }
  }
}

double SeriesRecorder::expected_bytes(bool& unknown) const {
  std::unordered_map<std::string_view, int64_t> iterations;
  for (const plan::Loop& loop : program_.loops) {
    iterations[loop.node->name.view()] = plan::planned_iterations(program_, loop);
  }
  double bytes = 0;
  for (const ValueSeries& series : series_) {
    if (!series.missing.empty()) continue;
    double samples = 1;
    for (const std::string& loop : series.called->loops) {
      const auto found = iterations.find(loop);
      const int64_t count = found == iterations.end() ? -1 : found->second;
      unknown |= count < 0;
      samples *= static_cast<double>(std::max<int64_t>(count, 1));
    }
    if (series.depth() > 0) samples /= static_cast<double>(options_.every);
    bytes += std::max(samples, 1.0) * static_cast<double>(bytes_of_sample(series));
  }
  return bytes;
}

void SeriesRecorder::want(const plan::Program&, std::vector<bool>& slots) const {
  if (!options_.statistics) return;
  for (size_t s = 0; s < by_slot_.size(); ++s) {
    if (!by_slot_[s].empty()) slots[s] = true;
  }
}

void SeriesRecorder::begin(Watcher& watcher) {
  begun_ = {};
  bytes_ = 0;
  is_seen_.assign(series_.size(), false);
  for (size_t i = 0; i < series_.size(); ++i) {
    is_seen_[i] = known_[i] != nullptr;
    series_[i].samples.clear();
    series_[i].iterations.clear();
    if (!known_[i]) continue;
    at_.assign(series_[i].depth(), -1);
    if (options_.statistics) keep(series_[i], at_, statistics_of(*known_[i]));
    if (options_.seen) begun_ = options_.seen(series_[i], at_, AnyValue(*known_[i]));
    if (!begun_.ok()) return;
  }
  for (const plan::Input& input : watcher.program().inputs) {
    if (input.slot == plan::kNoSlot) continue;
    for (const Reader& reader : by_slot_[input.slot]) {
      at_.assign(series_[reader.series].depth(), -1);
      if (begun_.ok()) begun_ = sample(reader, watcher, input.slot, at_);
    }
  }
}

Status SeriesRecorder::wrote(Watcher& watcher, const Write& write, uint32_t pc, bool is_value) {
  if (!begun_.ok()) return std::move(begun_);
  if (!is_value) return {};
  for (const Reader& reader : by_slot_[write.slot]) {
    at_.assign(series_[reader.series].depth(), -1);
    watcher.iterations_around(pc, at_);
    TREADLE_TRY(sample(reader, watcher, write.slot, at_));
  }
  return {};
}

bool SeriesRecorder::is_due(std::span<const int64_t> iterations) const {
  return options_.every == 1 || iterations.empty() || iterations.back() <= 0 || iterations.back() % options_.every == 0;
}

bool SeriesRecorder::is_chosen(size_t series, std::span<const int64_t> iterations) const {
  if (!is_due(iterations)) return false;
  return choices_[series].levels() == 0 || choices_[series].has(iterations);
}

Status SeriesRecorder::sample(const Reader& reader, Watcher& watcher, uint32_t slot,
                              std::span<const int64_t> iterations) {
  const uint32_t series = reader.series;
  is_seen_[series] = true;
  if (!is_chosen(series, iterations)) return {};
  if (options_.statistics) keep(series_[series], iterations, watcher.seen(slot).statistics);
  if (!options_.seen) return {};
  TREADLE_ASSIGN(const AnyValue value, watcher.copy_of(slot, reader.value->type));
  return options_.seen(series_[series], iterations, value);
}

std::vector<ValueSeries> SeriesRecorder::take() {
  for (size_t i = 0; i < is_seen_.size(); ++i) {
    if (is_seen_[i] || !series_[i].missing.empty()) continue;
    series_[i].missing = "the run has not computed it: its loop or branch did not run, or nothing reads it";
  }
  return std::move(series_);
}

void SeriesRecorder::keep(ValueSeries& series, std::span<const int64_t> iterations, const Statistics& statistics) {
  bytes_ += bytes_of_sample(series);
  if (bytes_ > options_.memory && !iterations.empty()) keep_half();
  if (!is_due(iterations)) return;
  series.iterations.insert(series.iterations.end(), iterations.begin(), iterations.end());
  series.samples.push_back(statistics);
}

// Leaves out every other iteration, and from now on, too.
void SeriesRecorder::keep_half() {
  options_.every *= 2;
  bytes_ = 0;
  for (ValueSeries& series : series_) {
    const size_t depth = series.depth();
    size_t kept = 0;
    for (size_t i = 0; i < series.samples.size(); ++i) {
      const int64_t* const at = series.iterations.data() + i * depth;
      if (!is_due({at, depth})) continue;
      series.samples[kept] = series.samples[i];
      std::copy(at, at + depth, series.iterations.data() + kept * depth);
      ++kept;
    }
    series.samples.resize(kept);
    series.iterations.resize(kept * depth);
    bytes_ += kept * bytes_of_sample(series);
  }
}

}  // namespace treadle::report
