#include "signal_stream.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "common.h"
#include "feeds.h"

namespace cli {

using treadle::Feeds;
using treadle::Session;
using treadle::Type;
using treadle::Value;

namespace {

std::pair<std::string, std::string> parts_of(const std::string& text, const char* option, const char* form) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    throw UsageError(fmt::format("{} takes {}, not '{}'", option, form, text));
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

std::pair<std::string, std::string> time_of(const std::string& text) {
  return parts_of(text, "--time", "NAME=AXIS");
}

std::optional<int64_t> number_in(const std::string& text) {
  int64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<Type> input_type(const Session& session, const std::string& name) {
  for (size_t i = 0; i < session.count(TREADLE_INPUT); ++i) {
    if (session.name(TREADLE_INPUT, i) == name) return session.type(TREADLE_INPUT, i);
  }
  return std::nullopt;
}

// As "x tensor(float)[1,n], sr tensor(int64)".
std::string inputs_text(const Session& session) {
  std::vector<std::string> inputs;
  for (size_t i = 0; i < session.count(TREADLE_INPUT); ++i) {
    inputs.push_back(fmt::format("{} {}", session.name(TREADLE_INPUT, i), session.type(TREADLE_INPUT, i).text()));
  }
  return fmt::format("{}", fmt::join(inputs, ", "));
}

// Counted from 0. An axis that the type does not have is left to the stream, whose error has the reason.
int64_t axis_of(const Type& type, const std::string& axis) {
  if (const std::optional<int64_t> number = number_in(axis)) {
    return *number < 0 && type.rank() > 0 ? *number + type.rank() : *number;
  }
  for (int64_t i = 0; i < type.rank(); ++i) {
    if (type.symbol(i) == axis) return i;
  }
  return 0;
}

// One channel of [channels, samples], or the mean of all.
Value one_channel(const Value& samples, const std::string& channel, const std::string& file) {
  const std::vector<int64_t> dims = samples.dims();
  if (dims.size() == 1) return samples;
  const std::optional<int64_t> chosen = number_in(channel);
  if (chosen && (*chosen < 0 || *chosen >= dims[0])) {
    throw InputError(fmt::format("{}: there is no channel {}: its {} channels count from 0", file, channel, dims[0]));
  }
  Value one = Value::tensor(1, {dims[1]});
  const auto* from = samples.data<float>();
  auto* to = one.mutable_data<float>();
  for (int64_t i = 0; i < dims[1]; ++i) {
    float sum = 0;
    for (int64_t c = 0; c < dims[0]; ++c) sum += !chosen || *chosen == c ? from[c * dims[1] + i] : 0.0F;
    to[i] = chosen ? sum : sum / static_cast<float>(dims[0]);
  }
  return one;
}

}  // namespace

void StreamFlags::add_roles(CLI::App& command) {
  command
      .add_option("--time", time,
                  "The axis of an input or output along which time runs, by number or by the name of its size")
      ->type_name("NAME=AXIS")
      ->allow_extra_args(false);
  command.add_option("--hop", hop, "Samples per run; 0: the model's own state along time is found and carried")
      ->check(zero_or_more())
      ->type_name("SAMPLES");
  command.add_option("--context", context, "Samples before those of a run that the run sees again")
      ->check(zero_or_more())
      ->type_name("SAMPLES");
  command.add_option("--push", push, "Samples per push, if not those of a run")
      ->check(above_zero())
      ->type_name("SAMPLES");
  command.add_option("--state", states, "A state and the output that is its next value, where they are not found")
      ->type_name("INPUT=OUTPUT")
      ->allow_extra_args(false);
}

void StreamFlags::add(CLI::App& command) {
  add_roles(command);
  command.add_option("--channel", channel, "Which channel of a wave file (from 0), or mean")->type_name("CHANNEL");
  command.add_option("--rate", rate, "Samples a second, where no wave file says so")
      ->check(above_zero())
      ->type_name("HERTZ");
}

bool StreamFlags::is_given() const {
  return !time.empty() || !states.empty() || hop > 0 || context > 0 || push > 0 || !channel.empty() || rate > 0;
}

int64_t StreamFlags::samples_per_push() const {
  if (push > 0) return push;
  if (hop > 0) return hop;
  throw UsageError(
      "how many samples does a push have? Give --hop for a run per so many samples, or --push for a model that takes a "
      "signal of any length");
}

std::vector<TimedInput> timed_inputs(const Session& session, const StreamFlags& flags) {
  std::vector<TimedInput> timed;
  for (const std::string& text : flags.time) {
    const auto [name, axis] = time_of(text);
    if (const std::optional<Type> type = input_type(session, name)) timed.push_back({name, axis_of(*type, axis)});
  }
  if (timed.empty() && flags.time.empty()) {
    throw UsageError(
        fmt::format("which axis of an input is time? Give --time NAME=AXIS (inputs: {})", inputs_text(session)));
  }
  if (timed.empty()) {
    throw UsageError(fmt::format("--time {} is no input of the model (inputs: {})", fmt::join(flags.time, ", "),
                                 inputs_text(session)));
  }
  return timed;
}

Value fit_signal(const Session& session, const TimedInput& input, const Value& samples, const std::string& channel,
                 const std::string& file) {
  if (!channel.empty() && channel != "mean" && !number_in(channel)) {
    throw UsageError(fmt::format("--channel takes a number from 0 or mean, not '{}'", channel));
  }
  const Type type = *input_type(session, input.name);
  const Value chosen = channel.empty() ? samples : one_channel(samples, channel, file);
  const std::vector<int64_t> found = chosen.dims();
  const int64_t channels = found.size() == 1 ? 1 : found[0], rank = std::max(type.rank(), input.axis + 1);
  if (channels > 1 && (input.axis < 1 || type.dim(input.axis - 1) != channels)) {
    throw InputError(
        fmt::format("{} has {} channels, and input '{}' is {}: choose one with --channel (from 0), or "
                    "--channel mean",
                    file, channels, input.name, type.text()));
  }
  std::vector<int64_t> dims(static_cast<size_t>(rank), 1);
  dims[static_cast<size_t>(input.axis)] = found.back();
  if (channels > 1) dims[static_cast<size_t>(input.axis) - 1] = channels;
  return reshaped(chosen, dims);
}

SignalFeeds read_signal(const Session& session, const StreamFlags& flags, const std::vector<std::string>& arguments) {
  const std::vector<TimedInput> timed = timed_inputs(session, flags);
  SignalFeeds given{.feeds = {}, .rate = flags.rate};
  std::vector<std::string> others;
  for (const std::string& argument : arguments) {
    const size_t equals = argument.find('=');
    const std::string name = equals == std::string::npos ? timed[0].name : argument.substr(0, equals);
    const std::string path = equals == std::string::npos ? argument : argument.substr(equals + 1);
    const auto input = std::find_if(timed.begin(), timed.end(), [&](const TimedInput& t) { return t.name == name; });
    if (!path.ends_with(".wav") || input == timed.end()) {
      others.push_back(argument);
      continue;
    }
    const Wave wave = read_wav(treadle::read_file(path), path);
    given.feeds.emplace_back(name, fit_signal(session, *input, wave.samples, flags.channel, path));
    if (given.rate == 0) given.rate = wave.rate;
  }
  given.feeds = read_feeds(session, others, std::move(given.feeds));
  return given;
}

namespace {

// Of a stream with these options; none if it cannot be opened, which is said later.
std::set<std::string> states_of(const Session& session, const treadle::StreamOptions& options) {
  std::set<std::string> found;
  try {
    for (const std::string& name : treadle::Stream(session, options).state_names()) found.insert(name);
  } catch (const treadle::Error&) {
    return found;
  }
  return found;
}

}  // namespace

treadle::StreamOptions stream_options(const Session& session, const StreamFlags& flags, SignalFeeds others) {
  treadle::StreamOptions options;
  for (const std::string& text : flags.time) {
    const auto [name, axis] = time_of(text);
    if (const std::optional<int64_t> number = number_in(axis)) {
      options.time(name, *number);
    } else {
      options.time(name, axis);
    }
  }
  std::set<std::string> states;
  for (const std::string& text : flags.states) {
    const auto [input, output] = parts_of(text, "--state", "INPUT=OUTPUT");
    options.state(input, output);
    states.insert(input);
  }
  options.hop(flags.hop, flags.context);
  if (!others.feeds.empty()) states.merge(states_of(session, options));
  for (const auto& [name, value] : others.feeds) {
    if (!states.contains(name)) {
      options.bind(name, value);
    } else if (others.named.empty() || others.named.contains(name)) {
      options.initial(name, value);
    }
  }
  return options;
}

SignalStream::SignalStream(const Session& session, const StreamFlags& flags, SignalFeeds given, bool is_piped)
    : session_(&session), timed_(timed_inputs(session, flags)), push_(flags.samples_per_push()), rate_(given.rate) {
  signal_.resize(timed_.size());
  sort(std::move(given), flags);
  for (size_t i = 0; i < timed_.size() && !is_piped; ++i) {
    if (signal_[i].get()) continue;
    throw InputError(fmt::format("input '{}' is missing: it is the signal; give {}=FILE (.wav, .npy)", timed_[i].name,
                                 timed_[i].name));
  }
}

void SignalStream::sort(SignalFeeds given, const StreamFlags& flags) {
  SignalFeeds others{.feeds = {}, .named = std::move(given.named)};
  for (treadle::Feed& feed : given.feeds) {
    const auto input =
        std::find_if(timed_.begin(), timed_.end(), [&](const TimedInput& t) { return t.name == feed.first; });
    if (input == timed_.end()) {
      others.feeds.push_back(std::move(feed));
    } else {
      take_signal(*input, feed.second);
    }
  }
  options_ = stream_options(*session_, flags, std::move(others));
}

void SignalStream::take_signal(const TimedInput& input, const Value& value) {
  const std::vector<int64_t> dims = value.dims();
  if (input.axis < 0 || input.axis >= static_cast<int64_t>(dims.size()) || value.element() == kString) {
    throw InputError(
        fmt::format("input '{}': {} has no axis {} of samples", input.name, value.type_text(), input.axis));
  }
  const int64_t samples = dims[static_cast<size_t>(input.axis)];
  if (samples_ > 0 && samples != samples_) {
    throw InputError(fmt::format("input '{}' has {} samples, another signal {}", input.name, samples, samples_));
  }
  if (samples == 0) throw InputError(fmt::format("input '{}' has no samples", input.name));
  samples_ = samples;
  signal_[static_cast<size_t>(&input - timed_.data())] = value;
}

// The inputs among `feeds` that a stream without their values takes for states. A model that cannot be streamed without
// them gets them all as values that stay the same.
Feeds SignalStream::piece(int64_t first, int64_t count) const {
  Feeds feeds;
  for (size_t i = 0; i < timed_.size(); ++i) {
    feeds.emplace_back(timed_[i].name, cut(signal_[i], timed_[i].axis, first, count));
  }
  return feeds;
}

Value cut(const Value& value, int64_t axis, int64_t first, int64_t count) {
  std::vector<int64_t> dims = value.dims();
  const auto at = static_cast<size_t>(axis);
  size_t rows = 1, bytes = treadle::element_width(value.element());
  for (size_t i = 0; i < at; ++i) rows *= static_cast<size_t>(dims[i]);
  for (size_t i = at + 1; i < dims.size(); ++i) bytes *= static_cast<size_t>(dims[i]);
  const auto size = static_cast<size_t>(dims[at]);
  dims[at] = count;
  Value part = Value::tensor(value.element(), dims);
  char* to = part.mutable_data<char>();
  for (size_t row = 0; row < rows; ++row) {
    const char* const from = value.data<char>() + row * size * bytes;
    for (size_t i = 0; i < static_cast<size_t>(count);) {
      const size_t begin = (static_cast<size_t>(first) + i) % size;
      const size_t run = std::min(size - begin, static_cast<size_t>(count) - i);
      if (bytes > 0) std::memcpy(to, from + begin * bytes, run * bytes);
      to += run * bytes;
      i += run;
    }
  }
  return part;
}

std::string real_time_text(const Latencies& latencies, double push_seconds) {
  return fmt::format("real time {:10.2f} %  of the {:.1f} ms of signal in a push\n",
                     latencies.percentile(50) / push_seconds * 100, push_seconds * 1e3);
}

}  // namespace cli
