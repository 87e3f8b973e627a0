// treadle reduce: the smallest model for which a command still fails.

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>

#include "bar.h"
#include "common.h"
#include "json.h"
#include "loads.h"
#include "process.h"
#include "temporary_folder.h"
#include "text.h"

namespace cli {

namespace {

namespace fs = std::filesystem;

// A file that is gone when the object is.
class ScratchFile {
 public:
  ScratchFile(fs::path path, std::string_view bytes) : path_(std::move(path)) { write_file(path_.string(), bytes); }
  ~ScratchFile() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

std::string grouped(size_t number) {
  std::string digits = std::to_string(number);
  for (size_t i = digits.size(); i > 3;) digits.insert(i -= 3, ",");
  return digits;
}

std::string size_text(size_t bytes) {
  if (bytes < 10'000) return grouped(bytes);
  return bytes < 10'000'000 ? fmt::format("{} kB", grouped(bytes / 1000))
                            : fmt::format("{} MB", grouped(bytes / 1'000'000));
}

struct Reduce {
  static constexpr double kLongest = 600;              // seconds that the first run may take
  static constexpr double kShortest = 2, kTimes = 10;  // seconds that others may take, and times as long as the first

  Common common;
  std::string model, command, out, matches;
  double timeout = 0;  // 0: by the time of the first run
  size_t attempts = 1000, jobs = 1;
  bool may_not_load = false;  // candidates that treadle does not open are kept, too

  int operator()() {
    if (model == "-") throw UsageError("the model must be a file: the command is run on it");
    const CatchInterrupts catching(CatchInterrupts::Which::kAll);
    const bool is_given = timeout > 0;
    if (!is_given) timeout = kLongest;
    const Ending first = run_on(model);
    if (!is_given && first.kind != Ending::kTimeout) timeout = std::max(kShortest, kTimes * first.seconds);
    if (first.kind == Ending::kCtrlC) throw Interrupted("interrupted before the command had ended");
    check_first(first);
    may_not_load = may_not_load || !loads(model, timeout);
    return Search(*this, first).run();
  }

  Ending run_on(const std::string& path) const {
    const std::string word = shell_word(path);
    std::string text = command;
    bool has_place = false;
    for (size_t at = text.find("{}"); at != std::string::npos; at = text.find("{}", at + word.size())) {
      text.replace(at, 2, word);
      has_place = true;
    }
    if (!has_place) text += " " + word;
    return run_command(text, matches, timeout);
  }

  // A command whose output has the wanted text may succeed.
  void check_first(const Ending& first) const {
    if (first.is_success() && matches.empty()) {
      throw UsageError(fmt::format("the command succeeds on {}: nothing to keep", model));
    }
    if (!first.said) {
      throw UsageError(fmt::format("the command ends with {} on {}, but its output does not have '{}'",
                                   to_string(first, timeout), model, matches));
    }
  }

  class Search {
   public:
    Search(const Reduce& asked, const Ending& first)
        : asked_(asked), first_(first), bar_("attempts", asked.common.quiet || asked.common.json) {}

    int run() {
      say_what_is_kept();
      const std::string reduced = treadle::reduce_model(
          asked_.model,
          [this](std::string_view bytes, const treadle_reduction& so_far) { return judge(bytes, so_far); },
          asked_.attempts, asked_.jobs);
      bar_.clear();
      if (problem_) std::rethrow_exception(problem_);
      write(reduced);
      report(sizes_of(reduced));
      if (!interrupted()) return kOk;
      throw Interrupted(
          fmt::format("interrupted after {} attempts; the smallest model so far is in {}", grouped(attempts_), out()));
    }

   private:
    std::string out() const {
      return asked_.out.empty() ? fs::path(asked_.model).stem().string() + ".small.onnx" : asked_.out;
    }
    void say_what_is_kept() const {
      if (asked_.common.json || asked_.common.quiet) return;
      const std::string text = asked_.matches.empty() ? "" : fmt::format(" and '{}' in the output", asked_.matches);
      fmt::print(stderr, "keeping: {}{}{}", to_string(first_, asked_.timeout), text,
                 asked_.may_not_load ? "" : ", of models that load");
      if (text.empty() && !first_.last_line.empty()) {
        fmt::print(stderr, "; the output ends: {}", message_for_people(first_.last_line));
      }
      fmt::print(stderr, "\n");
    }

    // Called from several threads.
    treadle_verdict judge(std::string_view bytes, const treadle_reduction& so_far) noexcept {
      try {
        show(so_far);
        if (interrupted()) return TREADLE_STOP;
        const ScratchFile file(place_of(so_far), bytes);
        const Ending ending = asked_.run_on(file.path());
        if (ending.kind == Ending::kCtrlC) return TREADLE_STOP;
        const bool fails = ending.said && ending.is_like(first_) && (so_far.attempts == 1 || may_be_kept(file.path()));
        if (!fails && so_far.attempts == 1) check_copy(ending);
        return fails ? TREADLE_FAILS : TREADLE_PASSES;
      } catch (...) {
        const std::lock_guard lock(mutex_);
        problem_ = std::current_exception();
        return TREADLE_STOP;
      }
    }
    bool may_be_kept(const std::string& path) const { return asked_.may_not_load || loads(path, asked_.timeout); }
    void check_copy(const Ending& ending) const {
      throw InputError(fmt::format("the command ends with {} on {}, but with {} on a copy of it under another name{}",
                                   to_string(first_, asked_.timeout), asked_.model, to_string(ending, asked_.timeout),
                                   ending.last_line.empty() ? "" : "; the output ends: " + ending.last_line));
    }
    void show(const treadle_reduction& so_far) {
      const std::lock_guard lock(mutex_);
      if (so_far.attempts == 1) before_ = so_far;
      attempts_ = std::max(attempts_, so_far.attempts);
      bar_.update(static_cast<int64_t>(attempts_), static_cast<int64_t>(asked_.attempts),
                  fmt::format("{} nodes, {} bytes: {}", grouped(so_far.nodes), size_text(so_far.bytes), so_far.step));
    }
    // Data in other files is found in the folder of the model alone.
    fs::path place_of(const treadle_reduction& so_far) {
      const size_t number = ++files_;
      if (so_far.data_tensors == 0) return fs::path(scratch_.path()) / fmt::format("candidate-{}.onnx", number);
      return fs::path(asked_.model).parent_path() / fmt::format(".treadle-reduce-{}-{}.onnx", getpid(), number);
    }

    static treadle_reduction sizes_of(const std::string& bytes) {
      treadle_reduction sizes = {};
      treadle::reduce_model(
          treadle::ModelFile::bytes(bytes),
          [&](std::string_view, const treadle_reduction& found) {
            sizes = found;
            return TREADLE_PASSES;
          },
          1);
      return sizes;
    }

    void write(const std::string& reduced) const {
      write_file(out(), out().ends_with(".onnxtxt") ? model_text(reduced, out(), -1) : reduced);
    }

    void report(const treadle_reduction& after) const {
      if (asked_.common.json) {
        const auto sizes = [](const treadle_reduction& of) {
          return JsonObject()
              .integer("nodes", static_cast<long long>(of.nodes))
              .integer("bodies", static_cast<long long>(of.bodies))
              .integer("bytes", static_cast<long long>(of.bytes))
              .str();
        };
        fmt::print("{}\n", JsonObject()
                               .text("out", out())
                               .text("kept", to_string(first_, asked_.timeout))
                               .raw("before", sizes(before_))
                               .raw("after", sizes(after))
                               .integer("attempts", static_cast<long long>(attempts_))
                               .number("seconds", watch_.seconds())
                               .str());
        return;
      }
      fmt::print("nodes {} -> {}, bodies {} -> {}, bytes {} -> {}, {} attempts in {:.1f} s: {}\n",
                 grouped(before_.nodes), grouped(after.nodes), grouped(before_.bodies), grouped(after.bodies),
                 size_text(before_.bytes), size_text(after.bytes), grouped(attempts_), watch_.seconds(), out());
      if (after.data_tensors > 0) {
        fmt::print("{} tensors have their data in files of the model's folder, where {} has to lie\n",
                   grouped(after.data_tensors), out());
      }
    }

    const Reduce& asked_;
    const Ending& first_;
    const TemporaryFolder scratch_;
    const Stopwatch watch_;
    std::atomic<size_t> files_{0};
    std::mutex mutex_;
    Bar bar_;
    treadle_reduction before_ = {};
    size_t attempts_ = 0;
    std::exception_ptr problem_;
  };
};

}  // namespace

void add_reduce(CLI::App& app, int& status) {
  CLI::App& command = *app.add_subcommand("reduce", "Find the smallest model for which a command still fails");
  const auto reduce = std::make_shared<Reduce>();
  command.add_option("model", reduce->model, "The model, binary or text")->required()->type_name("MODEL");
  command
      .add_option("--keep", reduce->command,
                  "A shell command that fails on the model; {} stands for the path of a model, which is else put at "
                  "the end")
      ->required()
      ->type_name("COMMAND");
  command.add_option("-o,--out", reduce->out, "Where the small model goes; else NAME.small.onnx in the working folder")
      ->type_name("FILE");
  command
      .add_option(
          "--matches", reduce->matches,
          "A text that the command's output has to have, too; then the command need not fail. Most failures of a "
          "command have one exit status, so give a part of the message")
      ->type_name("TEXT");
  command
      .add_option("--timeout", reduce->timeout,
                  "After so many seconds the command is ended; else after 10 times what it took at first, 2 at least")
      ->type_name("SECONDS")
      ->check(above_zero());
  command.add_flag("--may-not-load", reduce->may_not_load,
                   "Keep models that treadle does not open, too; without it none is kept if MODEL opens");
  command.add_option("--attempts", reduce->attempts, "How often the command runs at most; default: 1000")
      ->type_name("COUNT")
      ->check(above_zero());
  command.add_option("--jobs", reduce->jobs, "How many commands run at once; the result does not depend on it")
      ->type_name("COUNT")
      ->check(from_to(1, 256));
  add_json(command, reduce->common);
  add_quiet(command, reduce->common);
  command.footer(
      "Keeps what ends as at first: with the same exit status, by the same signal, or not within the time. If MODEL "
      "opens in treadle, so does each model that is kept. Ctrl-C ends the search; the smallest model so far is "
      "written.");
  command.callback([reduce, &status] { status = (*reduce)(); });
}

}  // namespace cli
