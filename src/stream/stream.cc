#include "stream/stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "session/limited_work.h"
#include "stream/layout.h"
#include "stream/runs.h"
#include "stream/tensor_slices.h"

namespace treadle {

namespace {

using Symbols = Stream::Runs::Symbols;

// Sizes of caches begin at nothing; every other open size is a batch of one.
int64_t first_size(const Dim& dim, const Symbols& symbols) {
  if (dim.is_known()) return dim.value();
  const std::string_view symbol = dim.symbol_name();
  for (const auto& [name, size] : symbols) {
    if (!symbol.empty() && name == symbol) return size;
  }
  std::string text = dim.to_string();
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const char* growing : {"past", "cache", "seq", "len", "time", "total"}) {
    if (text.find(growing) != std::string::npos) return 0;
  }
  return 1;
}

}  // namespace

Result<AnyValue> first_state(const IoInfo& info, const Symbols& symbols) {
  switch (info.type.kind) {
    case Type::Kind::kSequence:
      return AnyValue(Sequence(*info.type.child));
    case Type::Kind::kOptional:
      return AnyValue(Optional{*info.type.child, nullptr});
    case Type::Kind::kTensor:
      break;
    default:
      return error(Code::kInvalidArgument, "state '{}' ({}) needs a first value", info.name, info.type.to_string());
  }
  if (!info.type.has_shape) {
    return error(Code::kInvalidArgument, "the rank of state '{}' is not known: give its first value", info.name);
  }
  Dims dims;
  for (const Dim& dim : info.type.shape) dims.push_back(first_size(dim, symbols));
  TREADLE_ASSIGN(Tensor tensor, zeros(info.type.element, std::move(dims)));
  return AnyValue(std::move(tensor));
}

namespace {

Status check_chunk(const IoInfo& info, int64_t axis, const AnyValue& value) {
  bool fits = value.is_tensor() && value.tensor().type() == info.type.element && value.tensor().rank() > axis &&
              (!info.type.has_shape || value.tensor().rank() == info.type.rank());
  for (size_t i = 0; fits && i < info.type.shape.size(); ++i) {
    const Dim& size = info.type.shape[i];
    fits = static_cast<int64_t>(i) == axis || !size.is_known() || size.is_known(value.tensor().dims()[i]);
  }
  if (fits) return {};
  return error(Code::kInvalidArgument, "input '{}' takes {}, not {}", info.name, info.type.to_string(),
               value.type().to_string());
}

}  // namespace

const AnyValue* find_feed(std::span<const Feed> feeds, std::string_view name) {
  for (const Feed& feed : feeds) {
    if (feed.name == name) return feed.value;
  }
  return nullptr;
}

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
  std::vector<AnyValue> states;
  std::vector<uint8_t> is_initial;
  for (const auto& state : layout_->states) {
    is_initial.push_back(!state.has_initial && !state.input->has_default);
    if (is_initial.back()) {
      TREADLE_ASSIGN(AnyValue value, first_state(*state.input, {}));
      states.push_back(std::move(value));
    } else {
      states.push_back(state.initial);
    }
  }
  states_ = std::move(states);
  is_initial_ = std::move(is_initial);
  tails_.assign(layout_->timed.size(), {});
  last_dims_.assign(layout_->outputs.size(), {});
  last_values_.assign(layout_->outputs.size(), {});
  found_.clear();
  begun_ = ended_ = false;
  pending_ = 0;
  return {};
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
  for (size_t i = 0; i < states_.size(); ++i) {
    const IoInfo& info = *layout_->states[i].input;
    if (info.name != input) continue;
    if (info.type.is_known() && !same_structure(info.type, value.type())) {
      return error(Code::kInvalidArgument, "state '{}' takes {}, not {}", input, info.type.to_string(),
                   value.type().to_string());
    }
    states_[i] = std::move(value);
    is_initial_[i] = false;
    return {};
  }
  return error(Code::kInvalidArgument, "the stream has no state '{}'", input);
}

