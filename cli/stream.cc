// treadle stream.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "bar.h"
#include "common.h"
#include "joined_pushes.h"
#include "json.h"
#include "known_models.h"
#include "latencies.h"
#include "level_strip.h"
#include "out_files.h"
#include "print.h"
#include "signal_source.h"

namespace cli {

namespace {

using treadle::Feeds;
using treadle::Session;
using treadle::Value;

bool is_float(const Value& value) {
  constexpr int kFloat = 1, kHalf = 10, kDouble = 11;
  return value.get() && value.kind() == TREADLE_TENSOR &&
         (value.element() == kFloat || value.element() == kHalf || value.element() == kDouble);
}

// What a mark shows of a result: its only element, or the mean size of its elements.
double level_of(const Value& value) {
  const std::vector<double> numbers = value.to_doubles();
  if (numbers.size() == 1) return numbers[0];
  double sum = 0;
  for (const double number : numbers) sum += std::abs(number);
  return sum / static_cast<double>(numbers.size());
}

struct StreamCommand {
  Common common;
  std::string model, shown, raw = "s16";
  std::vector<std::string> values, files;
  StreamFlags flags;
  bool live = false;

  int operator()() {
    const CatchInterrupts here;
    const Session session = open_session(model, common);
    std::vector<std::string> arguments = values;
    if (const KnownModel* known = known_model(session)) follow(*known, session, arguments);
    const std::optional<TimedInput> piped = take_pipe(session, arguments);
    if (live && piped) throw UsageError("--live is for files: a pipe gives samples as they come");
    std::optional<SampledPipe> pipe;
    SignalFeeds given = read_signal(session, flags, arguments);
    if (piped) {
      pipe.emplace(WaveFormat{.rate = flags.rate, .bits = raw == "s16" ? 16 : 32, .is_float = raw == "f32"});
      given.rate = pipe->format().rate;
    }
    if (live && given.rate == 0) throw UsageError("--live needs the samples a second: --rate");
    const SignalStream signal(session, flags, std::move(given), piped.has_value());
    treadle::Stream stream = signal.open();
    const std::unique_ptr<SignalSource> source =
        piped ? piped_signal(session, signal, *piped, flags.channel, std::move(*pipe)) : whole_signal(signal, live);
    return push_all(stream, signal, *source, piped.has_value());
  }

 private:
  // Streams a known model as its recipe does where the command line says nothing of it, and tells what it leaves out.
  void follow(const KnownModel& known, const Session& session, std::vector<std::string>& arguments) {
    const std::vector<std::string> words = stream_arguments(known, session);
    if (words.empty()) return;
    StreamFlags recipe;
    std::vector<std::string> given;
    for (size_t i = 0; i < words.size(); ++i) {
      if (words[i] == "--time") {
        recipe.time.push_back(words[++i]);
      } else if (words[i] == "--hop") {
        recipe.hop = std::stoll(words[++i]);
      } else if (words[i] == "--context") {
        recipe.context = std::stoll(words[++i]);
      } else {
        given.push_back(words[i]);
      }
    }
    if (flags.time.empty() && flags.hop == 0 && flags.context == 0) {
      flags.time = recipe.time;
      flags.hop = recipe.hop;
      flags.context = recipe.context;
      for (const std::string& value : given) {
        const std::string name = value.substr(0, value.find('=') + 1);
        const bool has = std::ranges::any_of(arguments, [&](const std::string& a) { return a.starts_with(name); });
        if (!has) arguments.push_back(value);
      }
      fmt::print(stderr, "as the recipe of {}: {}\n", known.title, fmt::join(words, " "));
    } else if (recipe.context > 0 && flags.context == 0) {
      fmt::print(stderr, "without --context {} this is not what {} is made for\n", recipe.context, known.title);
    }
  }

  struct Times {
    std::vector<double> seconds;
    size_t late = 0;  // pushes that took longer than their samples
  };

  // Removes "-" or "NAME=-" from the arguments.
  std::optional<TimedInput> take_pipe(const Session& session, std::vector<std::string>& arguments) const {
    const std::vector<TimedInput> timed = timed_inputs(session, flags);
    const auto at = std::find_if(arguments.begin(), arguments.end(),
                                 [](const std::string& text) { return text == "-" || text.ends_with("=-"); });
    if (at == arguments.end()) return std::nullopt;
    if (model == "-") throw UsageError("standard input (-) is asked for twice, and gives its bytes once");
    const std::string name = *at == "-" ? timed[0].name : at->substr(0, at->size() - 2);
    for (const TimedInput& input : timed) {
      if (input.name != name) continue;
      arguments.erase(at);
      return input;
    }
    throw UsageError(fmt::format("{}: only an input with a time axis takes a pipe", *at));
  }

