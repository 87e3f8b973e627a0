// Runs and pushes that are said to keep real time, under LLVM's sanitizer for real time: a request for memory, a lock
// or a call that may wait ends the process with its stack.
//
//   treadle_realtime_tests FOLDER...
//
// Each folder below with model.onnx and test_data_set_0 is a case. It is run with outputs handed in; and each axis of
// its inputs along which the model can be streamed is pushed, and then stepped with bound arguments, as are models that
// are streamed step by step. The program prints what failed, how many runs and pushes may not keep real time by their
// own word, and a summary. One process a case, so that none ends the others.

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "treadle/treadle.hpp"

extern "C" {
void __rtsan_init(void);            // NOLINT(bugprone-reserved-identifier): the sanitizer's names
void __rtsan_realtime_enter(void);  // NOLINT(bugprone-reserved-identifier)
void __rtsan_realtime_exit(void);   // NOLINT(bugprone-reserved-identifier)
}

namespace {

namespace fs = std::filesystem;

constexpr int kBefore = 12;  // runs, or pushes, before those that are watched: the memory of results, begun streams
constexpr int kWatched = 20;
constexpr int kStreams = 6;     // the most streams of a case
constexpr int64_t kChunk = 16;  // samples of a push

// How a process ends; another status is the sanitizer's.
enum Ending : int { kKeeps = 0, kSaysNo = 10, kNotRun = 11, kNoStream = 12 };

// The arguments of a call: what it takes, and handles of its results, which later calls write in place.
class Call {
 public:
  Call(const treadle::Feeds& feeds, size_t outputs) : outputs_(outputs, nullptr) {
    for (const auto& [name, value] : feeds) {
      names_.push_back(name.c_str());
      values_.push_back(value.get());
    }
  }
  // `make(names, values, count, outputs)` returns a status.
  template <class Make>
  void repeat(int times, Make&& make) {
    for (int i = 0; i < times; ++i) treadle::check(make(names_.data(), values_.data(), names_.size(), outputs_.data()));
  }
  // Under the sanitizer.
  template <class Make>
  Ending watch(Make&& make) {
    treadle_status* status = nullptr;
    for (int i = 0; i < kWatched && !status; ++i) {
      __rtsan_realtime_enter();
      status = make(names_.data(), values_.data(), names_.size(), outputs_.data());
      __rtsan_realtime_exit();
    }
    treadle::check(status);
    return kKeeps;
  }

 private:
  std::vector<const char*> names_;
  std::vector<const treadle_value*> values_;
  std::vector<treadle_value*> outputs_;
};

class Case {
 public:
  explicit Case(const fs::path& folder) : session_((folder / "model.onnx").string(), settings()) {
    for (size_t i = 0; i < session_.count(TREADLE_INPUT); ++i) {
      const fs::path file = folder / "test_data_set_0" / fmt::format("input_{}.pb", i);
      if (!fs::exists(file)) break;
      const treadle::Type type = session_.type(TREADLE_INPUT, i);
      feeds_.emplace_back(session_.name(TREADLE_INPUT, i), treadle::Value::from_pb_file(file.string(), type.get()));
    }
  }

  Ending run() {
    Call call(feeds_, session_.count(TREADLE_OUTPUT));
    const auto run = [&](auto names, auto values, size_t count, auto outputs) {
      return treadle_session_run(session_.get(), nullptr, names, values, count, nullptr, 0, outputs);
    };
    call.repeat(kBefore, run);
    say(session_.breaks_realtime(feeds_));
    call.watch(run);
    treadle_bound* bound = nullptr;
    call.repeat(1, [&](auto names, auto values, size_t count, auto outputs) {
      return treadle_session_bind(session_.get(), nullptr, names, values, count, nullptr, 0, outputs, &bound);
    });
    const auto run_bound = [&](auto, auto, size_t, auto) { return treadle_bound_run(bound); };
    call.repeat(kBefore, run_bound);
    return call.watch(run_bound);
  }

  // Axes along which inputs have more than one element, with these inputs; and, first, none.
  std::vector<std::map<std::string, int64_t>> times() const {
    std::vector<std::map<std::string, int64_t>> found(1);
    std::set<std::pair<int64_t, int64_t>> seen;  // axis and length
    for (const auto& [name, value] : feeds_) {
      if (value.kind() != TREADLE_TENSOR) continue;
      const std::vector<int64_t> dims = value.dims();
      for (size_t axis = 0; axis < dims.size(); ++axis) {
        const auto along = static_cast<int64_t>(axis);
        if (dims[axis] < 2 || !seen.insert({along, dims[axis]}).second) continue;
        std::map<std::string, int64_t> time;
        for (const auto& [other, its] : feeds_) {
          if (its.kind() == TREADLE_TENSOR && its.dims().size() > axis && its.dims()[axis] == dims[axis])
            time[other] = along;
        }
        found.push_back(time);
      }
    }
    if (found.size() > kStreams) found.resize(kStreams);
    return found;
  }