Result<Stream::Pushed> Stream::push(std::span<const Feed> feeds, const RunOptions& options) {
  return advance(feeds, false, options);
}

Result<Stream::Pushed> Stream::flush(std::span<const Feed> feeds, const RunOptions& options) {
  return advance(feeds, true, options);
}

Result<Stream::Pushed> Stream::advance(std::span<const Feed> feeds, bool pad, const RunOptions& options) {
  if (layout_->over_time) return advance_over_time(feeds, pad, options);
  Runs runs;
  runs.results.resize(layout_->outputs.size());
  runs.states = states_;
  if (!(pad && pending_ == 0)) {
    TREADLE_TRY(begin_windows(feeds, pad, runs));
    for (size_t i = 0; i < runs.count; ++i) {
      Status status = run_hop(i, runs, options);
      if (!status.ok()) {
        return runs.count == 1 ? std::move(status)
                               : Status(std::move(status).in(fmt::format("hop {} of the push:", i)));
      }
    }
  }
  return finish_windows(runs);
}

Status Stream::begin_windows(std::span<const Feed> feeds, bool pad, Runs& runs) const {
  TREADLE_TRY(sort_feeds(feeds, pad, runs));
  TREADLE_TRY(join_samples(pad, runs));
  bind_symbols(runs);
  return runs.count > 0 ? settle_states(runs) : Status();
}

Result<Stream::Pushed> Stream::finish_windows(Runs& runs) {
  Pushed pushed;
  pushed.runs = runs.count;
  for (size_t i = 0; i < layout_->outputs.size(); ++i) {
    TREADLE_ASSIGN(AnyValue value, combine(i, runs));
    pushed.outputs.push_back(std::move(value));
  }
  TREADLE_ASSIGN(std::vector<Tensor> tails, tails_behind(runs));
  std::vector<Dims> last_dims = last_dims_;
  for (size_t i = 0; runs.count > 0 && i < last_dims.size(); ++i) {
    const AnyValue& last = runs.results[i].back();
    if (last.is_tensor()) last_dims[i] = last.tensor().dims();
  }
  // From here on nothing fails.
  keep_tails(std::move(tails), runs);
  if (runs.count > 0) {
    states_ = std::move(runs.states);
    std::fill(is_initial_.begin(), is_initial_.end(), 0);
    last_dims_ = std::move(last_dims);
  }
  return pushed;
}

Status Stream::sort_feeds(std::span<const Feed> feeds, bool pad, Runs& runs) const {
  for (const auto& [name, value] : layout_->bound) runs.constant.push_back({name, &value});
  for (const Feed& feed : feeds) {
    const bool timed = std::any_of(layout_->timed.begin(), layout_->timed.end(),
                                   [&](const auto& t) { return t.input->name == feed.name; });
    if (timed) {
      if (pad) return error(Code::kInvalidArgument, "flush() takes no samples of '{}'", feed.name);
      continue;
    }
    if (find_feed(runs.constant, feed.name)) {
      return error(Code::kInvalidArgument, "input '{}' is bound, or given twice", feed.name);
    }
    for (const auto& state : layout_->states) {
      if (state.input->name == feed.name) {
        return error(Code::kInvalidArgument, "input '{}' is a state of the stream; set it as such", feed.name);
      }
    }
    runs.constant.push_back(feed);
  }
  for (const auto& timed : layout_->timed) {
    if (pad) continue;
    const AnyValue* chunk = find_feed(feeds, timed.input->name);
    if (!chunk) return error(Code::kInvalidArgument, "samples of input '{}' are missing", timed.input->name);
    TREADLE_TRY(check_chunk(*timed.input, timed.axis, *chunk));
    runs.chunks.push_back(chunk->tensor());
  }
  return {};
}