  int push_all(treadle::Stream& stream, const SignalStream& signal, SignalSource& source, bool piped) const {
    JoinedPushes joined(stream);
    const std::vector<OutFile> to = out_files(files, joined.names());
    const bool is_silent = takes_output(to, common.json) || common.json;
    if (!is_silent) fmt::print("{}", stream.text());
    warm(stream, signal);
    treadle::RunOptions options;
    watch(options);
    Times times;
    const bool keeps = !piped || !to.empty();  // a pipe may never end
    try {
      std::optional<LevelStrip> strip;
      if (!is_silent) strip.emplace(signal.push_seconds());
      for (Feeds piece; !interrupted() && !stream.done() && source.next(piece);) {
        const Stopwatch clock;
        std::vector<Value> results = stream.push(piece, &options);
        times.seconds.push_back(clock.seconds());
        times.late += signal.push_seconds() > 0 && times.seconds.back() > signal.push_seconds();
        if (strip) draw(*strip, results, joined.names());
        if (keeps) joined.add(std::move(results));
      }
      if (keeps && !interrupted() && !stream.done()) joined.add(stream.flush({}, &options));
    } catch (const treadle::Error&) {
      if (!interrupted()) throw;
    }
    for (const OutFile& file : to) write(file, joined);
    if (!is_silent || common.json) print(joined, signal, times);
    return interrupted() ? kInterrupted : kOk;
  }

  // So that no push has to plan and compile. A model may refuse the zeros that this runs on; its own signal still runs.
  static void warm(treadle::Stream& stream, const SignalStream& signal) {
    try {
      stream.warm({signal.push()});
    } catch (const treadle::Error&) {
      if (interrupted()) throw Interrupted("interrupted before the first push");
    }
  }

  void draw(LevelStrip& strip, const std::vector<Value>& results, const std::vector<std::string>& names) const {
    for (size_t i = 0; i < results.size(); ++i) {
      if (!shown.empty() && names[i] != shown) continue;
      if (!is_float(results[i]) || results[i].count() == 0) continue;
      strip.add(level_of(results[i]), results[i].count() == 1 ? 1 : 0);
      return;
    }
  }

  static void write(const OutFile& file, const JoinedPushes& joined) {
    const std::string& name = joined.names()[file.output];
    const Value value = joined.value(file.output);
    if (!value.get()) throw InputError(fmt::format("output '{}' has no value: no push made a run", name));
    write_output(file, name, value);
  }

  void print(const JoinedPushes& joined, const SignalStream& signal, const Times& times) const {
    if (common.json) {
      fmt::print("{}\n", json_of(joined, signal, times));
      return;
    }
    for (size_t i = 0; i < joined.names().size(); ++i) {
      const std::string line = line_of(joined, i);
      if (!line.empty()) fmt::print("{}  {}\n", bold(joined.names()[i]), line);
    }
    if (times.seconds.empty()) return;
    const Latencies latencies(times.seconds);
    fmt::print("{}", latencies.text("pushes"));
    if (signal.push_seconds() > 0) {
      fmt::print("{}late      {:>10} pushes took longer than their samples\n",
                 real_time_text(latencies, signal.push_seconds()), times.late);
    }
  }

  static std::string line_of(const JoinedPushes& joined, size_t output) {
    try {
      const Value value = joined.value(output);
      return value.get() ? summary(value) : "";
    } catch (const InputError&) {
      return "values of different sizes";
    }
  }

  static std::string json_of(const JoinedPushes& joined, const SignalStream& signal, const Times& times) {
    JsonObject json;
    json.integer("pushes", static_cast<long long>(times.seconds.size())).integer("samples_per_push", signal.push());
    if (!times.seconds.empty()) {
      const Latencies latencies(times.seconds);
      latencies.add_to(json);
      if (signal.push_seconds() > 0) {
        json.number("share_of_real_time", latencies.percentile(50) / signal.push_seconds());
        json.integer("late", static_cast<long long>(times.late));
      }
    }
    std::vector<std::string> items;
    for (size_t i = 0; i < joined.names().size(); ++i) {
      const Value value = joined.value(i);
      items.push_back(
          JsonObject().text("name", joined.names()[i]).raw("value", value.get() ? to_json(value) : "null").str());
    }
    return json.raw("outputs", json_array(items)).str();
  }
};

}  // namespace

void add_stream(CLI::App& app, int& status) {
  CLI::App& command = *app.add_subcommand("stream", "Push a signal through a model in pieces, as a stream");
  const auto stream = std::make_shared<StreamCommand>();
  command.add_option("model", stream->model, "The model; - is standard input")->required()->type_name("MODEL");
  command
      .add_option(
          "inputs", stream->values,
          "[NAME=]FILE: the signal (.wav, .npy), first values of states, values that stay the same; - is a pipe "
          "with a wave file or raw samples")
      ->type_name("VALUE");
  stream->flags.add(command);
  command.add_flag("--live", stream->live, "Push at the pace of the signal");
  command.add_option("--raw", stream->raw, "Raw samples of a pipe: s16 (16 bits) or f32 (floats), one channel")
      ->type_name("FORM")
      ->capture_default_str()
      ->check(one_of({"s16", "f32"}));
  command.add_option("--show", stream->shown, "The output to draw, a mark per push; by default the first of floats")
      ->type_name("NAME");
  command
      .add_option("--out", stream->files,
                  "Write an output of the whole signal to a .npy or .pb file; - is standard output, as .npy; may be "
                  "repeated")
      ->type_name("[NAME=]FILE")
      ->allow_extra_args(false);
  add_session(command, stream->common, {"program", "native", "reference"});
  add_json(command, stream->common);
  command.footer(
      "As in: treadle stream vad.onnx speech.wav sr=16000 --time input=1 --hop 512 --context 64. From a microphone: "
      "arecord -q -f S16_LE -r 16000 | treadle stream vad.onnx - ...");
  command.callback([stream, &status] { status = (*stream)(); });
}

}  // namespace cli
