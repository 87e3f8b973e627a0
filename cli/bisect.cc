// treadle bisect: which rewrite makes a result wrong.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "bar.h"
#include "compare.h"
#include "inputs.h"
#include "json.h"

namespace cli {

namespace {

using treadle::Feeds;
using treadle::Session;
using treadle::Value;

struct Bisect : Inputs {
  Tolerance tolerance;

  int operator()() const {
    Common by_reference = common;
    by_reference.tier = "reference";
    by_reference.without.clear();
    by_reference.weights.clear();
    const Session interpreter = open_session(model, by_reference);
    const Feeds fed = feeds(interpreter);
    const Reference reference{interpreter, fed, interpreter.run(fed)};
    const std::vector<std::string> passes = treadle::pass_names();
    const std::string problem = problem_with(reference, passes, passes.size());
    if (problem.empty()) return report("", "", "");
    if (!problem_with(reference, passes, 0).empty()) return report("", problem, "with all rewrites switched off, too");
    // With the first `right` rewrites the result is right, with the first `wrong` of them it is not.
    size_t right = 0, wrong = passes.size();
    Bar bar("rewrites", common.quiet || common.json);
    while (wrong - right > 1) {
      const size_t middle = right + (wrong - right) / 2;
      bar.update(static_cast<int64_t>(passes.size() - (wrong - right)), static_cast<int64_t>(passes.size()));
      (problem_with(reference, passes, middle).empty() ? right : wrong) = middle;
    }
    bar.clear();
    Common alone = common;
    alone.without.push_back(passes[right]);
    const bool is_enough = difference(reference, alone).empty();
    return report(passes[right], problem,
                  is_enough ? "right with it alone switched off" : "wrong with it alone switched off, too");
  }

 private:
  struct Reference {
    const Session& interpreter;
    const Feeds& fed;
    std::vector<Value> results;
  };

  // With the first `count` rewrites; empty: none.
  std::string problem_with(const Reference& reference, const std::vector<std::string>& passes, size_t count) const {
    Common some = common;
    some.without.insert(some.without.end(), passes.begin() + static_cast<std::ptrdiff_t>(count), passes.end());
    return difference(reference, some);
  }

  std::string difference(const Reference& reference, const Common& with) const {
    std::vector<Value> results;
    try {
      results = open_session(model, with).run(reference.fed);
    } catch (const treadle::Error& e) {
      return fmt::format("the run fails: {}", e.what());
    }
    double largest = 0;
    for (size_t i = 0; i < results.size(); ++i) {
      const std::string problem = compare(reference.results[i], results[i], tolerance, largest);
      if (!problem.empty())
        return fmt::format("output '{}' {}", reference.interpreter.name(TREADLE_OUTPUT, i), problem);
    }
    return "";
  }

  // `pass` is empty where no rewrite is to blame, `problem` where nothing is wrong.
  int report(const std::string& pass, const std::string& problem, const std::string& remark) const {
    if (common.json) {
      fmt::print("{}\n", JsonObject().text("pass", pass).text("problem", problem).text("remark", remark).str());
    } else if (problem.empty()) {
      fmt::print("results are those of the reference interpreter\n");
    } else {
      fmt::print("{}: {} ({})\n", pass.empty() ? "no rewrite" : bold(pass), message_for_people(problem), remark);
    }
    return problem.empty() ? kOk : kFailed;
  }
};

}  // namespace

void add_bisect(CLI::App& app, int& status) {
  CLI::App& command =
      *app.add_subcommand("bisect", "Find the rewrite that makes a result differ from the reference interpreter's");
  const auto bisect = std::make_shared<Bisect>();
  bisect->add(command, {"program", "native"});
  command.add_option("--rtol", bisect->tolerance.relative,
                     "How far results may be off, relative to the reference interpreter's");
  command.add_option("--atol", bisect->tolerance.absolute, "How far results may be off beside that");
  add_quiet(command, bisect->common);
  command.footer("Status 1: some result differs. 0: none does.");
  command.callback([bisect, &status] { status = (*bisect)(); });
}

}  // namespace cli