Status Stream::join_samples(bool pad, Runs& runs) const {
  const int64_t context = layout_->context;
  for (size_t i = 0; i < layout_->timed.size(); ++i) {
    const int64_t axis = layout_->timed[i].axis;
    const auto at = static_cast<size_t>(axis);
    if (pad) {
      Dims dims = tails_[i].dims();
      dims[at] = layout_->hop - pending_;
      TREADLE_ASSIGN(Tensor silence, zeros(tails_[i].type(), std::move(dims)));
      runs.chunks.push_back(std::move(silence));
    }
    const Tensor& chunk = runs.chunks[i];
    Tensor before = tails_[i];
    if (!before.defined()) {
      Dims dims = chunk.dims();
      dims[at] = context;
      TREADLE_ASSIGN(before, zeros(chunk.type(), std::move(dims)));
    }
    const std::array<Tensor, 2> parts = {before, chunk};
    auto joined = before.dims()[at] == 0 && before.dims().size() == chunk.dims().size() ? Result<Tensor>(chunk)
                                                                                        : concat_axis(parts, axis);
    if (!joined.ok()) return std::move(joined).status().in(fmt::format("input '{}'", layout_->timed[i].input->name));
    const int64_t available = joined->dims()[at] - context;
    if (i > 0 && available != runs.available) {
      return error(Code::kInvalidArgument, "inputs '{}' and '{}' get unlike numbers of samples ({} and {})",
                   layout_->timed[0].input->name, layout_->timed[i].input->name, runs.available - pending_,
                   available - pending_);
    }
    runs.available = available;
    runs.joined.push_back(std::move(joined).value());
  }
  runs.hop = layout_->hop > 0 ? layout_->hop : runs.available;
  if (layout_->timed.empty()) {
    runs.count = 1;
  } else {
    runs.count = runs.hop > 0 ? static_cast<size_t>(runs.available / runs.hop) : 0;
  }
  return {};
}

// Sizes that inputs give to the names in their declared types; the time axes say nothing lasting.
void Stream::bind_symbols(Runs& runs) const {
  const auto bind = [&](const IoInfo& info, const AnyValue& value, int64_t skip) {
    if (!value.is_tensor() || !info.type.has_shape || info.type.rank() != value.tensor().rank()) return;
    for (size_t i = 0; i < info.type.shape.size(); ++i) {
      if (static_cast<int64_t>(i) == skip || info.type.shape[i].symbol_name().empty()) continue;
      runs.symbols.emplace_back(info.type.shape[i].symbol_name(), value.tensor().dims()[i]);
    }
  };
  for (size_t i = 0; i < runs.joined.size(); ++i) {
    bind(*layout_->timed[i].input, AnyValue(runs.joined[i]), layout_->timed[i].axis);
  }
  for (const IoInfo* info : layout_->given) {
    if (const AnyValue* value = find_feed(runs.constant, info->name)) bind(*info, *value, -1);
  }
}

// States that are still their first zeros take their open sizes (the batch) from the inputs that came.
Status Stream::settle_states(Runs& runs) const {
  for (size_t i = 0; i < runs.states.size(); ++i) {
    if (!is_initial_[i]) continue;
    TREADLE_ASSIGN(runs.states[i], first_state(*layout_->states[i].input, runs.symbols));
  }
  return {};
}

Status Stream::run_hop(size_t index, Runs& runs, const RunOptions& options) const {
  std::vector<Feed> feeds = runs.constant;
  std::vector<AnyValue> windows(layout_->timed.size());
  for (size_t i = 0; i < layout_->timed.size(); ++i) {
    TREADLE_ASSIGN(windows[i], slice_axis(runs.joined[i], layout_->timed[i].axis,
                                          static_cast<int64_t>(index) * runs.hop, layout_->context + runs.hop));
    feeds.push_back({layout_->timed[i].input->name, &windows[i]});
  }
  for (size_t i = 0; i < layout_->states.size(); ++i) {
    const IoInfo& info = *layout_->states[i].input;
    if (runs.states[i].is_none() && info.has_default) continue;
    feeds.push_back({info.name, &runs.states[i]});
  }
  std::vector<AnyValue> results(layout_->run_outputs.size());
  TREADLE_TRY(layout_->session->run(feeds, layout_->run_outputs, results, options));
  const size_t outputs = layout_->outputs.size();
  for (size_t i = 0; i < outputs; ++i) runs.results[i].push_back(std::move(results[i]));
  for (size_t i = 0; i < runs.states.size(); ++i) runs.states[i] = std::move(results[outputs + i]);
  return {};
}

