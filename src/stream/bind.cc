// Binding pushes copies of the stream forward until a push is like the one before.
#include <fmt/format.h>

#include "session/binding.h"
#include "stream/bound_push.h"
#include "stream/layout.h"
#include "stream/stream.h"

namespace treadle {

namespace {

constexpr int kMostPushes = 1 << 16;  // until a stream has settled

}  // namespace

Status Stream::bind(std::span<const Feed> feeds, std::span<AnyValue* const> outputs, const RunOptions& options) {
  TREADLE_TRY(session::check_apart(feeds, outputs, output_names()));
  auto bound = std::make_shared<BoundPush>(feeds, outputs, options);
  Stream trial(*this);
  if (carried_.ended) TREADLE_TRY(trial.reset());
  TREADLE_TRY(std::move(trial.push(feeds, options)).status());
  const int64_t samples = trial.push_.samples_given(), hop = whole_hop();
  if (!layout_->timed.empty() && (samples < 1 || samples % hop != 0)) {
    bound->refuse(fmt::format("{} samples are no whole number of hops of {}", samples, hop));
  }
  for (int i = 0; i < kMostPushes && bound->why().empty(); ++i) {
    const Block before = trial.push_.block();
    const int64_t pending = trial.pending();
    TREADLE_TRY(std::move(trial.push(feeds, options)).status());
    const Block& now = trial.push_.block();
    if (!now.session || now.session != before.session || now.count != before.count || trial.pending() != pending) {
      continue;
    }
    TREADLE_TRY(bound->settle(*layout_, trial.push_, trial.carried_));
    break;
  }
  if (!bound->is_settled()) bound->refuse("no push was like the one before it");
  push_.set_bound(std::move(bound));
  return {};
}

void Stream::unbind() {
  push_.set_bound(nullptr);
}

Result<size_t> Stream::step() {
  BoundPush* const bound = push_.bound().get();
  if (!bound) return error(Code::kInvalidArgument, "nothing is bound to the stream: bind its arguments first");
  return bound->step(*layout_, carried_, push_);
}

std::string_view Stream::why_unbound() const {
  return push_.bound() ? std::string_view(push_.bound()->why()) : std::string_view();
}

}  // namespace treadle
