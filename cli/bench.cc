// treadle bench.

#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "bar.h"
#include "common.h"
#include "in_python.h"
#include "inputs.h"
#include "json.h"
#include "latencies.h"
#include "signal_stream.h"
#include "temporary_folder.h"

namespace cli {

namespace {

using treadle::Feeds;
using treadle::RunOptions;
using treadle::Session;
using treadle::Stream;
using treadle::Value;

constexpr size_t kFewestTimes = 3, kMostTimes = 100000;  // of a caller

// One of several threads that use a session at the same time.
struct Caller {
  std::function<void()> step;  // a run or a push
  std::vector<double> seconds = {};
};

// Lets callers repeat their steps until the time is up or Ctrl-C comes.
class Repetition {
 public:
  Repetition(std::vector<Caller>& callers, double limit, Bar& bar) : callers_(callers), limit_(limit), bar_(bar) {}

  // Returns the seconds from the first step to the last.
  double run() {
    std::vector<std::thread> threads;
    for (size_t i = 1; i < callers_.size(); ++i) threads.emplace_back([this, i] { repeat(callers_[i]); });
    repeat(callers_[0]);
    for (std::thread& thread : threads) thread.join();
    if (failure_) std::rethrow_exception(failure_);
    return clock_.seconds();
  }

 private:
  void repeat(Caller& caller) {
    try {
      while (!is_over(caller)) {
        const Stopwatch one;
        caller.step();
        caller.seconds.push_back(one.seconds());
        ++steps_;
        if (&caller == callers_.data()) show();
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      has_failed_ = true;
    }
  }

  bool is_over(const Caller& caller) const {
    if (interrupted() || has_failed_) return true;
    const size_t made = caller.seconds.size();
    return made >= kFewestTimes && (clock_.seconds() >= limit_ || made >= kMostTimes);
  }

  void show() {
    const auto made = static_cast<double>(steps_);
    bar_.update(static_cast<int64_t>(made), static_cast<int64_t>(std::max(3.0, made * limit_ / clock_.seconds())));
  }

  std::vector<Caller>& callers_;
  const double limit_;
  Bar& bar_;
  Stopwatch clock_;
  std::atomic<size_t> steps_ = 0;
  std::atomic<bool> has_failed_ = false;
  std::mutex mutex_;
  std::exception_ptr failure_;
};

struct Bench : Inputs {
  double seconds = 2;
  size_t callers = 1;
  std::string other;  // an engine to compare with
  bool stream = false;
  StreamFlags flags;

  int operator()() const {
    if (!stream && flags.is_given()) throw UsageError("--time, --hop, --context, --state and --push need --stream");
    if (!other.empty()) return time_both();
    const CatchInterrupts here;
    const Stopwatch loading;
    const Session session = open_session(model, common);
    Results results{.load = loading.seconds()};
    try {
      if (stream) {
        time_pushes(session, results);
      } else {
        time_runs(session, results);
      }
    } catch (const treadle::Error&) {
      if (!interrupted()) throw;
    }
    if (interrupted()) throw Interrupted(fmt::format("interrupted after {} {}", results.times.size(), unit()));
    print(results);
    return kOk;
  }

 private:
  struct Results {
    double load = 0, first = 0, wall = 0;
    std::vector<double> times = {};
    double push_seconds = 0;  // of the signal in a push; 0: unknown
    RunOptions options = {};  // of the first run
  };

  // Python runs both engines in turns.
  int time_both() const {
    if (stream || callers > 1) throw UsageError("--with times runs of one caller: leave --stream and --callers out");
    const TemporaryFolder folder;
    std::vector<std::string> words = {model == "-" ? folder.add("model.onnx", read_input(model)) : model};
    size_t count = 0;
    for (const auto& [name, value] : feeds(open_session(words[0], common))) {
      words.push_back(fmt::format("--feed={}={}", name, folder.add(fmt::format("{}.pb", count++), value.to_pb(name))));
    }
    words.push_back(fmt::format("--seconds={}", seconds));
    words.push_back(fmt::format("--threads={}", common.threads));
    for (const std::string& text : common.options) words.push_back("--option=" + text);
    if (common.json) words.emplace_back("--json");
    return run_in_python("treadle._bench_with", words);
  }

  const char* unit() const { return stream ? "pushes" : "runs"; }

  void time_runs(const Session& session, Results& results) const {
    const Feeds fed = feeds(session);
    watch(results.options);
    results.options.count_iterations();
    std::vector<Value> first(session.count(TREADLE_OUTPUT));
    const Stopwatch first_run;
    session.run_into(fed, {}, first, &results.options);
    results.first = first_run.seconds();
    std::vector<Caller> made;
    for (size_t i = 0; i < callers; ++i) {
      const auto options = std::make_shared<RunOptions>();
      watch(*options);
      made.push_back({[&session, &fed, options] { session.run(fed, {}, options.get()); }});
    }
    repeat(made, results);
  }