  Ending push(const std::map<std::string, int64_t>& time) {
    treadle::StreamOptions options;
    for (const auto& [name, axis] : time) options.time(name, axis);
    std::optional<treadle::Stream> stream;
    try {
      stream.emplace(session_, options);
    } catch (const treadle::Error&) {
      return kNoStream;
    }
    const std::vector<std::string> states = stream->state_names();
    if (time.empty() && states.empty()) return kNoStream;
    treadle::Feeds chunk;
    for (const auto& [name, value] : feeds_) {
      if (std::find(states.begin(), states.end(), name) != states.end()) continue;
      const auto axis = time.find(name);
      chunk.emplace_back(name, axis == time.end() ? value : piece(value, static_cast<size_t>(axis->second)));
    }
    Call call(chunk, stream->output_names().size());
    const auto push = [&](auto names, auto values, size_t count, auto outputs) {
      return treadle_stream_push(stream->get(), nullptr, names, values, count, outputs, nullptr);
    };
    if (!time.empty()) stream->warm({kChunk});
    call.repeat(kBefore, push);
    say(stream->breaks_realtime(kChunk));
    call.watch(push);
    const auto step = [&](auto, auto, size_t, auto) { return treadle_stream_step(stream->get()); };
    call.repeat(1, [&](auto names, auto values, size_t count, auto outputs) {
      return treadle_stream_bind(stream->get(), nullptr, names, values, count, outputs);
    });
    call.repeat(kBefore, step);
    return call.watch(step);
  }

 private:
  static treadle::SessionOptions settings() {
    treadle::SessionOptions options;
    // Mapped weights break real time: each run asks the system about their file.
    options.set("threads", "1").set("jit", "always").set("weight_files", "copy");
    return options;
  }

  // As many samples as a push has, of what the value begins with.
  static treadle::Value piece(const treadle::Value& value, size_t axis) {
    std::vector<int64_t> dims = value.dims();
    const int64_t whole = dims[axis];
    dims[axis] = kChunk;
    treadle::Value made = treadle::Value::tensor(value.element(), dims);
    size_t outer = 1;
    for (size_t i = 0; i < axis; ++i) outer *= static_cast<size_t>(dims[i]);
    const size_t from_bytes = value.bytes() / std::max<size_t>(outer, 1),
                 to_bytes = made.bytes() / std::max<size_t>(outer, 1);
    const size_t sample = from_bytes / static_cast<size_t>(whole);
    for (size_t o = 0; o < outer; ++o) {
      for (size_t i = 0; i < static_cast<size_t>(kChunk); ++i) {
        std::memcpy(static_cast<char*>(treadle_tensor_mutable_data(made.get())) + o * to_bytes + i * sample,
                    static_cast<const char*>(treadle_tensor_data(value.get())) + o * from_bytes +
                        i % static_cast<size_t>(whole) * sample,
                    sample);
      }
    }
    return made;
  }

  // Ends the process where it is said that real time is not kept.
  static void say(const std::string& why) {
    if (why.empty()) return;
    fmt::print("{}\n", why);
    std::fflush(stdout);
    _exit(kSaysNo);
  }

  treadle::Session session_;
  treadle::Feeds feeds_;
};

struct Outcome {
  int ending = kNotRun;
  std::string said;  // what the process printed
};

// `part` in a process of its own.
template <class Part>
Outcome apart(Part&& part) {
  std::fflush(stdout);
  FILE* const log = std::tmpfile();
  const pid_t child = fork();
  if (child == 0) {
    dup2(fileno(log), STDOUT_FILENO);
    dup2(fileno(log), STDERR_FILENO);
    __rtsan_init();
    int ending = kNotRun;
    try {
      ending = part();
    } catch (const treadle::Error& problem) {
      fmt::print("{}\n", problem.what());
    }
    std::fflush(stdout);
    _exit(ending);
  }
  int status = 0;
  waitpid(child, &status, 0);
  Outcome outcome{WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), {}};
  std::rewind(log);
  char text[4096];
  for (size_t n = 0; (n = std::fread(text, 1, sizeof text, log)) > 0;) outcome.said.append(text, n);
  std::fclose(log);
  return outcome;
}

struct Tally {
  int kept = 0, failed = 0, refused = 0, not_run = 0;

  void count(const std::string& name, const Outcome& outcome) {
    if (outcome.ending == kKeeps) return void(++kept);
    if (outcome.ending == kSaysNo) return void(++refused);
    if (outcome.ending == kNoStream) return;
    if (outcome.ending == kNotRun) return void(++not_run);
    ++failed;
    fmt::print("{}: said to keep real time, but (status {})\n{}\n", name, outcome.ending, outcome.said);
  }
};

std::vector<fs::path> cases_in(int count, char** folders) {
  std::set<fs::path> found;
  for (int i = 0; i < count; ++i) {
    for (const auto& entry : fs::recursive_directory_iterator(folders[i])) {
      if (entry.path().filename() == "model.onnx") found.insert(entry.path().parent_path());
    }
  }
  return {found.begin(), found.end()};
}

}  // namespace

int main(int argc, char** argv) {
  Tally runs, pushes;
  for (const fs::path& folder : cases_in(argc - 1, argv + 1)) {
    const std::string name = folder.filename().string();
    runs.count(name, apart([&] { return Case(folder).run(); }));
    const Outcome streams = apart([&] { return static_cast<int>(Case(folder).times().size()); });
    for (int i = 0; i < streams.ending && streams.ending <= kStreams; ++i) {
      pushes.count(fmt::format("{}, stream {}", name, i), apart([&] {
                     Case one(folder);
                     return one.push(one.times()[static_cast<size_t>(i)]);
                   }));
    }
  }
  fmt::print("runs: {} keep real time, {} do not and say so\n", runs.kept, runs.refused);
  fmt::print("pushes: {} keep real time, {} do not and say so\n", pushes.kept, pushes.refused);
  const int failed = runs.failed + pushes.failed;
  fmt::print("{} passed, {} failed, {} skipped\n", runs.kept + runs.refused + pushes.kept + pushes.refused, failed,
             runs.not_run + pushes.not_run);
  return failed == 0 && runs.kept > 0 ? 0 : 1;
}
