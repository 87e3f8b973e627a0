// treadle run.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "bar.h"
#include "common.h"
#include "inputs.h"
#include "json.h"
#include "look.h"
#include "out_files.h"
#include "print.h"

namespace cli {

namespace {

using treadle::Feeds;
using treadle::Session;
using treadle::Value;

struct Run : Inputs {
  std::vector<std::string> outputs;
  std::vector<std::string> files;
  std::string dump;
  double time_limit = 0;
  int64_t iteration_limit = 0;
  size_t memory_limit = 0;
  bool dump_plan = false;
  Look look;

  int operator()() const {
    const CatchInterrupts here;
    if (look.wanted()) return look_into();
    if (look.every != 1) throw UsageError("--every is for --statistics and --values");
    const Session session = open_session(model, common, dump);
    const Feeds fed = feeds(session);
    if (!dump.empty()) {
      session.dump_plan(fed);
      print_lines(session.dump_graph());
      return kOk;
    }
    if (dump_plan) {
      print_lines(session.dump_plan(fed));
      return kOk;
    }
    std::vector<std::string> names = outputs;
    for (size_t i = 0; outputs.empty() && i < session.count(TREADLE_OUTPUT); ++i) {
      names.push_back(session.name(TREADLE_OUTPUT, i));
    }
    const std::vector<OutFile> to = out_files(files, names);
    const bool is_taken = takes_output(to, common.json);
    double seconds = 0;
    treadle::RunOptions options;
    const std::vector<Value> results = run_watched(session, fed, options, seconds);
    for (const OutFile& file : to) write_output(file, names[file.output], results[file.output]);
    if (is_taken) return kOk;
    std::vector<std::string> items;
    for (size_t i = 0; i < results.size(); ++i) {
      if (common.json) {
        items.push_back(JsonObject().text("name", names[i]).raw("value", to_json(results[i])).str());
      } else {
        fmt::print("{}  {}\n", bold(names[i]), summary(results[i]));
      }
    }
    if (common.json) {
      fmt::print("{}\n", JsonObject()
                             .number("seconds", seconds)
                             .raw("outputs", json_array(items))
                             .raw("iterations", options.iterations(true))
                             .str());
    } else {
      fmt::print("{}{}\n", loops_text(options), dim(fmt::format("{:.3f} ms", seconds * 1e3)));
    }
    return kOk;
  }

  int look_into() const {
    Run as_written = *this;
    look.prepare(as_written.common);
    const Session session = open_session(model, as_written.common);
    treadle::RunOptions options;
    set_limits(options);
    Bar bar("iterations", common.quiet || common.json);
    watch(options, &bar);
    try {
      return look.run(session, feeds(session), options, common.json);
    } catch (const treadle::Error&) {
      if (interrupted()) throw Interrupted("interrupted after " + bar.where());
      throw;
    }
  }

  void set_limits(treadle::RunOptions& options) const {
    options.limit_time(time_limit);
    options.limit_iterations(iteration_limit);
    options.limit_memory(memory_limit);
  }

  std::vector<Value> run_watched(const Session& session, const Feeds& fed, treadle::RunOptions& options,
                                 double& seconds) const {
    Bar bar("iterations", common.quiet || common.json);
    options.count_iterations();
    set_limits(options);
    watch(options, &bar);
    try {
      const Stopwatch watch;
      std::vector<Value> results = session.run(fed, outputs, &options);
      seconds = watch.seconds();
      return results;
    } catch (const treadle::Error&) {
      if (interrupted()) throw Interrupted("interrupted after " + bar.where());
      throw;
    }
  }
};

}  // namespace

void add_run(CLI::App& app, int& status) {
  CLI::App& command = *app.add_subcommand("run", "Run a model; --find, --statistics and --values look inside the run");
  const auto run = std::make_shared<Run>();
  run->add(command);
  command.add_option("--output", run->outputs, "Compute this output only; may be repeated")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command
      .add_option("--out", run->files,
                  "Write an output to a .npy or .pb file; - is standard output, as .npy; may be repeated")
      ->type_name("[NAME=]FILE")
      ->allow_extra_args(false);
  command.add_option("--time-limit", run->time_limit, "Stop after this many seconds")
      ->type_name("SECONDS")
      ->check(above_zero());
  command.add_option("--iteration-limit", run->iteration_limit, "Stop after this many iterations of all loops")
      ->type_name("COUNT")
      ->check(above_zero());
  command.add_option("--memory-limit", run->memory_limit, "Bytes that the run may use")
      ->type_name("BYTES")
      ->check(above_zero());
  CLI::Option* plan = command.add_flag("--plan", run->dump_plan, "Print the program that would run, and run nothing");
  CLI::Option* dump =
      command.add_option("--dump", run->dump,
                         "Print the graph as it is behind this rewrite (changes: what each rewrite did and took), and "
                         "run nothing");
  std::vector<std::string> dumps = treadle::pass_names();
  dumps.emplace_back("changes");
  dump->type_name("PASS")->check(one_of(dumps))->excludes(plan);
  run->look.add(command);
  for (const char* look : {"--find", "--statistics", "--values"}) {
    for (const char* other : {"--output", "--out", "--plan", "--dump"}) command.get_option(look)->excludes(other);
  }
  for (const char* of_runs : {"--output", "--out", "--time-limit", "--iteration-limit", "--memory-limit", "--json"}) {
    plan->excludes(of_runs);
    dump->excludes(of_runs);
  }
  add_quiet(command, run->common);
  command.callback([run, &status] { status = (*run)(); });
}

}  // namespace cli
