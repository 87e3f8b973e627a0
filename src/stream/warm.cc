// Warming pushes silence to a second stream, which plans and compiles everything that later pushes of the first stream
// run.
#include <numeric>

#include "stream/layout.h"
#include "stream/stream.h"

namespace treadle {

namespace {

constexpr int64_t kMostPushes = 4096;  // of one size

// `samples` samples of zeros for each timed input, and initial values for all other inputs.
Result<std::vector<AnyValue>> silence(const StreamLayout& layout, int64_t samples) {
  std::vector<AnyValue> values;
  for (const StreamLayout::Timed& timed : layout.timed) {
    IoInfo info = *timed.input;
    if (info.type.has_shape) info.type.shape[static_cast<size_t>(timed.axis)] = samples;
    TREADLE_ASSIGN(AnyValue value, first_state(info, info.type.shape, {}));
    values.push_back(std::move(value));
  }
  for (const IoInfo* info : layout.given) {
    TREADLE_ASSIGN(AnyValue value, first_state(*info, info->type.shape, {}));
    values.push_back(std::move(value));
  }
  return values;
}

}  // namespace

int64_t Stream::whole_hop() const {
  return layout_->over_time ? layout_->over_time->hop : std::max<int64_t>(layout_->hop, 1);
}

Status Stream::warm(std::span<const int64_t> sizes) const {
  const OverTime* over_time = layout_->over_time.get();
  const int64_t whole = whole_hop();
  if (sizes.empty()) sizes = {&whole, 1};
  for (const int64_t size : sizes) TREADLE_TRY(rehearse(size).in("warming up:"));
  layout_->session->compile();
  if (!over_time) return {};
  for (const auto* session : {&over_time->start, &over_time->steady, &over_time->last}) (*session)->compile();
  return {};
}

// Pushes until the stream has begun, and until the number of waiting samples has had all of its values.
Status Stream::rehearse(int64_t samples, const std::function<void(const Push&)>& pushed_to) const {
  if (samples < 1) return error(Code::kInvalidArgument, "a push has at least one sample, not {}", samples);
  Stream trial(layout_);
  TREADLE_TRY(trial.reset());
  TREADLE_ASSIGN(const std::vector<AnyValue> values, silence(*layout_, samples));
  std::vector<Feed> feeds;
  for (size_t i = 0; i < values.size(); ++i) {
    const bool timed = i < layout_->timed.size();
    const IoInfo& info = timed ? *layout_->timed[i].input : *layout_->given[i - layout_->timed.size()];
    feeds.push_back({info.name, &values[i]});
  }
  const OverTime* over_time = layout_->over_time.get();
  const int64_t hop = whole_hop();
  int64_t runs = 0, left = hop / std::gcd(hop, samples) + 1;
  for (int64_t i = 0; i < kMostPushes && left > 0; ++i) {
    TREADLE_ASSIGN(const Pushed pushed, trial.push(feeds));
    if (runs > 0 && pushed.runs > 0 && pushed_to) pushed_to(trial.push_);
    runs += static_cast<int64_t>(pushed.runs);
    if (runs > 0) --left;
  }
  if (!over_time && layout_->hop == 0) return {};
  auto last = trial.flush(std::span(feeds).subspan(layout_->timed.size()));
  return last.ok() ? Status() : std::move(last).status();
}

}  // namespace treadle