  // Each caller has a stream of its own, which begins anew when the signal is over.
  void time_pushes(const Session& session, Results& results) const {
    const SignalStream streams = signal_stream(session);
    results.push_seconds = streams.push_seconds();
    watch(results.options);
    struct Position {
      Stream stream;
      std::vector<Value> outputs = {};
      int64_t next = 0;
    };
    std::vector<std::shared_ptr<Position>> positions;
    for (size_t i = 0; i < callers; ++i) {
      positions.push_back(std::make_shared<Position>(Position{streams.open()}));
    }
    const auto push = [&streams](Position& at, const RunOptions* options) {
      if (at.next + streams.push() > streams.samples() || at.stream.done()) {
        at.stream.reset();
        at.next = 0;
      }
      at.outputs = at.stream.push(streams.piece(at.next, streams.push()), options);
      at.next += streams.push();
    };
    const Stopwatch first_push;
    push(*positions[0], &results.options);
    results.first = first_push.seconds();
    std::vector<Caller> made;
    for (const std::shared_ptr<Position>& position : positions) {
      const auto options = std::make_shared<RunOptions>();
      watch(*options);
      made.push_back({[push, position, options] { push(*position, options.get()); }});
    }
    repeat(made, results);
  }

  SignalStream signal_stream(const Session& session) const {
    SignalFeeds given = read_signal(session, flags, values);
    if (random->count() > 0) draw_signal(session, given);
    return {session, flags, std::move(given)};
  }

  // Values that are drawn are no first values of states, which begin with zeros as in any stream.
  void draw_signal(const Session& session, SignalFeeds& given) const {
    for (const treadle::Feed& feed : given.feeds) given.named.insert(feed.first);
    given.feeds = with_drawn(session, std::move(given.feeds));
  }

  void repeat(std::vector<Caller>& made, Results& results) const {
    Bar bar(unit(), common.quiet || common.json);
    results.wall = Repetition(made, seconds, bar).run();
    for (const Caller& caller : made) {
      results.times.insert(results.times.end(), caller.seconds.begin(), caller.seconds.end());
    }
  }

  void print(const Results& results) const {
    const Latencies latencies(results.times);
    const double rate = static_cast<double>(latencies.count()) / results.wall;
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    if (common.json) {
      JsonObject json;
      json.number("load_s", results.load).number(stream ? "first_push_s" : "first_run_s", results.first);
      latencies.add_to(json);
      json.integer(unit(), static_cast<long long>(latencies.count()))
          .number(fmt::format("{}_per_second", unit()), rate);
      json.integer("callers", static_cast<long long>(callers));
      if (results.push_seconds > 0) json.number("share_of_real_time", latencies.percentile(50) / results.push_seconds);
      json.integer("peak_memory_bytes", usage.ru_maxrss * 1024LL);
      if (!stream) json.raw("iterations", results.options.iterations(true));
      fmt::print("{}\n", json.str());
      return;
    }
    fmt::print("load      {:10.3f} ms\n{:<10}{:10.3f} ms\n", results.load * 1e3, stream ? "first push" : "first run",
               results.first * 1e3);
    fmt::print("{}", latencies.text(callers == 1 ? unit() : fmt::format("{} by {} callers", unit(), callers)));
    fmt::print("throughput{:>10} {} a second\n", fmt::format("{:.{}f}", rate, rate < 100 ? 1 : 0), unit());
    if (results.push_seconds > 0) fmt::print("{}", real_time_text(latencies, results.push_seconds));
    fmt::print("memory    {:10.1f} MB at its peak\n", static_cast<double>(usage.ru_maxrss) / 1024);
    if (!stream) fmt::print("{}", loops_text(results.options));
  }
};

}  // namespace

void add_bench(CLI::App& app, int& status) {
  CLI::App& command = *app.add_subcommand("bench", "Time loading and running a model");
  const auto bench = std::make_shared<Bench>();
  bench->add(command);
  command.add_option("--seconds", bench->seconds, "For how long to repeat")
      ->capture_default_str()
      ->check(zero_or_more());
  command.add_option("--callers", bench->callers, "Threads that run the session at the same time")
      ->capture_default_str()
      ->check(from_to(1, 1024));
  command.add_flag("--stream", bench->stream,
                   "Time pushes of a stream rather than runs; takes the options of `stream`");
  bench->flags.add(command);
  command.add_option("--with", bench->other, "Run another engine in turns with treadle, and give the ratio")
      ->type_name("ENGINE")
      ->check(one_of({"onnxruntime"}));
  add_quiet(command, bench->common);
  command.callback([bench, &status] { status = (*bench)(); });
}

}  // namespace cli
