#include "stream/stream.h"

#include <algorithm>

#include "session/limited_work.h"
#include "stream/layout.h"

namespace treadle {

Result<Stream> Stream::open(std::shared_ptr<const Session> session, StreamOptions options) {
  std::shared_ptr<const StreamLayout> layout;
  session::LimitedWork work(session->options().load, "opening");
  TREADLE_TRY(work.run([&]() -> Status {
    TREADLE_ASSIGN(layout, StreamLayout::make(std::move(session), std::move(options)));
    return {};
  }));
  Stream stream(std::move(layout));
  TREADLE_TRY(stream.reset());
  return stream;
}

Status Stream::reset() {
  TREADLE_ASSIGN(carried_, Carried::begin(*layout_));
  return {};
}

Result<plan::StreamPrograms> Stream::plain_blocks(const PlainPushes& pushes) const {
  return treadle::plain_blocks(*layout_, pushes);
}

const std::vector<std::string>& Stream::output_names() const {
  return layout_->output_names;
}

size_t Stream::state_count() const {
  return layout_->states.size();
}

const std::string& Stream::state_name(size_t i) const {
  return layout_->states[i].input->name;
}

Status Stream::set_state(std::string_view input, AnyValue value) {
  for (size_t i = 0; i < carried_.states.size(); ++i) {
    const IoInfo& info = *layout_->states[i].input;
    if (info.name != input) continue;
    if (info.type.is_known() && !same_structure(info.type, value.type())) {
      return error(Code::kInvalidArgument, "state '{}' takes {}, not {}", input, info.type.to_string(),
                   value.type().to_string());
    }
    carried_.states[i] = std::move(value);
    carried_.is_initial[i] = false;
    return {};
  }
  return error(Code::kInvalidArgument, "the stream has no state '{}'", input);
}

int64_t Stream::output_axis(size_t i) const {
  const int64_t axis = layout_->outputs[i].time_axis;
  return axis < 0 && layout_->hop > 0 ? 0 : axis;  // without a time axis, the results of hops are stacked
}

int64_t Stream::delay() const {
  return layout_->over_time ? layout_->over_time->delay : 0;
}

bool Stream::done() const {
  if (!layout_->over_time || carried_.found.empty()) return false;
  return std::any_of(layout_->over_time->running.begin(), layout_->over_time->running.end(), [&](size_t state) {
    const Tensor& goes_on = carried_.found[state].tensor();
    return goes_on.element_count() == 1 && !*goes_on.data<bool>();
  });
}

Result<Stream::Pushed> Stream::push(std::span<const Feed> feeds, const RunOptions& options) {
  return advance(feeds, false, options);
}

Result<Stream::Pushed> Stream::flush(std::span<const Feed> feeds, const RunOptions& options) {
  return advance(feeds, true, options);
}

Result<Stream::Pushed> Stream::advance(std::span<const Feed> feeds, bool last, const RunOptions& options) {
  Pushed pushed;
  pushed.outputs.resize(layout_->outputs.size());
  std::vector<AnyValue*> places;
  for (AnyValue& output : pushed.outputs) places.push_back(&output);
  TREADLE_ASSIGN(pushed.runs, push_.make(*layout_, carried_, feeds, last, places, options));
  return pushed;
}

Result<size_t> Stream::push_into(std::span<const Feed> feeds, std::span<AnyValue* const> outputs,
                                 const RunOptions& options) {
  return push_.make(*layout_, carried_, feeds, false, outputs, options);
}

Result<size_t> Stream::flush_into(std::span<const Feed> feeds, std::span<AnyValue* const> outputs,
                                  const RunOptions& options) {
  return push_.make(*layout_, carried_, feeds, true, outputs, options);
}

}  // namespace treadle
