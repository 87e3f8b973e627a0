// treadle explain, treadle profile.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "common.h"
#include "inputs.h"
#include "json.h"
#include "known_models.h"
#include "terminal.h"

namespace cli {

namespace {

using treadle::Feeds;
using treadle::Session;

struct Explain : Inputs {
  bool rewritten = false;

  int operator()() const {
    const Session session = open_session(model, common);
    Feeds fed;
    if (!values.empty() || random->count() > 0) {
      fed = feeds(session);
      session.run(fed);
      session.compile();
    }
    if (common.json) {
      fmt::print("{}\n", session.explain(fed, true));
      return kOk;
    }
    const unsigned flags = (rewritten ? TREADLE_EXPLAIN_ALL : 0U) | (shows_utf8() ? 0U : TREADLE_EXPLAIN_ASCII);
    print_lines(session.explain_text(fed, flags, terminal_width(STDOUT_FILENO, 100)));
    if (const KnownModel* known = known_model(session)) print_recipe(*known, session);
    return kOk;
  }

 private:
  static void print_recipe(const KnownModel& known, const Session& session) {
    fmt::print("\nlooks like {}\n  in Python    treadle.recipes.open(\"{}\")\n", known.title, known.recipe);
    const std::vector<std::string> arguments = stream_arguments(known, session);
    if (!arguments.empty()) fmt::print("  as a stream  treadle stream MODEL x.wav {}\n", fmt::join(arguments, " "));
  }
};

struct Profile : Inputs {
  std::string trace;
  size_t runs = 10;

  int operator()() const {
    if (trace == "-" && common.json) throw UsageError("--out - and --json both take standard output");
    const Session session = open_session(model, common);
    const treadle::Profile profile = session.profile(feeds(session), runs);
    if (!trace.empty()) write_file(trace, profile.trace());
    if (trace == "-") return kOk;
    print_lines(common.json
                    ? profile.json() + "\n"
                    : profile.table(shows_utf8() ? 0U : TREADLE_EXPLAIN_ASCII, terminal_width(STDOUT_FILENO, 100)));
    return kOk;
  }
};

}  // namespace

void add_explain(CLI::App& app, int& status) {
  CLI::App& command = *app.add_subcommand(
      "explain",
      "What became of a model's loops: rewrites, tier, what stands in the way of more, what an iteration takes");
  const auto explain = std::make_shared<Explain>();
  explain->add(command);
  command.add_flag("--rewritten", explain->rewritten, "List all that was rewritten, and every list in full");
  command.footer("Without inputs, what the model says of them is planned for. With inputs it is run once.");
  command.callback([explain, &status] { status = (*explain)(); });
}

void add_profile(CLI::App& app, int& status) {
  CLI::App& command = *app.add_subcommand("profile", "Time every node, in loops every iteration");
  const auto profile = std::make_shared<Profile>();
  profile->add(command);
  command
      .add_option("--out", profile->trace,
                  "Write a trace here that Perfetto (ui.perfetto.dev) and browsers show; - is standard output")
      ->type_name("FILE");
  command.add_option("--runs", profile->runs, "Runs to record, after one to warm up; told is each node's median")
      ->capture_default_str()
      ->check(from_to(1, 1000000));
  command.callback([profile, &status] { status = (*profile)(); });
}

}  // namespace cli
