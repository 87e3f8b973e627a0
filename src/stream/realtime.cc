// Whether pushes keep real time. Their plans decide it.
#include <fmt/format.h>

#include "session/plan_cache.h"
#include "stream/layout.h"
#include "stream/stream.h"

namespace treadle {

std::string Push::breaks_realtime(bool bound) const {
  if (!session_) return {};
  const bool in_reference = session_->options().tier == Tier::kReference;
  if (!by_position_ && !in_reference)
    return "an input, an output or a state may be no tensor, or two outputs are one value";
  return session_->breaks_realtime(repeated_.plan ? &repeated_.plan->planned() : nullptr, bound);
}

Result<std::string> Stream::breaks_realtime(int64_t samples) const {
  std::string why;
  if (samples == 0) samples = whole_hop();
  const bool bound = push_.bound() && why_unbound().empty();
  TREADLE_TRY(rehearse(samples, [&](const Push& push) {
    if (why.empty()) why = push.breaks_realtime(bound);
  }));
  return why;
}

std::string Stream::realtime_text() const {
  std::string text;
  if (push_.bound()) {
    const std::string_view why = why_unbound();
    text = why.empty() ? "  steps are bound\n" : fmt::format("  steps are ordinary pushes: {}\n", why);
  }
  if (push_.samples_pushed() < 0) return text;
  const std::string why = push_.breaks_realtime(false);
  const std::string pushes =
      layout_->timed.empty() ? "pushes" : fmt::format("pushes of {} samples", push_.samples_pushed());
  return text + (why.empty() ? fmt::format("  {} keep real time: no memory, no lock, no system call\n", pushes)
                             : fmt::format("  {} may not keep real time: {}\n", pushes, why));
}

}  // namespace treadle