Result<std::vector<Tensor>> Stream::tails_behind(const Runs& runs) const {
  const int64_t used = static_cast<int64_t>(runs.count) * runs.hop;
  std::vector<Tensor> tails;
  for (size_t i = 0; i < runs.joined.size(); ++i) {
    const int64_t rest = layout_->context + runs.available - used;
    TREADLE_ASSIGN(const Tensor tail, slice_axis(runs.joined[i], layout_->timed[i].axis, used, rest));
    TREADLE_ASSIGN(Tensor own, tail.clone());  // the caller's array and long joins are not kept
    tails.push_back(std::move(own));
  }
  return tails;
}

void Stream::keep_tails(std::vector<Tensor> tails, const Runs& runs) {
  if (tails.empty()) return;
  tails_ = std::move(tails);
  pending_ = runs.available - static_cast<int64_t>(runs.count) * runs.hop;
}

Result<AnyValue> Stream::combine(size_t output, const Runs& runs) const {
  const std::vector<AnyValue>& results = runs.results[output];
  const StreamLayout::Output& role = layout_->outputs[output];
  if (results.empty()) return no_result(output, runs);
  std::vector<Tensor> parts;
  for (const AnyValue& value : results) {
    if (!value.is_tensor()) break;
    parts.push_back(value.tensor());
  }
  const bool tensors = parts.size() == results.size();
  if (tensors && role.time_axis >= 0) {
    for (Tensor& part : parts) {
      if (part.rank() <= role.time_axis) {
        return error(Code::kInvalidArgument, "output '{}' is {} and has no axis {}", layout_->output_names[output],
                     treadle::to_string(part.dims()), role.time_axis);
      }
      const int64_t frames = part.dims()[static_cast<size_t>(role.time_axis)];
      if (layout_->context == 0) continue;
      const int64_t window = layout_->context + runs.hop;
      if (layout_->context * frames % window != 0) {
        return error(
            Code::kInvalidArgument,
            "{} frames of output '{}' for a window of {} samples: its context of {} is no whole number of them", frames,
            layout_->output_names[output], window, layout_->context);
      }
      const int64_t skipped = layout_->context * frames / window;
      TREADLE_ASSIGN(part, slice_axis(part, role.time_axis, skipped, frames - skipped));
    }
    TREADLE_ASSIGN(Tensor joined, parts.size() == 1 ? Result<Tensor>(parts[0]) : concat_axis(parts, role.time_axis));
    return AnyValue(std::move(joined));
  }
  if (layout_->hop == 0) return results.front();
  if (tensors &&
      std::all_of(parts.begin(), parts.end(), [&](const Tensor& t) { return t.dims() == parts[0].dims(); })) {
    TREADLE_ASSIGN(Tensor stacked, stack(parts));
    return AnyValue(std::move(stacked));
  }
  Type element = tensors ? Type::tensor(parts[0].type()) : results.front().type();
  return AnyValue(Sequence(std::move(element), results));
}

Result<AnyValue> Stream::no_result(size_t output, const Runs& runs) const {
  const StreamLayout::Output& role = layout_->outputs[output];
  const Type& type = layout_->session->outputs()[role.index].type;
  if (!type.is_tensor()) return AnyValue(Sequence(type));
  Dims dims = last_dims_[output];
  if (dims.empty() && type.has_shape) {
    for (const Dim& dim : type.shape) dims.push_back(first_size(dim, runs.symbols));
  }
  if (role.time_axis >= 0 && role.time_axis < static_cast<int64_t>(dims.size())) {
    dims[static_cast<size_t>(role.time_axis)] = 0;
  } else {
    dims.insert(0, 0);
  }
  TREADLE_ASSIGN(Tensor nothing, Tensor::allocate(type.element, std::move(dims)));
  return AnyValue(std::move(nothing));
}

}  // namespace treadle
